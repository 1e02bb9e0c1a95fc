/* SPDX-License-Identifier: MIT */
/*
 * The attention weights that a session hands out against those of the backbone in double precision: every lineage, both
 * versions, blocks shifted and not, windows with padding and windows that shrink; whole windows, and single queries
 * laid out on the map, which are found here by padding and rolling a map of numbers.
 *
 * SWIN_TEST_VERBOSE=1 prints every figure.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attention.h"
#include "exec/session.h"
#include "exec/shared.h"
#include "config_of.h"
#include "measure.h"
#include "memory_counted.h"
#include "models.h"
#include "picture.h"
#include "reference/backbone.h"
#include "reference/from_model.h"
#include "reference/window.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { SIZES = 4 };

/* Zero means what the comment says. */
typedef struct attention_case {
    const char *name;
    int32_t version, lineage, stages;
    int32_t embed, heads, window;
    int32_t sizes[SIZES][2];
    int32_t image_size[2], pretrained, norm_period;
    int32_t wide_window[2]; /* of every stage, where it is no square */
    int32_t no_qkv_bias, patch;
} attention_case;

#define DETECTION SWIN_LINEAGE_DETECTION
#define MICROSOFT SWIN_LINEAGE_MICROSOFT
#define TORCHVISION SWIN_LINEAGE_TORCHVISION
#define TIMM SWIN_LINEAGE_TIMM
#define HUGGINGFACE SWIN_LINEAGE_HUGGINGFACE
#define MMPRETRAIN SWIN_LINEAGE_MMPRETRAIN

/* Heads of 32 channels are those that our own products want. */
static const attention_case cases[] = {
    {"detection", 1, DETECTION, 3, 32, 1, 7, .sizes = {{1, 1}, {113, 226}, {97, 131}, {56, 56}}},
    {"heads of 24", 1, DETECTION, 3, 48, 2, 7, .sizes = {{33, 17}, {97, 131}}},
    {"several parts", 1, DETECTION, 1, 800, 25, 5, .sizes = {{33, 17}}},
    {"several parts of oneDNN", 1, DETECTION, 1, 800, 2, 5, .sizes = {{33, 17}}},
    {"window 4", 1, DETECTION, 3, 32, 1, 4, .sizes = {{33, 17}, {97, 61}}},
    {"window 12", 1, DETECTION, 2, 64, 2, 12, .sizes = {{97, 131}}},
    {"window 12, heads of 16", 1, DETECTION, 2, 32, 2, 12, .sizes = {{97, 131}}},
    {"window 24, heads of 8", 1, DETECTION, 1, 16, 2, 24, .sizes = {{97, 131}}},
    {"window 4 x 9", 1, DETECTION, 3, 32, 1, 0, .sizes = {{33, 17}, {97, 131}}, .wide_window = {4, 9}},
    {"no query bias", 1, DETECTION, 2, 32, 1, 7, .sizes = {{61, 45}}, .no_qkv_bias = 1},
    {"patch 2", 1, DETECTION, 2, 32, 1, 7, .sizes = {{33, 29}}, .patch = 2},
    {"microsoft", 1, MICROSOFT, 3, 32, 1, 7, .sizes = {{28, 60}, {97, 61}, {56, 56}}},
    {"torchvision", 1, TORCHVISION, 3, 32, 1, 7, .sizes = {{28, 61}, {97, 79}, {56, 56}}},
    {"timm", 1, TIMM, 4, 32, 1, 7, .sizes = {{97, 57}}, .image_size = {112, 112}},
    {"timm, heads of 16", 1, TIMM, 3, 32, 2, 6, .sizes = {{97, 79}, {36, 100}}, .image_size = {36, 100}},
    {"hugging face", 1, HUGGINGFACE, 3, 32, 1, 7, .sizes = {{28, 60}, {97, 79}}},
    {"mmpretrain", 1, MMPRETRAIN, 2, 32, 1, 7, .sizes = {{28, 60}, {97, 131}}},
    {"v2", 2, DETECTION, 3, 32, 1, 8, .sizes = {{1, 1}, {97, 131}, {64, 64}}},
    {"v2, heads of 16", 2, DETECTION, 2, 32, 2, 8, .sizes = {{33, 17}, {97, 131}}},
    {"v2, window 16", 2, DETECTION, 2, 32, 1, 16, .sizes = {{97, 131}}, .norm_period = 2},
    {"v2, window 24 of 12, heads of 16", 2, DETECTION, 1, 16, 1, 24, .sizes = {{97, 131}}, .pretrained = 12},
    {"v2, no query bias", 2, DETECTION, 2, 32, 1, 7, .sizes = {{61, 45}}, .no_qkv_bias = 1},
    {"v2, microsoft", 2, MICROSOFT, 3, 32, 1, 8, .sizes = {{32, 61}, {97, 79}}},
    {"v2, torchvision", 2, TORCHVISION, 2, 32, 1, 8, .sizes = {{33, 17}, {97, 79}}},
    {"v2, timm", 2, TIMM, 4, 32, 1, 8, .sizes = {{97, 79}}, .image_size = {128, 128}},
    {"v2, hugging face", 2, HUGGINGFACE, 4, 32, 1, 8, .sizes = {{97, 79}}, .image_size = {128, 128}},
};

static swin_config config_of_case(const attention_case *c)
{
    swin_config config = config_of(c->version, c->stages, c->embed, c->heads, c->window);
    config.lineage = c->lineage;
    config.block_norm_period = c->norm_period;
    config.qkv_bias = !c->no_qkv_bias;
    config.patch_size = c->patch > 0 ? c->patch : 4;
    memcpy(config.image_size, c->image_size, sizeof config.image_size);
    for (int32_t s = 0; s < c->stages; s++) {
        for (int axis = 0; axis < 2; axis++) {
            config.pretrained_window[s][axis] = c->pretrained;
            if (c->wide_window[axis] > 0)
                config.window[s][axis] = c->wide_window[axis];
        }
    }
    return config;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Ways to ask
 */

/* The public way, or a session without our own products. */
typedef struct way {
    const char *name;
    int32_t precision;
    const swin_model *model;
    swin_session *public;
    sw_network *network;
    sw_session *session;
} way;

enum { WAYS = 4 };

static void check(swin_status status, const swin_error *err, const char *what)
{
    if (status != SWIN_OK)
        fail_msg("%s: %s", what, err->message);
}

static void make_ways(way ways[WAYS], swin_model *model)
{
    for (int i = 0; i < WAYS; i++) {
        way *w = &ways[i];
        *w = (way){.precision = i % 2 == 0 ? SWIN_PRECISION_F32 : SWIN_PRECISION_BF16, .model = model};
        if (i < 2) {
            w->name = i == 0 ? "f32" : "bf16";
            w->public = models_session(model, w->precision, 2);
            continue;
        }
        w->name = i == 2 ? "f32 of oneDNN, plain" : "bf16 of oneDNN";
        swin_error err;
        check(sw_network_create(sw_shared_model(model), i == 2 ? SW_F32 : SW_BF16, false, 2, &w->network, &err), &err,
              w->name);
        check(sw_session_create(w->network, sw_kernels_for(i == 2 ? SW_ISA_PLAIN : sw_isa_best()), 2, false,
                                &w->session, &err),
              &err, w->name);
    }
}

static void destroy_ways(const way ways[WAYS])
{
    for (int i = 0; i < WAYS; i++) {
        swin_session_destroy(ways[i].public);
        sw_session_destroy(ways[i].session);
        sw_network_destroy(ways[i].network);
    }
}

static swin_attention ask(const way *w, const swin_image *image, const swin_attention_request *request,
                          swin_attention_info *info)
{
    if (w->public != NULL)
        return attention_of(w->public, w->model, image, request, info);
    swin_error err;
    swin_attention attention = attention_room(w->model, image, request, info);
    const sw_pixels pixels = {.data = image->data,
                              .height = image->height,
                              .width = image->width,
                              .row_stride = 4 * image->width,
                              .plane_stride = 4 * (ptrdiff_t)image->width * image->height,
                              .planar_f32 = true};
    const int32_t canvas[2] = {image->height, image->width};
    check(sw_session_attention(w->session, &pixels, canvas, request, info, &attention, &err), &err, w->name);
    return attention;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Comparison
 */

/* What double precision says of one block of one image; and in V2, which amplifies such things, how far that moves when
 * nothing but the weights is rounded to bf16. */
typedef struct expectation {
    const attention_case *c;
    const swin_image *image;
    reference_attention attention;
    reference_layout layout;
    reference_rule rule;
    int32_t map[2];
    double amplified;
} expectation;

static double distance(const double *a, const double *b, size_t count)
{
    double difference = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        squares += b[i] * b[i];
    }
    return sqrt(difference / squares);
}

static size_t weight_count(const reference_attention *a)
{
    return (size_t)a->windows * (size_t)a->heads * (size_t)a->tokens * (size_t)a->tokens;
}

static expectation expect(const attention_case *c, const reference_weights *weights, const reference_weights *rounded,
                          const swin_image *image, int32_t stage, int32_t block)
{
    expectation e = {.c = c, .image = image, .attention = {.stage = stage, .block = block}};
    reference_attention moved = e.attention;
    int32_t height, width;
    double *pixels = reference_pixels(image, &height, &width);
    reference_maps maps;
    reference_forward(weights, pixels, height, width, &maps, &e.attention);
    if (weights->config.version == 2) {
        reference_maps other;
        reference_forward(rounded, pixels, height, width, &other, &moved);
        e.amplified = distance(moved.probabilities, e.attention.probabilities, weight_count(&moved));
        free(moved.probabilities);
        reference_maps_release(&other);
    }
    free(pixels);
    e.map[0] = maps.level[stage].height;
    e.map[1] = maps.level[stage].width;
    reference_maps_release(&maps);
    e.rule = reference_rule_of(&weights->config, stage, block, e.map[0], e.map[1], height, width);
    e.layout = reference_layout_new(&e.rule, e.map[0], e.map[1]);
    return e;
}

static void compare(const expectation *e, const way *w, const float *weights, const double *expected, size_t count,
                    double allowed, const char *what)
{
    double *values = reference_alloc(count, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = weights[i];
    const double found = distance(values, expected, count);
    free(values);
    if (getenv("SWIN_TEST_VERBOSE") != NULL)
        printf("%-32s %3d x %3d stage %d block %d %-20s %-24s %.2e of %.2e\n", e->c->name, e->image->height,
               e->image->width, e->attention.stage, e->attention.block, w->name, what, found, allowed);
    if (!(found <= allowed))
        fail_msg("%s, %d x %d, stage %d, block %d, %s, %s: relative L2 %.3e of %.3e", e->c->name, e->image->height,
                 e->image->width, e->attention.stage, e->attention.block, w->name, what, found, allowed);
}

/* Every window and head at once: the weights are handed out. */
static swin_attention check_all_windows(const expectation *e, const way *w, swin_attention_request request)
{
    const reference_attention *a = &e->attention;
    const size_t slots = (size_t)a->tokens;
    request.view = SWIN_ATTENTION_IN_WINDOW;
    request.window = SWIN_WINDOW_EACH;
    request.head = SWIN_HEAD_EACH;
    swin_attention_info info;
    swin_attention each = ask(w, e->image, &request, &info);
    assert_int_equal(info.windows[0] * info.windows[1], a->windows);
    assert_int_equal(info.heads, a->heads);
    assert_memory_equal(info.map, e->map, sizeof info.map);
    assert_memory_equal(info.window, e->rule.window, sizeof info.window);
    assert_memory_equal(info.shift, e->rule.shift, sizeof info.shift);
    assert_int_equal(info.weight_count, (size_t)a->windows * (size_t)a->heads * slots * slots);
    assert_int_equal(info.token_count, (size_t)a->windows * slots);
    /* The contract for float32; bf16 as for maps, where measure.h says why. */
    const double allowed = w->precision == SWIN_PRECISION_F32 ? 1e-5 : fmax(1.5e-2, 2.7 * e->amplified);
    compare(e, w, each.weights, a->probabilities, info.weight_count, allowed, "all windows");
    assert_memory_equal(each.tokens, e->layout.token, info.token_count * sizeof *each.tokens);

    /* one window and head gives the very same numbers */
    request.window = a->windows - 1;
    request.head = a->heads - 1;
    swin_attention one = ask(w, e->image, &request, &info);
    assert_int_equal(info.weight_count, slots * slots);
    assert_int_equal(info.token_count, slots);
    const size_t last = (size_t)(a->windows * a->heads - 1) * slots * slots;
    assert_memory_equal(one.weights, each.weights + last, slots * slots * sizeof(float));
    assert_memory_equal(one.tokens, e->layout.token + (size_t)request.window * slots, slots * sizeof *one.tokens);
    attention_release(&one);

    request.window = a->windows / 2;
    request.head = SWIN_HEAD_MEAN;
    swin_attention mean = ask(w, e->image, &request, &info);
    double *expected = reference_alloc(slots * slots, sizeof *expected);
    for (size_t h = 0; h < (size_t)a->heads; h++) {
        const double *matrix = a->probabilities + ((size_t)(request.window * a->heads) + h) * slots * slots;
        for (size_t i = 0; i < slots * slots; i++)
            expected[i] += matrix[i] / a->heads;
    }
    if (w->precision == SWIN_PRECISION_F32)
        compare(e, w, mean.weights, expected, slots * slots, 1e-5, "mean of a window");
    free(expected);
    attention_release(&mean);
    return each;
}

/* Where double precision finds a cell. */
static void find(const expectation *e, int32_t cell, int32_t *window, int32_t *slot)
{
    int32_t at = 0;
    while (e->layout.token[at] != cell)
        at++;
    *window = at / e->attention.tokens;
    *slot = at % e->attention.tokens;
}

/* A query's weights on the map: those of its row in the window, bit for bit, where their keys stand, and nothing
 * elsewhere. `windows`: the weights of all windows and heads. */
static void check_query(const expectation *e, const way *w, swin_attention_request request, int32_t row, int32_t column,
                        const float *windows)
{
    const reference_attention *a = &e->attention;
    request.query[0] = row;
    request.query[1] = column;
    request.head = SWIN_HEAD_EACH;
    swin_attention_info info;
    swin_attention each = ask(w, e->image, &request, &info);
    const size_t cells = (size_t)e->map[0] * (size_t)e->map[1], slots = (size_t)a->tokens, heads = (size_t)a->heads;
    int32_t window, slot;
    find(e, row / info.stride * e->map[1] + column / info.stride, &window, &slot);
    assert_int_equal(info.cell[0], row / info.stride);
    assert_int_equal(info.cell[1], column / info.stride);
    assert_int_equal(info.query_window, window);
    assert_int_equal(info.query_slot, slot);
    assert_int_equal(info.weight_count, heads * cells);
    const int32_t *tokens = e->layout.token + (size_t)window * slots;
    assert_memory_equal(each.tokens, tokens, slots * sizeof *each.tokens);

    float *expected = calloc(heads * cells, sizeof *expected);
    double *mean = reference_alloc(cells, sizeof *mean);
    assert_non_null(expected);
    for (size_t h = 0; h < heads; h++) {
        const size_t at = (((size_t)window * heads + h) * slots + (size_t)slot) * slots;
        for (size_t i = 0; i < slots; i++) {
            if (tokens[i] < 0)
                continue;
            expected[h * cells + (size_t)tokens[i]] = windows[at + i];
            mean[tokens[i]] += a->probabilities[at + i] / a->heads;
        }
    }
    assert_memory_equal(each.weights, expected, heads * cells * sizeof *expected);

    request.head = a->heads - 1;
    swin_attention one = ask(w, e->image, &request, &info);
    assert_int_equal(info.weight_count, cells);
    assert_memory_equal(one.weights, expected + (heads - 1) * cells, cells * sizeof *expected);

    request.head = SWIN_HEAD_MEAN;
    swin_attention averaged = ask(w, e->image, &request, &info);
    assert_int_equal(info.weight_count, cells);
    for (size_t i = 0; i < cells; i++)
        assert_true(mean[i] != 0 || averaged.weights[i] == 0.0f);
    if (w->precision == SWIN_PRECISION_F32)
        compare(e, w, averaged.weights, mean, cells, 1e-5, "mean of a query");
    free(expected);
    free(mean);
    attention_release(&each);
    attention_release(&one);
    attention_release(&averaged);
}

static void check_block(const expectation *e, const way *w)
{
    swin_attention_request request;
    swin_attention_request_init(&request, sizeof request);
    request.stage = e->attention.stage;
    request.block = e->attention.block;
    swin_attention all = check_all_windows(e, w, request);
    /* of a torchvision map, pixels beyond the last whole patch have no cell */
    const int32_t patch = e->c->patch > 0 ? e->c->patch : 4;
    const int32_t bottom = e->c->lineage == TORCHVISION ? e->image->height / patch * patch : e->image->height;
    const int32_t right = e->c->lineage == TORCHVISION ? e->image->width / patch * patch : e->image->width;
    check_query(e, w, request, 0, 0, all.weights);
    check_query(e, w, request, bottom - 1, right - 1, all.weights);
    check_query(e, w, request, bottom - 1, right / 3, all.weights);
    check_query(e, w, request, bottom / 2, right / 2, all.weights);
    attention_release(&all);
}

static void weights_are_the_reference_s(void **state)
{
    const attention_case *c = *state;
    const swin_config config = config_of_case(c);
    const swin_model_params params = {.struct_size = sizeof params, .precision = SWIN_PRECISION_F32};
    swin_error err;
    swin_model *model;
    check(swin_model_create_random(&config, 20261129, &params, &model, &err), &err, c->name);
    reference_weights weights = reference_weights_from_model(sw_shared_model(model));
    reference_weights rounded = reference_weights_from_model(sw_shared_model(model));
    round_to_bf16(&rounded, 0);
    way ways[WAYS];
    make_ways(ways, model);
    for (int i = 0; i < SIZES && c->sizes[i][0] > 0; i++) {
        float *planes = picture_planes(c->sizes[i][0], c->sizes[i][1], (uint64_t)i, 1);
        const swin_image image = picture_image(planes, c->sizes[i][0], c->sizes[i][1]);
        for (int32_t s = 0; s < config.stages; s++) {
            for (int32_t b = 0; b < config.depths[s]; b++) {
                expectation e = expect(c, &weights, &rounded, &image, s, b);
                for (int w = 0; w < WAYS; w++)
                    check_block(&e, &ways[w]);
                reference_layout_release(&e.layout);
                free(e.attention.probabilities);
            }
        }
        free(planes);
    }
    destroy_ways(ways);
    reference_weights_release(&weights);
    reference_weights_release(&rounded);
    swin_model_destroy(model);
    assert_int_equal(memory_live_blocks(), 0);
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[COUNT_OF(cases)];
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        tests[i] = (struct CMUnitTest){cases[i].name, weights_are_the_reference_s, NULL, NULL,
                                       (void *)(uintptr_t)&cases[i]};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
