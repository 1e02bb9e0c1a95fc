/* SPDX-License-Identifier: MIT */
/*
 * The double-precision reference against what the published packages compute: first with weights read from the files
 * here, in double precision throughout; then with weights read by the library, for every case of cases.txt.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "direct.h"
#include "fixture.h"
#include "memory_counted.h"
#include "reference/backbone.h"
#include "reference/from_model.h"

/* Both sides compute in double precision and differ in the order of their sums alone. These networks have 6 blocks of 6
 * sums of up to 96 terms: 2^-53 * 6 * 6 * 96 = 4e-13 were all roundings to fall the same way. Seen: less than 1e-14. */
#define DOUBLE_TOLERANCE 1e-12

/* Position biases that the library computes rather than copies (V2; resized tables) come as float: up to 16 in size,
 * they are wrong by 2^-21 at most, which is the relative error of an attention weight; some packages resize tables in
 * single precision, no better. A softmax doubles it, and 6 blocks add up: 6 * 2 * 2^-21 = 6e-6. Seen: 6e-7. */
#define SINGLE_TOLERANCE 6e-6

/* The top left corner of the picture that all expectations were computed from. */
static double *crop(int32_t height, int32_t width)
{
    fixture *file = fixture_open("image.safetensors");
    int64_t shape[FIXTURE_MAX_RANK];
    fixture_shape(file, "image", shape);
    float *picture = fixture_floats(file, "image");
    const swin_image image = {.struct_size = sizeof image, .data = picture, .format = SWIN_PIXEL_F32_PLANAR,
                              .height = height, .width = width, .row_stride = shape[2] * (ptrdiff_t)sizeof(float),
                              .plane_stride = shape[1] * shape[2] * (ptrdiff_t)sizeof(float)};
    assert_true(height <= shape[1] && width <= shape[2]);
    double *pixels = reference_pixels(&image, &height, &width);
    free(picture);
    fixture_close(file);
    return pixels;
}

static void check_map(const char *title, double tolerance, const fixture *expect, int size, int level,
                      const reference_map *map)
{
    char name[32];
    int64_t shape[FIXTURE_MAX_RANK];
    snprintf(name, sizeof name, "level%d.%d", level, size);
    const size_t count = fixture_shape(expect, name, shape);
    assert_int_equal(map->channels, shape[0]);
    assert_int_equal(map->height, shape[1]);
    assert_int_equal(map->width, shape[2]);
    double *values = fixture_doubles(expect, name);
    const double distance = fixture_distance(map->data, values, count);
    free(values);
    if (!(distance <= tolerance))
        fail_msg("%s, %s: relative L2 distance %.2e, allowed %.0e", title, name, distance, tolerance);
}

static void check_attention(const char *title, double tolerance, const fixture *expect, int size,
                            const reference_weights *weights, const double *pixels, int32_t height, int32_t width)
{
    for (int32_t s = 0; s < weights->config.stages; s++) {
        for (int32_t b = 0; b < weights->config.depths[s]; b++) {
            char name[64];
            snprintf(name, sizeof name, "attention.%d.%d.%d", (int)s, (int)b, size);
            if (!fixture_has(expect, name))
                continue;
            reference_attention look = {.stage = s, .block = b};
            reference_maps maps;
            reference_forward(weights, pixels, height, width, &maps, &look);
            int64_t shape[FIXTURE_MAX_RANK];
            const size_t count = fixture_shape(expect, name, shape);
            assert_int_equal(look.windows, shape[0]);
            assert_int_equal(look.heads, shape[1]);
            assert_int_equal(look.tokens, shape[2]);
            double *values = fixture_doubles(expect, name);
            const double distance = fixture_distance(look.probabilities, values, count);
            if (!(distance <= tolerance))
                fail_msg("%s, %s: relative L2 distance %.2e, allowed %.0e", title, name, distance, tolerance);
            free(values);
            free(look.probabilities);
            reference_maps_release(&maps);
        }
    }
}

static void check_sizes(const char *title, double tolerance, const char *expectation, const reference_weights *weights)
{
    fixture *expect = fixture_open(expectation);
    int sizes = 0;
    for (char name[64]; snprintf(name, sizeof name, "size.%d", sizes), fixture_has(expect, name); sizes++) {
        double *size = fixture_doubles(expect, name);
        const int32_t height = (int32_t)size[0], width = (int32_t)size[1];
        double *pixels = crop(height, width);
        reference_maps maps;
        reference_forward(weights, pixels, height, width, &maps, NULL);
        for (int level = 0; level < weights->config.stages; level++)
            check_map(title, tolerance, expect, sizes, level, &maps.level[level]);
        check_attention(title, tolerance, expect, sizes, weights, pixels, height, width);
        reference_maps_release(&maps);
        free(pixels);
        free(size);
    }
    assert_true(sizes > 0);
    fixture_close(expect);
}

static void agrees_through_the_library(void **state)
{
    const golden_case *one = *state;
    const size_t live = memory_live_blocks();
    char *path = fixture_path(one->weights);
    sw_model *model = NULL;
    swin_error err = {0};
    if (sw_model_open(path, &one->params, &model, &err) != SWIN_OK)
        fail_msg("%s: %s", one->name, err.message);
    reference_weights weights = reference_weights_from_model(model);
    check_sizes(one->name, one->single ? SINGLE_TOLERANCE : DOUBLE_TOLERANCE, one->expect, &weights);
    reference_weights_release(&weights);
    sw_model_destroy(model);
    free(path);
    assert_int_equal(memory_live_blocks(), live);
}

/* The networks that weights.py calls V1 and V2. */
static const struct {
    const char *weights, *expect;
    int32_t lineage, out_norm, pretrained[3];
    int32_t image_size;
} direct_cases[] = {
    {"v1-detection.safetensors", "v1-detection.expect.safetensors", SWIN_LINEAGE_DETECTION, 7, {0}, 0},
    {"v1-detection.safetensors", "v1-mmpretrain.expect.safetensors", SWIN_LINEAGE_MMPRETRAIN, 7, {0}, 0},
    {"v1-detection.safetensors", "v1-huggingface.expect.safetensors", SWIN_LINEAGE_HUGGINGFACE, 0, {0}, 0},
    {"v1-detection.safetensors", "v1-microsoft.expect.safetensors", SWIN_LINEAGE_MICROSOFT, 0, {0}, 0},
    {"v1-detection.safetensors", "v1-torchvision.expect.safetensors", SWIN_LINEAGE_TORCHVISION, 0, {0}, 0},
    {"v1-detection.safetensors", "v1-timm.expect.safetensors", SWIN_LINEAGE_TIMM, 0, {0}, 64},
    {"v2-detection.safetensors", "v2-detection.expect.safetensors", SWIN_LINEAGE_DETECTION, 7, {0}, 0},
    {"v2-detection.safetensors", "v2-mmpretrain.expect.safetensors", SWIN_LINEAGE_MMPRETRAIN, 7, {0}, 0},
    {"v2-detection.safetensors", "v2-huggingface.expect.safetensors", SWIN_LINEAGE_HUGGINGFACE, 0, {0}, 64},
    {"v2-detection.safetensors", "v2-huggingface-32.expect.safetensors", SWIN_LINEAGE_HUGGINGFACE, 0, {0}, 32},
    {"v2-detection.safetensors", "v2-microsoft.expect.safetensors", SWIN_LINEAGE_MICROSOFT, 0, {0}, 0},
    {"v2-detection.safetensors", "v2-pretrained.expect.safetensors", SWIN_LINEAGE_MICROSOFT, 0, {3, 3, 2}, 0},
    {"v2-detection.safetensors", "v2-torchvision.expect.safetensors", SWIN_LINEAGE_TORCHVISION, 0, {0}, 0},
    {"v2-detection.safetensors", "v2-timm.expect.safetensors", SWIN_LINEAGE_TIMM, 0, {0}, 64},
};

static void agrees_directly(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof direct_cases / sizeof *direct_cases; i++) {
        const int v1 = strstr(direct_cases[i].weights, "v1") != NULL;
        fixture *file = fixture_open(direct_cases[i].weights);
        direct_origin origin = {file, {.version = v1 ? 1 : 2, .lineage = direct_cases[i].lineage, .patch_size = 4,
                                       .embed_dim = 8, .stages = 3, .heads = {2, 2, 4}, .qkv_bias = 1, .patch_norm = 1,
                                       .out_norm = direct_cases[i].out_norm, .mlp_ratio = 2,
                                       .image_size = {direct_cases[i].image_size, direct_cases[i].image_size}}};
        for (int32_t s = 0; s < 3; s++) {
            origin.config.depths[s] = v1 || s == 1 ? 2 : 1;
            for (int axis = 0; axis < 2; axis++) {
                origin.config.window[s][axis] = 4;
                origin.config.pretrained_window[s][axis] = direct_cases[i].pretrained[s];
            }
        }
        reference_weights weights = direct_weights(&origin);
        check_sizes(direct_cases[i].expect, DOUBLE_TOLERANCE, direct_cases[i].expect, &weights);
        reference_weights_release(&weights);
        fixture_close(file);
    }
}

int main(void)
{
    size_t count;
    golden_case *cases = golden_cases(&count);
    struct CMUnitTest *tests = reference_alloc(count + 1, sizeof *tests);
    tests[0] = (struct CMUnitTest)cmocka_unit_test(agrees_directly);
    for (size_t i = 0; i < count; i++)
        tests[i + 1] = (struct CMUnitTest){.name = cases[i].name, .test_func = agrees_through_the_library,
                                           .initial_state = &cases[i]};
    const int failed = _cmocka_run_group_tests("reference", tests, count + 1, NULL, NULL);
    free(tests);
    free(cases);
    return failed;
}
