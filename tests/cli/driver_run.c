/* SPDX-License-Identifier: MIT */
/* Directories, comparing, timing, describing, and being stopped: the program as its user meets it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "npy.h"
#include "place.h"
#include "program.h"
#include "specimen.h"

static void a_directory(void **state)
{
    struct program program;
    (void)state;
    specimen_write_set();
    program = program_run(NULL, "@ %s -o %s --npy --levels 0 --threads 2", place_path("set"), place_path("batch"));
    assert_int_equal(program.code, 1);
    assert_non_null(strstr(program.err, "set/c.png: "));
    assert_non_null(strstr(program.err, "1 of 4 images failed: "));
    assert_non_null(strstr(program.out, "/4] "));
    char wanted[512];
    snprintf(wanted, sizeof wanted, "output   %s/<image name>/\n", place_path("batch"));
    assert_non_null(strstr(program.out, wanted));
    snprintf(wanted, sizeof wanted, "\n3 images done, written to %s/<image name>/\n", place_path("batch"));
    assert_non_null(strstr(program.out, wanted));
    assert_null(strchr(program.err, '\r'));
    assert_non_null(strstr(program.err, "passed over 1 file whose name does not end in .png\n"));
    /* The bad image, the list, and what is no picture. */
    assert_int_equal(program.err_lines, 3);
    program_free(&program);
    assert_int_equal(place_count(place_path("batch")), 3);
    assert_int_equal(place_count(place_path("batch/a")), 1);
    assert_int_equal(place_count(place_path("batch/b")), 1);

    /* As each alone. */
    program_assert(program_run(NULL, "-q @ %s -o %s --npy --levels 0", place_path("set/b.png"), place_path("alone")), 0,
                   "", "");
    specimen_assert_same_maps("alone/c2.npy", "batch/b/c2.npy");

    /* Two of one name. */
    program_assert(program_run(NULL, "@ %s %s -o %s --json --levels 0", place_path("set/a.png"),
                               place_path("set/../set/a.png"), place_path("twins")),
                   0, "2 images done", NULL);
    assert_int_equal(place_count(place_path("twins/a")), 1);
    assert_int_equal(place_count(place_path("twins/a-2")), 1);
    mkdir(place_path("void"), 0777);
    program_assert_failure(program_run(NULL, "-q @ %s -o %s", place_path("void"), place_path("v")), 1,
                           "there is no .png file");

    /* Files of another kind are not passed over without a word. */
    mkdir(place_path("mixed"), 0777);
    specimen_write_noise("mixed/a.png", 20, 20, 1);
    place_write("mixed/b.jpg", "\xff\xd8\xff", 3);
    place_write("mixed/c.txt", "c", 1);
    place_write("mixed/.hidden", "d", 1);
    mkdir(place_path("mixed/below"), 0777);
    program_assert(program_run(NULL, "@ %s -o %s --json --levels c2", place_path("mixed"), place_path("mixed-out")), 0,
                   NULL, "swin-dump: passed over 2 files whose name does not end in .png\n");
}

/* A name may hold what a terminal obeys, and what lies in a directory need not be a file. */
static void names_and_pipes(void **state)
{
    struct program program;
    (void)state;
    mkdir(place_path("odd"), 0777);
    specimen_write_noise("odd/new\nline.png", 20, 20, 1);
    specimen_write_noise("odd/\033[31mred.png", 20, 20, 2);
    assert_int_equal(mkfifo(place_path("odd/pipe.png"), 0600), 0);
    program = program_run(NULL, "@ %s -o %s --json --levels 0 --threads 1", place_path("odd"), place_path("odd-out"));
    assert_int_equal(program.code, 1);
    assert_non_null(strstr(program.out, "new?line.png\n"));
    assert_non_null(strstr(program.out, "?[31mred.png\n"));
    assert_null(strchr(program.out, '\033'));
    assert_non_null(strstr(program.err, "odd/pipe.png: is a pipe or device, not a file"));
    program_free(&program);
    program = program_run(NULL, "@ %s -o %s --json", place_path("odd/\033[31mred.png"), place_path("odd-out/one"));
    assert_int_equal(program.code, 0);
    assert_null(strchr(program.out, '\033'));
    program_free(&program);
    program_assert_failure(program_run(NULL, "-q --info -w %s", place_path("odd/pipe.png")), 1,
                           "is a device or pipe, expected a regular file");
}

static void write_scaled(const char *from, const char *to, float factor)
{
    struct npy_array map = specimen_map(from);
    struct failure failure;
    float *values = malloc(map.count * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < map.count; i++)
        values[i] = (float)map.values[i] * factor;
    FILE *stream = fopen(place_path(to), "wb");
    assert_non_null(stream);
    assert_true(npy_write(stream, to, &map.shape, values, &failure));
    assert_int_equal(fclose(stream), 0);
    free(values);
    npy_destroy(&map);
}

static void verifying(void **state)
{
    const char *image = "set/a.png";
    (void)state;
    specimen_write_set();
    program_assert(program_run(NULL, "-q @ %s -o %s --npy --precision f32", place_path(image), place_path("ref")), 0,
                   "", "");
    program_assert(program_run(NULL, "@ %s --verify %s --precision f32", place_path(image), place_path("ref")), 0,
                   "c4 ", NULL);
    write_scaled("ref/c4.npy", "ref/c4.npy", 1.001f);
    program_assert_failure(
        program_run(NULL, "-q @ %s --verify %s --precision f32", place_path(image), place_path("ref")), 1,
        "a.png: c4 beyond the f32 tolerance");
    program_assert_failure(
        program_run(NULL, "-q @ %s --verify %s --precision f32", place_path(image), place_path("ref")), 1,
        "check weights, --lineage, --image-size, --window, --mean and --std");
    program_assert(
        program_run(NULL, "-q @ %s --verify %s --precision f32 --levels 0,1", place_path(image), place_path("ref")), 0,
        "", "");
    /* What bf16 allows is more. */
    program_assert(program_run(NULL, "@ %s --verify %s --precision bf16", place_path(image), place_path("ref")), 0,
                   "bf16 tolerance", NULL);
    program_assert_failure(program_run(NULL, "-q @ %s --verify %s --size 60x60", place_path(image), place_path("ref")),
                           1, "has shape");
    program_assert_failure(program_run(NULL, "-q @ %s --verify %s --layout nhwc", place_path(image), place_path("ref")),
                           1, "has shape");
    unlink(place_path("ref/c3.npy"));
    program_assert_failure(program_run(NULL, "-q @ %s --verify %s", place_path(image), place_path("ref")), 1,
                           "c3.npy: cannot be opened");

    program_assert(
        program_run(NULL, "-q @ %s -o %s --npy --levels 1 --precision f32", place_path("set"), place_path("refs")), 1,
        "", NULL);
    program_assert(program_run(NULL, "@ %s %s --verify %s --levels 1 --precision f32 -o %s --json",
                               place_path("set/a.png"), place_path("set/b.png"), place_path("refs"),
                               place_path("checked")),
                   0, "2 images done", NULL);
    /* Of one of several the references may be missing. */
    program_assert(program_run(NULL, "-q @ %s %s --verify %s --levels 0", place_path("set/a.png"),
                               place_path("set/b.png"), place_path("refs")),
                   1, "", "refs/b/c2.npy: cannot be opened");
    json_t *summary = specimen_summary("checked/b/summary.json");
    assert_true(json_is_true(json_object_get(json_array_get(json_object_get(summary, "verify"), 0), "within")));
    json_decref(summary);
}

static void self_test(void **state)
{
    struct program program;
    (void)state;
    program = program_run(NULL, "--selftest");
    assert_int_equal(program.code, 0);
    assert_string_equal(program.err, "");
    assert_non_null(strstr(program.out, "softmax f32 "));
    assert_non_null(strstr(program.out, "kernels compared with plain C in "));
    assert_null(strstr(program.out, "WRONG"));
    program_free(&program);
    program_assert_failure(program_run(NULL, "--selftest a.png"), 2, "--selftest takes no image");
}

static void timing(void **state)
{
    struct program program;
    (void)state;
    specimen_write_set();
    program =
        program_run(NULL, "@ %s --bench 3 --levels 0,1 -o %s --json", place_path("set/a.png"), place_path("timed"));
    assert_int_equal(program.code, 0);
    assert_non_null(strstr(program.out, "stage 1 (c3)"));
    assert_null(strstr(program.out, "stage 2"));
    assert_non_null(strstr(program.out, "GFLOP/s"));
    assert_non_null(strstr(program.out, "peak"));
    program_free(&program);
    json_t *summary = specimen_summary("timed/summary.json");
    json_t *bench = json_object_get(summary, "bench");
    assert_int_equal(json_integer_value(json_object_get(bench, "runs")), 3);
    assert_int_equal(json_array_size(json_object_get(bench, "stages")), 2);
    assert_true(json_number_value(json_object_get(json_object_get(bench, "total"), "min_ms")) > 0);
    assert_true(json_integer_value(json_object_get(bench, "peak_bytes")) > 1000000);
    json_decref(summary);
}

static void describing(void **state)
{
    const struct circumstances full = {.stdout_to = "/dev/full"};
    json_error_t error;
    struct program program;
    (void)state;
    program_assert(program_run(NULL, "--info --size 800x1333"), 0, "c5     768 x 25 x 42", NULL);
    program = program_run(NULL, "--info --json -q --window 12 --lineage cls --out-norm on");
    assert_int_equal(program.code, 0);
    assert_string_equal(program.err, "");
    json_t *info = json_loads(program.out, 0, &error);
    assert_non_null(info);
    assert_int_equal(json_integer_value(json_object_get(info, "embed_dim")), 96);
    assert_string_equal(json_string_value(json_object_get(info, "lineage")), "microsoft");
    assert_int_equal(json_integer_value(json_array_get(json_array_get(json_object_get(info, "window"), 3), 1)), 12);
    assert_int_equal(json_array_size(json_object_get(info, "out_norm_levels")), 4);
    assert_true(json_is_array(json_object_get(json_object_get(info, "tensors"), "unknown_names")));
    json_decref(info);
    program_free(&program);

    program = program_run(NULL, "--info --json @");
    assert_int_equal(program.code, 0);
    info = json_loads(program.out, 0, &error);
    assert_non_null(info);
    assert_string_equal(json_string_value(json_object_get(info, "dialect")), "detection");
    assert_int_equal(json_array_size(json_object_get(json_object_get(info, "tensors"), "ignored_names")), 6);
    json_decref(info);
    program_free(&program);
    program_assert(program_run(NULL, "--info @"), 0, "\n    layers.0.blocks.0.attn.relative_position_index\n", "");
    program_assert_failure(program_run(&full, "--info -q"), 1, "standard output cannot be written: the disk is full");
}

/* The first file fits under the limit, a later one does not. */
static void nothing_half_written(void **state)
{
    const struct circumstances limited = {.file_limit = 20000};
    (void)state;
    specimen_write_noise("wide.png", 200, 100, 1);
    program_assert_failure(
        program_run(&limited, "-q @ %s -o %s --npy --levels 2,0", place_path("wide.png"), place_path("cut/off")), 1,
        "c2.npy: cannot be written: the file would be too large");
    assert_int_equal(place_count(place_path("cut")), -1);
    program_assert_failure(
        program_run(&limited, "-q @ %s -o %s --png --json", place_path("wide.png"), place_path("cut/off")), 1,
        ".png: cannot be written: the file would be too large");
    assert_int_equal(place_count(place_path("cut")), -1);
    /* What was there before stays as it was. */
    program_assert(program_run(NULL, "-q @ %s -o %s --npy --levels 0", place_path("wide.png"), place_path("kept")), 0,
                   "", "");
    program_assert(program_run(NULL, "-q @ %s -o %s --npy --levels 0", place_path("wide.png"), place_path("same")), 0,
                   "", "");
    program_assert_failure(program_run(&limited, "-q @ %s -o %s --npy --levels 0 --mean 0,0,0", place_path("wide.png"),
                                       place_path("kept")),
                           1, "cannot be written");
    assert_int_equal(place_count(place_path("kept")), 1);
    specimen_assert_same_maps("kept/c2.npy", "same/c2.npy");

    place_write_text("in-the-way", "x");
    program_assert_failure(program_run(NULL, "-q @ %s -o %s --json", place_path("wide.png"), place_path("in-the-way")),
                           1, "in-the-way: cannot be made a directory");
}

/* How many images were done, each of them whole. */
static int count_whole(const char *directory)
{
    const int count = place_count(place_path(directory));
    int whole = 0;
    for (int i = 0; i < 60; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%02d", directory, i);
        const int files = place_count(place_path(name));
        assert_true(files == -1 || files == 11);
        whole += files == 11;
    }
    assert_int_equal(whole, count);
    return count;
}

static void interrupted(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    (void)state;
    mkdir(place_path("many"), 0777);
    for (int i = 0; i < 60; i++) {
        char name[32];
        snprintf(name, sizeof name, "many/%02d.png", i);
        specimen_write_noise(name, 160, 160, (uint32_t)i);
    }
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        char directory[16], first[48];
        snprintf(directory, sizeof directory, "cancelled-%zu", i);
        snprintf(first, sizeof first, "%s/00/summary.json", directory);
        const struct circumstances impatient = {.interrupt = place_path(first), .signal = signals[i]};
        struct program program =
            program_run(&impatient, "@ %s -o %s --npy --png --json", place_path("many"), place_path(directory));
        assert_int_equal(program.code, 1);
        assert_non_null(strstr(program.err, "interrupted; "));
        program_free(&program);
        assert_in_range(count_whole(directory), 1, 59);
    }
}

static void a_reader_who_leaves(void **state)
{
    (void)state;
    const struct circumstances deaf = {.deaf = true};
    program_assert_failure(program_run(&deaf, "@ %s %s %s -o %s --npy --png --json", place_path("many/00.png"),
                                       place_path("many/01.png"), place_path("many/02.png"), place_path("unheard")),
                           1, "standard output cannot be written");
    assert_int_equal(count_whole("unheard"), 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory),
        cmocka_unit_test(names_and_pipes),
        cmocka_unit_test(verifying),
        cmocka_unit_test(timing),
        cmocka_unit_test(self_test),
        cmocka_unit_test(describing),
        cmocka_unit_test(nothing_half_written),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(a_reader_who_leaves),
    };
    if (argc != 3) {
        fprintf(stderr, "usage: %s SWIN-DUMP CHECKPOINT\n", argv[0]);
        return 2;
    }
    program_set_paths(argv[1], argv[2]);
    return cmocka_run_group_tests_name("cli-driver-run", tests, place_set_up, place_tear_down);
}
