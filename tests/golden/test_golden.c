/* SPDX-License-Identifier: MIT */
/*
 * The library, through its public interface alone, against what the published packages compute: every case of
 * cases.txt; and the attention weights where the expectation has them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"
#include "fixture.h"

/* What swin.h promises for float32. */
#define RELATIVE_L2 1e-5
#define LARGEST 1e-4

/* Blocks whose attention was compared. */
static int blocks_compared;

static void check(swin_status status, const swin_error *err, const golden_case *one)
{
    if (status != SWIN_OK)
        fail_msg("%s: %s", one->name, err->message);
}

static void check_level(const golden_case *one, const fixture *expect, int size, const swin_output_info *info,
                        const float *map)
{
    char name[64];
    int64_t shape[FIXTURE_MAX_RANK];
    snprintf(name, sizeof name, "level%d.%d", (int)info->level, size);
    const size_t count = fixture_shape(expect, name, shape);
    assert_int_equal(info->channels, shape[0]);
    assert_int_equal(info->height, shape[1]);
    assert_int_equal(info->width, shape[2]);

    double *expected = fixture_doubles(expect, name), *values = malloc(count * sizeof *values);
    assert_non_null(values);
    double largest_error = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        values[i] = map[i];
        largest_error = fmax(largest_error, fabs(values[i] - expected[i]));
        largest = fmax(largest, fabs(expected[i]));
    }
    const double distance = fixture_distance(values, expected, count);
    if (!(distance <= RELATIVE_L2) || !(largest_error <= LARGEST * largest))
        fail_msg("%s, %s: relative L2 distance %.2e, largest difference %.2e of %.2e", one->name, name, distance,
                 largest_error, largest);
    free(values);
    free(expected);
}

/* The attention weights of every window and head of a block, where the package's are kept. */
static void check_attention(const golden_case *one, const fixture *expect, int size, const swin_model *model,
                            swin_session *session, const swin_image *image, int32_t stage, int32_t block)
{
    char name[64];
    snprintf(name, sizeof name, "attention.%d.%d.%d", (int)stage, (int)block, size);
    if (!fixture_has(expect, name))
        return;
    swin_attention_request request;
    swin_attention_request_init(&request, sizeof request);
    request.stage = stage;
    request.block = block;
    request.view = SWIN_ATTENTION_IN_WINDOW;
    request.head = SWIN_HEAD_EACH;
    request.window = SWIN_WINDOW_EACH;
    swin_attention_info info;
    swin_error err;
    check(swin_model_attention_info(model, image->height, image->width, &request, &info, sizeof info, &err), &err, one);
    int64_t shape[FIXTURE_MAX_RANK];
    const size_t count = fixture_shape(expect, name, shape);
    assert_int_equal(info.windows[0] * info.windows[1], shape[0]);
    assert_int_equal(info.heads, shape[1]);
    assert_int_equal(info.window[0] * info.window[1], shape[2]);
    assert_int_equal(info.weight_count, count);

    swin_attention attention;
    swin_attention_init(&attention, sizeof attention);
    attention.weights = malloc(count * sizeof *attention.weights);
    attention.weight_capacity = count;
    double *expected = fixture_doubles(expect, name), *values = malloc(count * sizeof *values);
    assert_non_null(attention.weights);
    assert_non_null(values);
    check(swin_session_attention(session, image, &request, &attention, &err), &err, one);
    for (size_t i = 0; i < count; i++)
        values[i] = attention.weights[i];
    const double distance = fixture_distance(values, expected, count);
    if (!(distance <= RELATIVE_L2))
        fail_msg("%s, %s: relative L2 distance %.2e", one->name, name, distance);
    blocks_compared++;
    free(values);
    free(expected);
    free(attention.weights);
}

static void run_size(const golden_case *one, const fixture *expect, int size, const swin_model *model,
                     swin_session *session)
{
    char name[64];
    snprintf(name, sizeof name, "size.%d", size);
    double *pair = fixture_doubles(expect, name);
    const int32_t height = (int32_t)pair[0], width = (int32_t)pair[1];
    free(pair);

    fixture *picture = fixture_open("image.safetensors");
    int64_t shape[FIXTURE_MAX_RANK];
    fixture_shape(picture, "image", shape);
    float *pixels = fixture_floats(picture, "image");
    fixture_close(picture);
    swin_image image;
    swin_image_init(&image, sizeof image);
    image.data = pixels;
    image.format = SWIN_PIXEL_F32_PLANAR;
    image.height = height;
    image.width = width;
    image.row_stride = shape[2] * (ptrdiff_t)sizeof *pixels;
    image.plane_stride = shape[1] * image.row_stride;

    swin_error err;
    swin_config config;
    check(swin_model_config(model, &config, sizeof config, &err), &err, one);
    swin_output_info infos[SWIN_MAX_STAGES];
    check(swin_model_output_info(model, height, width, infos, &err), &err, one);
    swin_maps maps;
    swin_maps_init(&maps, sizeof maps);
    for (int32_t s = 0; s < config.stages; s++) {
        maps.capacity[s] = (size_t)infos[s].channels * (size_t)infos[s].height * (size_t)infos[s].width;
        maps.data[s] = malloc(maps.capacity[s] * sizeof *maps.data[s]);
        assert_non_null(maps.data[s]);
    }
    check(swin_session_run(session, &image, 1, &maps, &err), &err, one);
    for (int32_t s = 0; s < config.stages; s++) {
        check_level(one, expect, size, &infos[s], maps.data[s]);
        free(maps.data[s]);
        for (int32_t b = 0; b < config.depths[s]; b++)
            check_attention(one, expect, size, model, session, &image, s, b);
    }
    free(pixels);
}

static void agrees(void **state)
{
    const golden_case *one = *state;
    char *path = fixture_path(one->weights);
    swin_error err;
    swin_model *model;
    check(swin_model_open(path, &one->params, &model, &err), &err, one);
    free(path);
    swin_session_params params;
    swin_session_params_init(&params, sizeof params);
    params.precision = SWIN_PRECISION_F32;
    params.threads = 2;
    swin_session *session;
    check(swin_session_create(model, &params, &session, &err), &err, one);

    fixture *expect = fixture_open(one->expect);
    int sizes = 0;
    for (char name[64]; snprintf(name, sizeof name, "size.%d", sizes), fixture_has(expect, name); sizes++)
        run_size(one, expect, sizes, model, session);
    assert_true(sizes > 0);
    fixture_close(expect);
    swin_session_destroy(session);
    swin_model_destroy(model);
}

static int attention_was_compared(void **state)
{
    (void)state;
    return blocks_compared > 0 ? 0 : -1;
}

int main(void)
{
    size_t count;
    golden_case *cases = golden_cases(&count);
    struct CMUnitTest *tests = calloc(count, sizeof *tests);
    if (tests == NULL)
        return 1;
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){.name = cases[i].name, .test_func = agrees, .initial_state = &cases[i]};
    const int failed = _cmocka_run_group_tests("golden", tests, count, NULL, attention_was_compared);
    free(tests);
    free(cases);
    return failed;
}
