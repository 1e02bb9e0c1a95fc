/* SPDX-License-Identifier: MIT */
/* The program as its user meets it: exit codes, messages, files. With a small detection checkpoint of three levels, and
 * here and there with the built-in model. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "npy.h"
#include "picture.h"
#include "place.h"
#include "program.h"
#include "specimen.h"
#include "resample.h"

static void help_and_version(void **state)
{
    (void)state;
    program_assert(program_run(NULL, "--help"), 0, "Usage: swin-dump", "");
    program_assert(program_run(NULL, "--version"), 0, "swin-dump 0.", "");
}

static void wrong_command_lines(void **state)
{
    (void)state;
    program_assert_failure(program_run(NULL, "-q"), 2, "no image given");
    program_assert_failure(program_run(NULL, "x.png --threads -1"), 2, "--threads -1");
    program_assert_failure(program_run(NULL, "x.png --levels 5"), 2, "--levels 5");
    program_assert_failure(program_run(NULL, "x.png --no-such-option"), 2, "--no-such-option is no option");
}

static void a_model_that_is_none(void **state)
{
    (void)state;
    specimen_write_noise("a.png", 40, 30, 1);
    place_write_text("torch.pth", "PK\3\4 and the rest of a ZIP file");
    place_write_text("old.pkl", "\x80\x02}q\x01 and so on");
    place_write_text("text", "not a checkpoint at all");
    program_assert_failure(program_run(NULL, "-q -w %s %s", place_path("none"), place_path("a.png")), 1,
                           "no such file");
    program_assert_failure(program_run(NULL, "-q -w %s %s", place_path("text"), place_path("a.png")), 1,
                           place_path("text"));
    program_assert_failure(program_run(NULL, "-q -w %s %s", place_path(""), place_path("a.png")), 1,
                           "is a directory, expected a .safetensors file");
    char wanted[512];
    snprintf(wanted, sizeof wanted, "python3 -m libswin convert %s %s.safetensors", place_path("torch.pth"),
             place_path("torch"));
    program_assert_failure(program_run(NULL, "-q --info -w %s", place_path("torch.pth")), 1, wanted);
    snprintf(wanted, sizeof wanted, "python3 -m libswin convert %s %s.safetensors", place_path("old.pkl"),
             place_path("old"));
    program_assert_failure(program_run(NULL, "-q --info -w %s", place_path("old.pkl")), 1, wanted);
}

/* What will not do is said before the model is opened: here there is none, which would be said instead. */
static void what_is_known_at_once(void **state)
{
    (void)state;
    specimen_write_noise("a.png", 40, 30, 1);
    place_write_text("file", "x");
    mkdir(place_path("empty"), 0777);
    program_assert_failure(program_run(NULL, "-q -w /none %s -o %s", place_path("a.png"), place_path("file")), 1,
                           "file: cannot be made a directory: exists already and is not a directory");
    program_assert_failure(program_run(NULL, "-q -w /none %s -o %s", place_path("a.png"), place_path("file/below")), 1,
                           "below: cannot be made a directory: a part of the path is a file");
    program_assert_failure(program_run(NULL, "-q -w /none %s -o /proc/1/x/y", place_path("a.png")), 1, "/proc/1");
    program_assert_failure(program_run(NULL, "-q -w /none %s --verify %s", place_path("a.png"), place_path("missing")),
                           1, "missing: no directory with .npy files to compare with; give one to --verify");
    program_assert_failure(program_run(NULL, "-q -w /none %s --verify %s", place_path("a.png"), place_path("empty")), 1,
                           "empty/c2.npy: cannot be opened: no such file");
    program_assert_failure(
        program_run(NULL, "-q -w /none %s --verify %s --levels 2", place_path("a.png"), place_path("empty")), 1,
        "empty/c4.npy: cannot be opened: no such file");
    program_assert_failure(
        program_run(NULL, "-q -w /none %s /y.png --verify %s", place_path("a.png"), place_path("file")), 1,
        "file: no directory with .npy files");
    /* Nothing is to be written there. */
    program_assert_failure(program_run(NULL, "-q -w /none %s -o %s --bench 1", place_path("a.png"), place_path("file")),
                           1, "/none: cannot be opened");
}

/* What another window or an unknown size does to the numbers is in the header. */
static void windows_are_reported(void **state)
{
    (void)state;
    specimen_write_noise("a.png", 40, 30, 1);
    program_assert(program_run(NULL, "@ %s -o %s --json", place_path("a.png"), place_path("w")), 0,
                   "windows  from the sizes of the position bias tables\n", "");
    program_assert(program_run(NULL, "@ %s -o %s --json --window 8", place_path("a.png"), place_path("w")), 0,
                   "windows  from the caller; position biases resized from 4x4 to 8x8\n", "");
    program_assert(program_run(NULL, "@ %s %s -o %s --json --window 5,6,4", place_path("a.png"), place_path("a.png"),
                               place_path("w")),
                   0, "windows  from the caller; position biases resized in 2 of 3 stages\n", "");
    program_assert(program_run(NULL, "@ %s -o %s --json --lineage timm", place_path("a.png"), place_path("w")), 0,
                   "; image size unknown, so each image's own limits them (params.image_size, --image-size)\n", "");
    program_assert(program_run(NULL, "@ --info --lineage timm"), 0, "; image size unknown, so each image's own", "");
    program_assert(program_run(NULL, "@ --info --lineage timm --image-size 32x32"), 0, "made for      32 x 32 pixels",
                   "");
    program_assert_failure(program_run(NULL, "@ --info --window 8,4"), 1,
                           "--window: 2 windows were given, the model has 3 stages; give one, or one for each");
    program_assert_failure(program_run(NULL, "-q --info --window 8,4,2"), 1, "the model has 4 stages");
    program_assert_failure(program_run(NULL, "@ --info --prefix teacher."), 1,
                           "no Swin Transformer has the prefix \"teacher.\"");
}

static void an_image_that_is_none(void **state)
{
    static const uint8_t bomb[] = {0x89, 'P', 'N',  'G',  '\r', '\n', 0x1a, '\n', 0,   0, 0, 13, 'I', 'H',  'D',  'R',
                                   0,    0,   0x75, 0x30, 0,    0,    0x75, 0x30, 8,   2, 0, 0,  0,   0xe9, 0x45, 0x6f,
                                   0xed, 0,   0,    0,    1,    'I',  'D',  'A',  'T', 0, 0, 0,  0,   0};
    struct program program;
    (void)state;
    place_write("bomb.png", bomb, sizeof bomb);
    place_write_text("photo.jpg", "\xff\xd8\xff\xe0 JFIF and more");
    program_assert_failure(program_run(NULL, "-q %s -o %s", place_path("none.png"), place_path("o")), 1,
                           "none.png: cannot be opened");
    program_assert_failure(program_run(NULL, "-q %s -o %s", place_path("photo.jpg"), place_path("o")), 1, "is a JPEG");
    program = program_run(NULL, "-q %s -o %s", place_path("bomb.png"), place_path("o"));
#ifndef __SANITIZE_ADDRESS__
    assert_true(program.peak_kilobytes < 50000);
#endif
    program_assert_failure(program, 1, "30000 x 30000 pixels are over the limit");
    assert_int_equal(place_count(place_path("o")), -1);
}

static void one_image(void **state)
{
    static const int64_t shapes[4][4] = {{1, 96, 8, 13}, {1, 192, 4, 7}, {1, 384, 2, 4}, {1, 768, 1, 2}};
    static const char *const names[] = {"c2.png",          "c3.png",          "c4.png",
                                        "c5.png",          "c2-channels.png", "c3-channels.png",
                                        "c4-channels.png", "c5-channels.png", "overview.png"};
    struct failure failure;
    (void)state;
    specimen_write_noise("one.png", 50, 29, 1);
    program_assert(
        program_run(NULL, "%s -o %s --png --npy --json --precision f32", place_path("one.png"), place_path("one/out")),
        0, "written", "no --weights FILE");
    assert_int_equal(place_count(place_path("one/out")), 4 + 9 + 1);
    for (int level = 0; level < 4; level++) {
        char name[32];
        snprintf(name, sizeof name, "one/out/c%d.npy", level + 2);
        struct npy_array map = specimen_map(name);
        assert_int_equal(map.shape.dimensions, 4);
        for (int d = 0; d < 4; d++)
            assert_int_equal(map.shape.size[d], shapes[level][d]);
        npy_destroy(&map);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char name[64];
        struct picture picture;
        snprintf(name, sizeof name, "one/out/%s", names[i]);
        if (!picture_read_png(&picture, place_path(name), 100000000, &failure))
            fail_msg("%s", failure.text);
        if (i < 4) {
            assert_int_equal(picture.width, 50);
            assert_int_equal(picture.height, 29);
        }
        picture_destroy(&picture);
    }
    json_t *summary = specimen_summary("one/out/summary.json");
    assert_int_equal(json_array_size(json_object_get(summary, "levels")), 4);
    json_t *level = json_array_get(json_object_get(summary, "levels"), 1);
    assert_int_equal(json_integer_value(json_object_get(level, "stride")), 8);
    assert_int_equal(json_integer_value(json_object_get(level, "channels")), 192);
    assert_int_equal(json_array_size(json_object_get(level, "files")), 3);
    assert_string_equal(json_string_value(json_object_get(json_object_get(summary, "engine"), "precision")), "f32");
    json_decref(summary);
}

/* (255 - 123.675) / 58.395, and 0 in green and blue. */
static void a_red_pixel(void **state)
{
    const double wanted[3] = {2.2489, -2.0357, -1.8044};
    struct picture picture;
    struct failure failure;
    (void)state;
    assert_true(picture_create(&picture, 8, 8, &failure));
    picture_fill(&picture, (struct rectangle){0, 0, 8, 8}, (struct colour){255, 0, 0});
    specimen_write("red.png", &picture);
    picture_destroy(&picture);
    for (int bgr = 0; bgr < 2; bgr++) {
        program_assert(
            program_run(NULL, "%s -o %s --json %s", place_path("red.png"), place_path("red"), bgr ? "--bgr" : ""), 0,
            bgr ? "BGR, mean R,G,B 123.675,116.28,103.53" : "RGB, mean R,G,B 123.675,116.28,103.53", NULL);
        json_t *summary = specimen_summary("red/summary.json");
        json_t *pixel = json_object_get(json_object_get(summary, "preprocessing"), "first_pixel_normalised");
        for (int i = 0; i < 3; i++)
            assert_true(fabs(json_number_value(json_array_get(pixel, (size_t)i)) - wanted[bgr ? 2 - i : i]) < 1e-4);
        json_decref(summary);
    }
}

/* --bgr on a picture is the picture with its channels the other way round, and mean and std with them. */
static void channel_order(void **state)
{
    struct picture picture = specimen_noise(40, 30, 5);
    (void)state;
    specimen_write("rgb.png", &picture);
    for (int32_t i = 0; i < 40 * 30; i++) {
        const uint8_t red = picture.pixels[3 * i];
        picture.pixels[3 * i] = picture.pixels[3 * i + 2];
        picture.pixels[3 * i + 2] = red;
    }
    specimen_write("bgr.png", &picture);
    picture_destroy(&picture);
    program_assert(program_run(NULL, "-q @ --npy --levels 0 --bgr --mean 1,2,3 --std 4,5,6 %s -o %s",
                               place_path("rgb.png"), place_path("order1")),
                   0, "", "");
    program_assert(program_run(NULL, "-q @ --npy --levels 0 --mean 3,2,1 --std 6,5,4 %s -o %s", place_path("bgr.png"),
                               place_path("order2")),
                   0, "", "");
    specimen_assert_same_maps("order1/c2.npy", "order2/c2.npy");
}

static void levels_layouts_and_threads(void **state)
{
    (void)state;
    specimen_write_noise("a.png", 61, 47, 2);
    program_assert(program_run(NULL, "-q @ --npy %s -o %s --threads 1", place_path("a.png"), place_path("all")), 0, "",
                   "");
    program_assert(program_run(NULL, "-q @ --npy %s -o %s --levels 1,0 --layout nhwc --threads 2", place_path("a.png"),
                               place_path("some")),
                   0, "", "");
    assert_int_equal(place_count(place_path("all")), 3);
    assert_int_equal(place_count(place_path("some")), 2);
    program_assert_failure(program_run(NULL, "-q @ %s -o %s --levels 3", place_path("a.png"), place_path("no")), 1,
                           "level 3 does not exist in this model; choose --levels from 0 to 2");
    struct npy_array nchw = specimen_map("all/c3.npy");
    struct npy_array nhwc = specimen_map("some/c3.npy");
    const int64_t channels = nchw.shape.size[1];
    const int64_t cells = nchw.shape.size[2] * nchw.shape.size[3];
    assert_int_equal(nhwc.shape.size[3], channels);
    assert_int_equal(nhwc.shape.size[1], nchw.shape.size[2]);
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t i = 0; i < cells; i++)
            assert_true(nchw.values[c * cells + i] == nhwc.values[i * channels + c]);
    }
    npy_destroy(&nchw);
    npy_destroy(&nhwc);
}

static void resizing_and_padding(void **state)
{
    struct picture picture = specimen_noise(90, 70, 3);
    struct picture resized;
    struct failure failure;
    (void)state;
    specimen_write("large.png", &picture);
    assert_true(picture_resize(&picture, 33, 50, &resized, &failure));
    specimen_write("small.png", &resized);
    picture_destroy(&picture);
    picture_destroy(&resized);
    program_assert(
        program_run(NULL, "@ --npy --levels 0 --size 33x50 %s -o %s", place_path("large.png"), place_path("s1")), 0,
        "resized to 50 x 33", NULL);
    program_assert(program_run(NULL, "-q @ --npy --levels 0 %s -o %s", place_path("small.png"), place_path("s2")), 0,
                   "", "");
    specimen_assert_same_maps("s1/c2.npy", "s2/c2.npy");

    program_assert(program_run(NULL, "@ --npy --png --levels 2 --pad-divisor 64 %s -o %s", place_path("small.png"),
                               place_path("s3")),
                   0, "padded to 64 x 64", NULL);
    struct npy_array map = specimen_map("s3/c4.npy");
    assert_int_equal(map.shape.size[2], 4);
    assert_int_equal(map.shape.size[3], 4);
    npy_destroy(&map);
    assert_true(picture_read_png(&picture, place_path("s3/c4.png"), 100000, &failure));
    assert_int_equal(picture.width, 50);
    assert_int_equal(picture.height, 33);
    picture_destroy(&picture);
}

/* What differs from the lower left corner lies in the upper right quarter, in the map and in its heatmap. */
static void orientation(void **state)
{
    /* All maps are multiples of the window, so that no padding marks the edges. */
    enum { WIDTH = 224, HEIGHT = 112 };
    struct picture picture;
    struct failure failure;
    double sum = 0;
    double x_sum = 0;
    double y_sum = 0;
    (void)state;
    assert_true(picture_create(&picture, WIDTH, HEIGHT, &failure));
    for (int32_t y = 0; y < HEIGHT / 2; y++) {
        for (int32_t x = WIDTH / 2; x < WIDTH; x++)
            memset(picture_at(&picture, x, y), (x / 3 + y / 5) % 2 == 0 ? 255 : 160, 3);
    }
    specimen_write("bright.png", &picture);
    picture_destroy(&picture);
    program_assert(
        program_run(NULL, "-q --npy --png --levels 0,1 %s -o %s", place_path("bright.png"), place_path("way")), 0, "",
        "");

    struct npy_array map = specimen_map("way/c3.npy");
    const int64_t rows = map.shape.size[2];
    const int64_t columns = map.shape.size[3];
    double *energy = calloc((size_t)(rows * columns), sizeof *energy);
    assert_non_null(energy);
    for (int64_t c = 0; c < map.shape.size[1]; c++) {
        for (int64_t i = 0; i < rows * columns; i++)
            energy[i] += map.values[c * rows * columns + i] * map.values[c * rows * columns + i];
    }
    const double background = sqrt(energy[(rows - 4) * columns + 3]);
    for (int64_t i = 0; i < rows * columns; i++) {
        const double weight = fabs(sqrt(energy[i]) - background);
        sum += weight;
        x_sum += weight * (double)(i % columns);
        y_sum += weight * (double)(i / columns);
    }
    assert_true(x_sum / sum > 0.6 * (double)columns);
    assert_true(y_sum / sum < 0.4 * (double)rows);
    free(energy);
    npy_destroy(&map);

    assert_true(picture_read_png(&picture, place_path("way/c3.png"), 1000000, &failure));
    const uint8_t *corner = picture_at(&picture, 28, HEIGHT - 28);
    sum = x_sum = y_sum = 0;
    for (int32_t y = 0; y < HEIGHT; y++) {
        for (int32_t x = 0; x < WIDTH; x++) {
            const uint8_t *pixel = picture_at(&picture, x, y);
            const double weight = abs(pixel[0] - corner[0]) + abs(pixel[1] - corner[1]) + abs(pixel[2] - corner[2]);
            sum += weight;
            x_sum += weight * x;
            y_sum += weight * y;
        }
    }
    assert_true(x_sum / sum > 0.6 * WIDTH);
    assert_true(y_sum / sum < 0.4 * HEIGHT);
    picture_destroy(&picture);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_and_version),
        cmocka_unit_test(wrong_command_lines),
        cmocka_unit_test(a_model_that_is_none),
        cmocka_unit_test(what_is_known_at_once),
        cmocka_unit_test(windows_are_reported),
        cmocka_unit_test(an_image_that_is_none),
        cmocka_unit_test(one_image),
        cmocka_unit_test(a_red_pixel),
        cmocka_unit_test(channel_order),
        cmocka_unit_test(levels_layouts_and_threads),
        cmocka_unit_test(resizing_and_padding),
        cmocka_unit_test(orientation),
    };
    if (argc != 3) {
        fprintf(stderr, "usage: %s SWIN-DUMP CHECKPOINT\n", argv[0]);
        return 2;
    }
    program_set_paths(argv[1], argv[2]);
    return cmocka_run_group_tests_name("cli-driver-image", tests, place_set_up, place_tear_down);
}
