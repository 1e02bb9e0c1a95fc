/* SPDX-License-Identifier: MIT */
/* Pictures of attention: the library's own weights in the file, and in the picture at their places. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "attention_sheet.h"
#include "npy.h"
#include "place.h"
#include "program.h"
#include "specimen.h"

enum { WIDTH = 93, HEIGHT = 45 }; /* maps of 12 x 24, 6 x 12 and 3 x 6 cells, windows of 4 x 4 */

static const char *checkpoint;

static swin_model *open_model(void)
{
    swin_model *model;
    swin_error error;
    if (swin_model_open(checkpoint, NULL, &model, &error) != SWIN_OK)
        fail_msg("%s", error.message);
    return model;
}

/* What the library says of a picture: [cells], to be freed. */
static float *weights_of(const struct picture *photo, swin_attention_request *request, swin_attention_info *info)
{
    swin_model *model = open_model();
    const swin_session_params params = {.struct_size = sizeof params, .precision = SWIN_PRECISION_F32};
    swin_session *session;
    swin_image image;
    swin_attention attention;
    assert_int_equal(swin_session_create(model, &params, &session, NULL), SWIN_OK);
    swin_image_init(&image, sizeof image);
    image.data = photo->pixels;
    image.height = photo->height;
    image.width = photo->width;
    assert_int_equal(swin_model_attention_info(model, image.height, image.width, request, info, sizeof *info, NULL),
                     SWIN_OK);
    swin_attention_init(&attention, sizeof attention);
    attention.weight_capacity = info->weight_count;
    attention.weights = malloc(info->weight_count * sizeof *attention.weights);
    assert_non_null(attention.weights);
    assert_int_equal(swin_session_attention(session, &image, request, &attention, NULL), SWIN_OK);
    swin_session_destroy(session);
    swin_model_destroy(model);
    return attention.weights;
}

static void the_file_has_the_library_s_weights(void **state)
{
    static const struct {
        const char *line;
        int32_t stage, block, head, query[2];
    } cases[] = {
        {"--attention 0,1 --query 3,90", 0, 1, SWIN_HEAD_MEAN, {3, 90}},
        {"--attention 1,1,0 --query 44,92", 1, 1, 0, {44, 92}},
        {"--attention 2,0 --query 0,0", 2, 0, SWIN_HEAD_MEAN, {0, 0}},
        {"--attention 1,0", 1, 0, SWIN_HEAD_MEAN, {HEIGHT / 2, WIDTH / 2}}, /* the middle */
    };
    (void)state;
    struct picture photo = specimen_noise(WIDTH, HEIGHT, 3);
    specimen_write("photo.png", &photo);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[32], file[48];
        snprintf(name, sizeof name, "seen-%zu", i);
        program_assert(program_run(NULL, "-q @ %s -o %s --precision f32 %s", place_path("photo.png"), place_path(name),
                                   cases[i].line),
                       0, "", "");
        assert_int_equal(place_count(place_path(name)), 2);

        swin_attention_request request;
        swin_attention_info info;
        swin_attention_request_init(&request, sizeof request);
        request.stage = cases[i].stage;
        request.block = cases[i].block;
        request.head = cases[i].head;
        memcpy(request.query, cases[i].query, sizeof request.query);
        float *expected = weights_of(&photo, &request, &info);
        snprintf(file, sizeof file, "%s/attention.npy", name);
        struct npy_array array = specimen_map(file);
        assert_int_equal(array.shape.dimensions, 2);
        assert_int_equal(array.shape.size[0], info.map[0]);
        assert_int_equal(array.shape.size[1], info.map[1]);
        for (size_t v = 0; v < array.count; v++)
            assert_true((float)array.values[v] == expected[v]);
        npy_destroy(&array);
        free(expected);
    }
    picture_destroy(&photo);
}

/* The query stays on its place in the photo when the photo is resized; what is asked for beside is written too. */
static void beside_maps_and_resized(void **state)
{
    (void)state;
    specimen_write_noise("photo.png", WIDTH, HEIGHT, 3);
    struct program program = program_run(NULL, "@ %s -o %s --attention 1,1 --query 44,92 --size 90x186 --json",
                                         place_path("photo.png"), place_path("large"));
    assert_int_equal(program.code, 0);
    assert_non_null(strstr(program.out, "attends  stage 1, block 1, "));
    assert_non_null(strstr(program.out, "cell 11,23 of 12 x 24 (rows x columns), stride 8, in a window of 4 x 4, "
                                        "shifted by 2,2\n"));
    assert_non_null(strstr(program.out, ": attention.npy attention.png summary.json\n"));
    program_free(&program);
    json_t *summary = specimen_summary("large/summary.json");
    json_t *attention = json_object_get(summary, "attention");
    assert_int_equal(json_integer_value(json_object_get(attention, "stage")), 1);
    assert_string_equal(json_string_value(json_object_get(attention, "head")), "mean");
    assert_int_equal(json_integer_value(json_array_get(json_object_get(attention, "query"), 1)), 92);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(attention, "cell"), 0)), 11);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(attention, "map"), 1)), 24);
    const double low = json_number_value(json_object_get(attention, "min"));
    const double high = json_number_value(json_object_get(attention, "max"));
    assert_true(0 < low && low <= high && high <= 1);
    const double on_map = json_number_value(json_object_get(attention, "on_map"));
    assert_true(high <= on_map && on_map <= 1 + 1e-5);
    json_decref(summary);

    program_assert(program_run(NULL, "-q @ %s -o %s --attention 0,0 --png --npy --levels 1", place_path("photo.png"),
                               place_path("both")),
                   0, "", "");
    assert_int_equal(place_count(place_path("both")), 6); /* c3: map, heatmap, sheet; overview; attention twice */
    program_assert(program_run(NULL, "-q @ %s %s -o %s --attention 2,1", place_path("photo.png"),
                               place_path("photo.png"), place_path("many")),
                   0, "", "");
    assert_int_equal(place_count(place_path("many/photo-2")), 2);
}

static void what_is_not_there(void **state)
{
    static const struct {
        const char *line, *said;
        int code;
    } cases[] = {
        {"--attention 3,0", "--attention: stage 3 does not exist in this model; choose from 0 to 2", 1},
        {"--attention 1,2", "--attention: block 2 does not exist in stage 1; choose from 0 to 1", 1},
        {"--attention 0,0,99", "--attention: head 99 does not exist in stage 0", 1},
        {"--attention 0,0 --query 45,0", "--query 45,0 is outside; rows go from 0 to 44 and columns from 0 to 92", 1},
        {"--attention 0,0 --query 0,93", "photo.png: --query 0,93 is outside", 1},
        {"--attention 0,0 --lineage torchvision --query 44,0", "beyond the last whole patch", 1},
        {"--attention 0", "--attention 0: expected STAGE,BLOCK or STAGE,BLOCK,HEAD", 2},
        {"--query 1,1", "--query goes with --attention STAGE,BLOCK", 2},
    };
    (void)state;
    specimen_write_noise("photo.png", WIDTH, HEIGHT, 3);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        program_assert_failure(
            program_run(NULL, "-q @ %s -o %s %s", place_path("photo.png"), place_path("none"), cases[i].line),
            cases[i].code, cases[i].said);
        assert_int_equal(place_count(place_path("none")), -1);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * The picture
 */

static double brightness(const struct picture *picture, int32_t x, int32_t y)
{
    const uint8_t *pixel = picture_at(picture, x, y);
    return (pixel[0] + pixel[1] + pixel[2]) / 3.0;
}

static double colourfulness(const struct picture *picture, int32_t x, int32_t y)
{
    const uint8_t *pixel = picture_at(picture, x, y);
    const int low = pixel[0] < pixel[1] ? pixel[0] < pixel[2] ? pixel[0] : pixel[2]
                                        : pixel[1] < pixel[2] ? pixel[1] : pixel[2];
    const int high = pixel[0] > pixel[1] ? pixel[0] > pixel[2] ? pixel[0] : pixel[2]
                                         : pixel[1] > pixel[2] ? pixel[1] : pixel[2];
    return high - low;
}

/* A gray photo of 400 x 200 with cells of 20 pixels, of which rows 1 to 3 and columns 14 to 17 are seen: in colour
 * where they lie in the photo, dark and gray elsewhere, the ring about the query. */
static void weights_lie_where_they_belong(void **state)
{
    enum { ROWS = 10, COLUMNS = 20, STRIDE = 20 };
    static float weights[ROWS * COLUMNS];
    struct attention attention = {.query = {45, 330},
                                  .request = {.stage = 2, .block = 1, .head = 1, .query = {45, 330}},
                                  .info = {.stride = STRIDE,
                                           .heads = 4,
                                           .map = {ROWS, COLUMNS},
                                           .window = {4, 4},
                                           .windows = {3, 5},
                                           .cell = {2, 16}},
                                  .weights = weights,
                                  .range = {0.01, 0.2},
                                  .on_map = 0.9};
    struct picture photo, sheet;
    struct failure failure;
    struct colormap colours;
    (void)state;
    colormap_create(&colours);
    for (int row = 1; row <= 3; row++) {
        for (int column = 14; column <= 17; column++)
            weights[row * COLUMNS + column] = row == 3 && column == 14 ? 0.2f : 0.08f;
    }
    weights[9 * COLUMNS] = 1e-40f; /* kept apart by the mask: not seen */
    assert_true(picture_create(&photo, COLUMNS * STRIDE, ROWS * STRIDE, &failure));
    picture_fill(&photo, (struct rectangle){0, 0, photo.width, photo.height}, (struct colour){128, 128, 128});
    assert_true(attention_sheet_draw(&sheet, &photo, "photo.png", &attention, &colours, &failure));

    /* The photo's panel begins at the margin, below the title, and is 721 x 361 pixels. */
    const int32_t x0 = 14, y0 = 44;
    const double scale = 721.0 / photo.width;
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            const bool seen = row >= 1 && row <= 3 && column >= 14 && column <= 17;
            const int32_t x = x0 + (int32_t)((column + 0.2) * STRIDE * scale);
            const int32_t y = y0 + (int32_t)((row + 0.7) * STRIDE * scale);
            if (seen)
                assert_true(colourfulness(&sheet, x, y) > 30);
            else
                assert_true(colourfulness(&sheet, x, y) < 5 && brightness(&sheet, x, y) < 70);
        }
    }
    const int32_t strong_x = x0 + (int32_t)(14.5 * STRIDE * scale), strong_y = y0 + (int32_t)(3.5 * STRIDE * scale);
    const int32_t weak_x = x0 + (int32_t)(15.5 * STRIDE * scale);
    assert_true(brightness(&sheet, strong_x, strong_y) > brightness(&sheet, weak_x, strong_y) + 60);
    /* the ring: white at its radius, the cell's colour in its middle */
    const int32_t ring_x = x0 + (int32_t)(330.5 * scale), ring_y = y0 + (int32_t)(45.5 * scale);
    assert_true(brightness(&sheet, ring_x + 6, ring_y) > 200 || brightness(&sheet, ring_x + 5, ring_y) > 200);
    assert_true(colourfulness(&sheet, ring_x, ring_y) > 30);
    picture_destroy(&sheet);
    picture_destroy(&photo);
}

/* Every shape of photo, and weights of which nothing is seen or all is alike. */
static void pictures_of_all_shapes(void **state)
{
    static const int32_t sizes[][2] = {{1, 1}, {1, 900}, {900, 1}, {40, 30}, {600, 250}, {300, 4000}};
    struct failure failure;
    struct colormap colours;
    (void)state;
    colormap_create(&colours);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int32_t rows = (sizes[i][0] + 31) / 32, columns = (sizes[i][1] + 31) / 32;
        const size_t cells = (size_t)rows * (size_t)columns;
        for (int alike = 0; alike < 2; alike++) {
            struct attention attention = {.request = {.head = SWIN_HEAD_MEAN},
                                          .info = {.stride = 32,
                                                   .heads = 1,
                                                   .map = {rows, columns},
                                                   .window = {7, 7},
                                                   .shift = {3, 3}},
                                          .weights = calloc(cells, sizeof(float))};
            struct picture photo, sheet;
            assert_non_null(attention.weights);
            for (size_t c = 0; c < cells && alike; c++)
                attention.weights[c] = 0.02f;
            attention.range = (struct value_range){0.02, 0.02};
            assert_true(picture_create(&photo, sizes[i][1], sizes[i][0], &failure));
            assert_true(attention_sheet_draw(&sheet, &photo, "photo.png", &attention, &colours, &failure));
            assert_in_range(sheet.width, 600, 3000);
            assert_in_range(sheet.height, 150, 3000);
            picture_destroy(&sheet);
            picture_destroy(&photo);
            attention_destroy(&attention);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_has_the_library_s_weights),
        cmocka_unit_test(beside_maps_and_resized),
        cmocka_unit_test(what_is_not_there),
        cmocka_unit_test(weights_lie_where_they_belong),
        cmocka_unit_test(pictures_of_all_shapes),
    };
    if (argc != 3) {
        fprintf(stderr, "usage: %s SWIN-DUMP CHECKPOINT\n", argv[0]);
        return 2;
    }
    checkpoint = argv[2];
    program_set_paths(argv[1], argv[2]);
    return cmocka_run_group_tests_name("cli-driver-attention", tests, place_set_up, place_tear_down);
}
