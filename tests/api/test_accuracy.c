/* SPDX-License-Identifier: MIT */
/*
 * The contract on numbers: every kind of network, on images of every kind of size, against the whole backbone in double
 * precision; in float32 and bf16, with and without our own matrix products, with the kernels of every instruction set
 * of this machine.
 *
 * An argument selects cases by name: 'small*', 'small basic*', 'large*'. SWIN_TEST_VERBOSE=1 prints every figure.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/session.h"
#include "exec/shared.h"
#include "measure.h"
#include "memory_counted.h"
#include "picture.h"
#include "reference/from_model.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { STAGES = SWIN_MAX_STAGES, SIZES = 8 };

/* Zero means what the comment says. */
typedef struct accuracy_case {
    const char *name;
    int32_t version; /* 1                                          */
    int32_t lineage; /* detection                                  */
    int32_t embed, stages;
    int32_t patch;             /* 4                                          */
    int32_t depths[STAGES];    /* 2 in every stage                           */
    int32_t head_channels;     /* 32, as AMX wants them                      */
    int32_t square;            /* windows 7, or 8 in V2                      */
    int32_t window[STAGES][2]; /* as `square` says                           */
    double mlp_ratio;          /* 4                                          */
    int32_t sizes[SIZES][2];   /* of images, ended by zeros: see usual_sizes */
    bool no_qkv_bias, no_patch_norm, no_out_norm;
    int32_t out_norm;   /* bits; every level                          */
    int32_t pretrained; /* as the window                              */
    int32_t absolute[2], image_size[2];
    int32_t norm_period, norm_last;
    float scale;   /* of the image: 1                            */
    bool few_ways; /* not with every instruction set             */
    bool no_bf16;
} accuracy_case;

#define V2 .version = 2
#define ALL(...) .sizes = {{1, 1}, {4, 4}, {33, 17}, {97, 131}, __VA_ARGS__}
#define MICROSOFT .lineage = SWIN_LINEAGE_MICROSOFT
#define TORCHVISION .lineage = SWIN_LINEAGE_TORCHVISION
#define TIMM .lineage = SWIN_LINEAGE_TIMM
#define HUGGINGFACE .lineage = SWIN_LINEAGE_HUGGINGFACE
#define MMPRETRAIN .lineage = SWIN_LINEAGE_MMPRETRAIN

static const int32_t usual_sizes[SIZES][2] = {{1, 1}, {4, 4}, {33, 17}, {97, 131}};

static const accuracy_case cases[] = {
    /* windows */
    {"small basic: window 7", .embed = 32, .stages = 4, ALL({113, 226})},
    {"small basic: window 7, heads of 24", .embed = 24, .stages = 4, .head_channels = 24, ALL({113, 226})},
    {"small: window 4", .embed = 32, .stages = 3, .square = 4},
    {"small: window 4, heads of 12", .embed = 24, .stages = 3, .head_channels = 12, .square = 4},
    {"small: window 5", .embed = 32, .stages = 3, .square = 5},
    {"small: window 5, heads of 8", .embed = 24, .stages = 3, .head_channels = 8, .square = 5},
    {"small: window 8", .embed = 32, .stages = 2, .square = 8},
    {"small: window 12", .embed = 32, .stages = 3, .square = 12},
    {"small basic: window 12, heads of 16", .embed = 32, .stages = 3, .head_channels = 16, .square = 12},
    {"small: window 16", .embed = 32, .stages = 2, .square = 16},
    {"small: window 16, heads of 16", .embed = 16, .stages = 2, .head_channels = 16, .square = 16},
    {"small: window 24", .embed = 32, .stages = 2, .square = 24, .sizes = {{1, 1}, {97, 131}}},
    {"small: window 24, heads of 8", .embed = 16, .stages = 2, .head_channels = 8, .square = 24,
     .sizes = {{1, 1}, {97, 131}}},
    {"small: window 33, too large for AMX", .embed = 32, .stages = 1, .square = 33, .depths = {2},
     .sizes = {{60, 150}}},
    {"small: window 1", .embed = 32, .stages = 2, .square = 1},
    {"small: windows of no square", .embed = 32, .stages = 4, .window = {{4, 9}, {9, 4}, {1, 7}, {3, 2}}},
    {"small: windows of no square, heads of 8", .embed = 16, .stages = 4, .head_channels = 8,
     .window = {{4, 9}, {9, 4}, {1, 7}, {3, 2}}},
    {"small: large windows of no square", V2, .embed = 32, .stages = 2, .patch = 2, .window = {{17, 19}, {3, 64}},
     .sizes = {{33, 17}, {60, 131}}},
    {"small: the same, heads of 16", V2, .embed = 16, .stages = 2, .patch = 2, .head_channels = 16,
     .window = {{17, 19}, {3, 64}}, .sizes = {{33, 17}, {60, 131}}},
    /* other sizes of everything */
    {"small: one stage", .embed = 96, .stages = 1, .depths = {3}},
    {"small: one stage, heads of 8", .embed = 40, .stages = 1, .depths = {3}, .head_channels = 8},
    {"small: depths 1 and 5", .embed = 32, .stages = 2, .depths = {1, 5}},
    {"small: depths 3 1 4 2", .embed = 32, .stages = 4, .depths = {3, 1, 4, 2}, .square = 6},
    {"small: mlp ratio 1", .embed = 96, .stages = 2, .mlp_ratio = 1},
    {"small basic: mlp ratio 1, heads of 16", .embed = 48, .stages = 2, .head_channels = 16, .mlp_ratio = 1},
    {"small: mlp ratio 2.7", .embed = 32, .stages = 2, .mlp_ratio = 2.7},
    {"small: mlp ratio 0.5", .embed = 64, .stages = 3, .mlp_ratio = 0.5},
    {"small: one stage, mlp ratio 0.25", .embed = 128, .stages = 1, .mlp_ratio = 0.25},
    {"small: mlp ratio 7", .embed = 32, .stages = 2, .mlp_ratio = 7},
    {"small: patch 1", .embed = 32, .stages = 4, .patch = 1, .sizes = {{1, 1}, {33, 17}, {1, 60}, {60, 1}}},
    {"small: patch 2", .embed = 32, .stages = 3, .patch = 2, .sizes = {{1, 1}, {33, 17}, {97, 31}}},
    {"small: patch 5", .embed = 32, .stages = 3, .patch = 5, ALL({113, 226})},
    {"small basic: patch 5, heads of 12", .embed = 24, .stages = 3, .patch = 5, .head_channels = 12},
    {"small: patch 16", .embed = 32, .stages = 2, .patch = 16, .square = 3, ALL({113, 226})},
    {"small: heads of 1 channel", .embed = 8, .stages = 2, .head_channels = 1},
    {"small: heads of 2 channels", .embed = 2, .stages = 3, .head_channels = 2, .square = 4, .no_bf16 = true},
    {"small: heads of 64 channels", .embed = 64, .stages = 2, .head_channels = 64},
    {"small: no query bias", .embed = 32, .stages = 2, .no_qkv_bias = true},
    {"small: no patch norm", .embed = 32, .stages = 2, .no_patch_norm = true},
    {"small: no output norm", .embed = 32, .stages = 4, .no_out_norm = true},
    {"small basic: some output norms", .embed = 32, .stages = 4, .out_norm = 0xa},
    {"small: absolute position", .embed = 32, .stages = 2, .absolute = {14, 9}},
    {"small: inputs ten times as large", .embed = 32, .stages = 4, .scale = 10},
    /* wide enough for several parts of a layer */
    {"small: 448 and 896 channels", .embed = 448, .stages = 2, .depths = {2, 1}, .mlp_ratio = 2,
     .sizes = {{4, 4}, {33, 61}}},
    {"small: five stages", .embed = 16, .stages = 5, .head_channels = 16, .depths = {1, 1, 2, 1, 2}},
    {"small: 800 channels, one head", .embed = 800, .stages = 1, .head_channels = 800, .square = 5,
     .sizes = {{4, 4}, {33, 17}}},
    /* lineages, on maps smaller than the window, as large, larger, and of no multiple of it */
    {"small: microsoft", MICROSOFT, .embed = 32, .stages = 4, ALL({28, 28}, {28, 60}, {112, 112})},
    {"small basic: microsoft, heads of 16", MICROSOFT, .embed = 16, .stages = 4, .head_channels = 16,
     ALL({28, 28}, {28, 60}, {112, 112})},
    {"small: microsoft, large windows", MICROSOFT, .embed = 32, .stages = 3, .patch = 2, .square = 12},
    {"small: microsoft, larger windows", MICROSOFT, .embed = 16, .stages = 3, .patch = 2, .head_channels = 16,
     .square = 20, .sizes = {{31, 31}, {45, 37}}},
    {"small: torchvision", TORCHVISION, .embed = 32, .stages = 4,
     .sizes = {{4, 4}, {33, 17}, {97, 131}, {28, 61}, {112, 112}}},
    {"small: timm", TIMM, .embed = 32, .stages = 4, .image_size = {112, 112}, ALL({112, 112}, {97, 57})},
    {"small basic: timm, heads of 16", TIMM, .embed = 16, .stages = 4, .head_channels = 16, .image_size = {112, 112},
     ALL({112, 112}, {97, 57})},
    {"small: timm of another size", TIMM, .embed = 32, .stages = 3, .square = 6, .image_size = {36, 100},
     .sizes = {{97, 131}, {36, 100}}},
    {"small: hugging face", HUGGINGFACE, .embed = 32, .stages = 4, ALL({28, 28}, {28, 60})},
    {"small: mmpretrain", MMPRETRAIN, .embed = 32, .stages = 2, .sizes = {{28, 28}, {28, 60}, {97, 131}}},
    /* V2 */
    {"small basic: v2, window 8", V2, .embed = 32, .stages = 4, ALL({113, 226})},
    {"small basic: v2, window 8, heads of 24", V2, .embed = 24, .stages = 4, .head_channels = 24, ALL({113, 226})},
    {"small: v2, window 7", V2, .embed = 32, .stages = 3, .square = 7},
    {"small: v2, window 7, heads of 8", V2, .embed = 24, .stages = 3, .head_channels = 8, .square = 7},
    {"small: v2, window 12 of 8", V2, .embed = 32, .stages = 3, .square = 12, .pretrained = 8},
    {"small: v2, window 16", V2, .embed = 32, .stages = 2, .square = 16, .sizes = {{4, 4}, {97, 131}}},
    {"small basic: v2, window 16, heads of 16", V2, .embed = 16, .stages = 2, .head_channels = 16, .square = 16,
     .sizes = {{4, 4}, {97, 131}}},
    {"small: v2, window 24 of 12", V2, .embed = 32, .stages = 2, .square = 24, .pretrained = 12,
     .sizes = {{33, 17}, {97, 131}}},
    {"small: v2, window 24 of 12, heads of 16", V2, .embed = 16, .stages = 2, .head_channels = 16, .square = 24,
     .pretrained = 12, .sizes = {{33, 17}, {97, 131}}},
    {"small basic: v2, every second block normed", V2, .embed = 32, .stages = 3, .depths = {4, 3, 2}, .norm_period = 2},
    {"small: v2, last blocks normed", V2, .embed = 32, .stages = 3, .depths = {2, 3, 2}, .norm_last = 5},
    {"small: v2, no query bias", V2, .embed = 32, .stages = 2, .no_qkv_bias = true},
    {"small: v2, absolute position", V2, .embed = 32, .stages = 2, .absolute = {16, 16}},
    {"small: v2, microsoft", V2, MICROSOFT, .embed = 32, .stages = 4, ALL({32, 32}, {128, 128})},
    {"small: v2, torchvision", V2, TORCHVISION, .embed = 32, .stages = 4, .sizes = {{4, 4}, {33, 17}, {97, 131}}},
    {"small: v2, timm", V2, TIMM, .embed = 32, .stages = 4, .image_size = {128, 128}, ALL({128, 128})},
    {"small: v2, hugging face", V2, HUGGINGFACE, .embed = 32, .stages = 4, .image_size = {128, 128}, ALL({128, 128})},
    {"small: v2, 448 channels", V2, .embed = 448, .stages = 1, .sizes = {{4, 4}, {33, 61}}},
    /* large images, merged in several rounds */
    {"large: 800 x 1333", .embed = 32, .stages = 3, .depths = {2, 1, 2}, .head_channels = 16, .mlp_ratio = 1,
     .sizes = {{800, 1333}}, .few_ways = true},
    {"large: v2, 480 x 1333", V2, .embed = 32, .stages = 4, .depths = {1, 2, 1, 1}, .mlp_ratio = 1,
     .sizes = {{480, 1333}}, .few_ways = true},
    {"large: a row of pixels", .embed = 32, .stages = 3, .patch = 1, .depths = {1, 2, 1}, .mlp_ratio = 1,
     .sizes = {{1, 9001}, {2, 9001}}, .few_ways = true},
    {"large: a column of pixels", .embed = 32, .stages = 3, .patch = 1, .depths = {1, 2, 1}, .mlp_ratio = 1,
     .sizes = {{9001, 1}, {4501, 3}}, .few_ways = true},
    /* the published ones */
    {"large: swin-t", .embed = 96, .stages = 4, .depths = {2, 2, 6, 2}, ALL({113, 226}, {224, 224}), .few_ways = true},
    {"large: swin-s", .embed = 96, .stages = 4, .depths = {2, 2, 18, 2}, .sizes = {{97, 131}}, .few_ways = true},
    {"large: swin-b, window 12", .embed = 128, .stages = 4, .depths = {2, 2, 18, 2}, .square = 12, .sizes = {{33, 61}},
     .few_ways = true},
    {"large: swin-l", .embed = 192, .stages = 4, .depths = {2, 2, 18, 2}, .sizes = {{33, 17}}, .scale = 10,
     .few_ways = true},
    {"large: swin-v2-t", V2, .embed = 96, .stages = 4, .depths = {2, 2, 6, 2}, .sizes = {{1, 1}, {97, 131}, {128, 128}},
     .few_ways = true},
};

static swin_config config_of_case(const accuracy_case *c)
{
    swin_config config = {.struct_size = sizeof config,
                          .version = c->version > 0 ? c->version : 1,
                          .lineage = c->lineage > 0 ? c->lineage : SWIN_LINEAGE_DETECTION,
                          .patch_size = c->patch > 0 ? c->patch : 4,
                          .embed_dim = c->embed,
                          .stages = c->stages,
                          .qkv_bias = !c->no_qkv_bias,
                          .patch_norm = !c->no_patch_norm,
                          .out_norm = c->no_out_norm    ? 0
                                      : c->out_norm > 0 ? c->out_norm
                                                        : (1 << c->stages) - 1,
                          .block_norm_period = c->norm_period,
                          .block_norm_last = c->norm_last,
                          .mlp_ratio = c->mlp_ratio > 0 ? c->mlp_ratio : 4};
    const int32_t square = c->square > 0 ? c->square : config.version == 1 ? 7 : 8;
    for (int32_t s = 0; s < c->stages; s++) {
        config.depths[s] = c->depths[0] > 0 ? c->depths[s] : 2;
        config.heads[s] = (c->embed << s) / (c->head_channels > 0 ? c->head_channels : 32);
        for (int axis = 0; axis < 2; axis++) {
            config.window[s][axis] = c->window[0][0] > 0 ? c->window[s][axis] : square;
            config.pretrained_window[s][axis] = c->pretrained;
        }
    }
    memcpy(config.absolute_position, c->absolute, sizeof config.absolute_position);
    memcpy(config.image_size, c->image_size, sizeof config.image_size);
    return config;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Ways to compute
 */

/* The public way, or a session on a network of its own without our own products, with the kernels of one instruction
 * set. */
typedef struct way {
    int32_t precision;
    swin_session *public;
    sw_network *network; /* to be destroyed; or NULL */
    sw_session *session;
    char name[40];
} way;

static void fail_with(const accuracy_case *c, const swin_error *err)
{
    fail_msg("%s: %s", c->name, err->message);
}

static void add_public(way *w, swin_model *model, const accuracy_case *c, int32_t precision)
{
    swin_error err;
    swin_session_params params;
    swin_session_params_init(&params, sizeof params);
    params.precision = precision;
    params.threads = 2;
    *w = (way){.precision = precision};
    if (swin_session_create(model, &params, &w->public, &err) != SWIN_OK)
        fail_with(c, &err);
    swin_session_info info;
    assert_int_equal(swin_session_get_info(w->public, &info, sizeof info, &err), SWIN_OK);
    assert_int_equal(info.precision, precision);
    snprintf(w->name, sizeof w->name, "%s", info.matmul);
}

/* Sessions that share one network: the first owns it. */
static size_t add_with_kernels(way ways[], swin_model *model, const accuracy_case *c, int32_t precision)
{
    swin_error err;
    size_t count = 0;
    sw_network *network = NULL;
    const sw_type type = precision == SWIN_PRECISION_BF16 ? SW_BF16 : SW_F32;
    if (sw_network_create(sw_shared_model(model), type, false, 2, &network, &err) != SWIN_OK)
        fail_with(c, &err);
    for (int isa = SW_ISA_COUNT - 1; isa >= 0; isa--) {
        const sw_kernels *kernels = sw_kernels_for((sw_isa)isa);
        if (kernels == NULL || (c->few_ways && isa != (int)sw_isa_best()))
            continue;
        way *w = &ways[count];
        *w = (way){.precision = precision, .network = count == 0 ? network : NULL};
        snprintf(w->name, sizeof w->name, "oneDNN, %s", kernels->name);
        if (sw_session_create(network, kernels, 2, false, &w->session, &err) != SWIN_OK)
            fail_with(c, &err);
        count++;
    }
    return count;
}

static size_t make_ways(way ways[], swin_model *model, const accuracy_case *c)
{
    size_t count = 0;
    for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
        if (precision == SWIN_PRECISION_BF16 && c->no_bf16)
            break;
        add_public(&ways[count++], model, c, precision);
        count += add_with_kernels(&ways[count], model, c, precision);
    }
    return count;
}

static void destroy_ways(const way ways[], size_t count)
{
    for (size_t i = count; i-- > 0;) {
        swin_session_destroy(ways[i].public);
        sw_session_destroy(ways[i].session);
        sw_network_destroy(ways[i].network);
    }
}

static void run(const way *w, const accuracy_case *c, const swin_image *image, const swin_maps *maps)
{
    swin_error err;
    swin_status status;
    if (w->public != NULL) {
        status = swin_session_run(w->public, image, 1, maps, &err);
    } else {
        const sw_pixels pixels = {.data = image->data,
                                  .height = image->height,
                                  .width = image->width,
                                  .row_stride = 4 * image->width,
                                  .plane_stride = 4 * (ptrdiff_t)image->width * image->height,
                                  .planar_f32 = true};
        const int32_t canvas[2] = {image->height, image->width};
        status = sw_session_run(w->session, &pixels, 1, canvas, maps, &err);
    }
    if (status != SWIN_OK)
        fail_with(c, &err);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Comparison
 */

/* What double precision makes of an image, and how far rounded weights move that: the most of some tries, for a map of
 * few tokens may by chance be moved little by one. */
typedef struct expectation {
    reference_maps maps;
    double amplified[STAGES];
} expectation;

enum { TRIES = 4, FEW_PIXELS = 64 * 64 };

static expectation expect(const reference_weights *weights, const reference_weights *rounded, const swin_image *image)
{
    expectation e = {.amplified = {0}};
    int32_t rows, columns;
    double *pixels = reference_pixels(image, &rows, &columns);
    reference_forward(weights, pixels, rows, columns, &e.maps, NULL);
    const int tries = rounded[0].patch.weight == NULL ? 0 : rows * columns <= FEW_PIXELS ? TRIES : 1;
    for (int t = 0; t < tries; t++) {
        reference_maps moved;
        reference_forward(&rounded[t], pixels, rows, columns, &moved, NULL);
        for (int32_t s = 0; s < weights->config.stages; s++) {
            const double distance = distance_of(&moved.level[s], &e.maps.level[s]);
            e.amplified[s] = distance > e.amplified[s] ? distance : e.amplified[s];
        }
        reference_maps_release(&moved);
    }
    free(pixels);
    return e;
}

static void compare(const accuracy_case *c, const way *w, const swin_maps *maps, const expectation *e,
                    const int32_t size[2])
{
    const char *precision = w->precision == SWIN_PRECISION_BF16 ? "bf16" : "float32";
    for (int32_t s = 0; s < c->stages; s++) {
        const difference d = difference_of(maps->data[s], maps->layout == SWIN_LAYOUT_NHWC, &e->maps.level[s]);
        if (getenv("SWIN_TEST_VERBOSE") != NULL)
            printf("%-40s %5d x %5d level %d %-7s %-28s L2 %.2e max %.2e cosine %.7f amplified %.2e\n", c->name,
                   size[0], size[1], s, precision, w->name, d.relative_l2, d.relative_max, d.cosine, e->amplified[s]);
        if (!difference_is_small(&d, w->precision, e->amplified[s]))
            fail_msg(
                "%s, %d x %d, level %d, %s by %s: relative L2 %.3e, largest %.3e, cosine %.8f; rounded weights alone "
                "give %.3e",
                c->name, size[0], size[1], s, precision, w->name, d.relative_l2, d.relative_max, d.cosine,
                e->amplified[s]);
    }
}

static void case_is_accurate(void **state)
{
    const accuracy_case *c = *state;
    const swin_config config = config_of_case(c);
    swin_error err;
    swin_model *model;
    const swin_model_params params = {.struct_size = sizeof params, .precision = SWIN_PRECISION_F32};
    if (swin_model_create_random(&config, 20261129, &params, &model, &err) != SWIN_OK)
        fail_with(c, &err);
    reference_weights weights = reference_weights_from_model(sw_shared_model(model)), rounded[TRIES];
    memset(rounded, 0, sizeof rounded);
    for (int t = 0; t < TRIES && config.version == 2; t++) {
        rounded[t] = reference_weights_from_model(sw_shared_model(model));
        round_to_bf16(&rounded[t], (uint64_t)t);
    }
    way ways[2 * (1 + SW_ISA_COUNT)];
    const size_t count = make_ways(ways, model, c);

    const int32_t(*sizes)[2] = c->sizes[0][0] > 0 ? c->sizes : usual_sizes;
    for (int i = 0; i < SIZES && sizes[i][0] > 0; i++) {
        float *planes = picture_planes(sizes[i][0], sizes[i][1], (uint64_t)i, c->scale > 0 ? c->scale : 1);
        const swin_image image = picture_image(planes, sizes[i][0], sizes[i][1]);
        expectation e = expect(&weights, rounded, &image);
        for (size_t w = 0; w < count; w++) {
            swin_maps maps =
                picture_maps(model, sizes[i][0], sizes[i][1], 1, (1u << STAGES) - 1,
                             w % 2 == 0 ? SWIN_LAYOUT_NCHW : SWIN_LAYOUT_NHWC);
            run(&ways[w], c, &image, &maps);
            compare(c, &ways[w], &maps, &e, sizes[i]);
            picture_maps_release(&maps);
        }
        reference_maps_release(&e.maps);
        free(planes);
    }
    destroy_ways(ways, count);
    reference_weights_release(&weights);
    for (int t = 0; t < TRIES; t++)
        reference_weights_release(&rounded[t]);
    swin_model_destroy(model);
    assert_int_equal(memory_live_blocks(), 0);
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[COUNT_OF(cases)];
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        tests[i] = (struct CMUnitTest){cases[i].name, case_is_accurate, NULL, NULL, (void *)(uintptr_t)&cases[i]};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("accuracy", tests, NULL, NULL);
}
