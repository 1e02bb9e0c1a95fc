/* SPDX-License-Identifier: MIT */
/*
 * Sizes are no multiples of any vector, so that ends are met too. Tolerances are for what is grossly wrong; how exact
 * kernels are, tests say.
 */
#include "selftest.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "amx.h"

enum {
    ROWS = 23,
    CHANNELS = 72,
    WIDTH = 36,           /* of a panel */
    TOKENS = 49,
    STRIDE = 64,          /* of a row of scores */
    HEAD = 32,
    PATCH = 3,
    GRID = 6,             /* patches in a row */
    SIDE = 17,            /* of the image: its last patches are cut */
    PATCHES = 21,
    MAP_TOKENS = 40,
    AMX_ROWS = 32,        /* 23, in whole tiles */
    AMX_IN = 96,
    AMX_OUT = 64,
    COUNT = 16384         /* numbers of each array, the largest of which is that of the merge */
};

/* Two float32 results of the same formula; bf16 ones may round to neighbours, 2^-7 apart. */
#define F32_TOLERANCE 2e-5
#define BF16_TOLERANCE 0x1.1p-7

/* What a check works with; results are float32 or bf16. */
typedef struct bench {
    const sw_kernels *kernels, *plain;
    sw_type type;
    float a[COUNT], b[COUNT], c[COUNT];
    float got[COUNT], want[COUNT];
    int32_t index[4 * ROWS], region[TOKENS];
    float weight[4 * CHANNELS], bias[4 * CHANNELS];
    uint8_t pixels[SIDE * SIDE * 3];
    uint16_t narrow[COUNT];
    _Alignas(64) char packed[AMX_OUT / SW_AMX_WIDTH * (AMX_IN * 2 * 64 * 4)];
    _Alignas(64) char scratch[1 << 17];
} bench;

static float next_number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(int32_t)*state * 0x1p-30f;
}

static void fill(bench *x)
{
    uint32_t state = 1;
    for (int i = 0; i < COUNT; i++) {
        x->a[i] = next_number(&state);
        x->b[i] = next_number(&state);
        x->c[i] = x->got[i] = x->want[i] = next_number(&state);
    }
    for (int i = 0; i < 4 * CHANNELS; i++) {
        x->weight[i] = 1 + next_number(&state) / 4;
        x->bias[i] = next_number(&state) / 4;
    }
    for (int i = 0; i < SIDE * SIDE * 3; i++)
        x->pixels[i] = (uint8_t)(i * 37 + i / 7);
    /* A permutation with gaps, as padding has them. */
    for (int i = 0; i < 4 * ROWS; i++)
        x->index[i] = i % 11 == 5 ? -1 : i % 2 == 0 ? i + 1 : i - 1;
    for (int i = 0; i < TOKENS; i++)
        x->region[i] = i % 7 / 4;
}

static float widen(uint16_t value)
{
    const uint32_t bits = (uint32_t)value << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

/* Element i of an array of a type. */
static double number(const void *array, sw_type type, size_t i)
{
    if (type == SW_F32)
        return ((const float *)array)[i];
    uint16_t narrow;
    memcpy(&narrow, (const char *)array + i * sizeof narrow, sizeof narrow);
    return widen(narrow);
}

static double difference(double got, double want, double tolerance)
{
    if (isnan(got) && isnan(want)) /* what neither has written */
        return 0;
    const double error = fabs(got - want) / (tolerance * (1 + fabs(want)));
    return isfinite(error) ? error : DBL_MAX;
}

static double compare(const bench *x, sw_type type, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, difference(number(x->got, type, i), number(x->want, type, i),
                                           type == SW_BF16 ? BF16_TOLERANCE : F32_TOLERANCE));
    return largest;
}

/* Activations of the type asked for, made of float32 by plain C. */
static const void *activations(bench *x, const float *values, size_t count)
{
    if (x->type == SW_F32)
        return values;
    x->plain->to_bf16(x->narrow, values, count);
    return x->narrow;
}

static sw_norm norm_of(const bench *x)
{
    return (sw_norm){.weight = x->weight, .bias = x->bias, .eps = 1e-5f};
}

static sw_panels panels_of(void *data, sw_type type)
{
    return (sw_panels){.data = data, .type = type, .width = WIDTH, .stride = ROWS * WIDTH};
}

/* ------------------------------------------------------------------------------------------------------------------
 * Element-wise kernels: each twice, and compared
 */

static double check_gather(bench *x)
{
    const sw_norm norm = norm_of(x);
    const sw_panels got = panels_of(x->got, x->type), want = panels_of(x->want, x->type);
    x->kernels->gather(&got, x->a, x->index, ROWS, CHANNELS, &norm);
    x->plain->gather(&want, x->a, x->index, ROWS, CHANNELS, &norm);
    return compare(x, x->type, ROWS * CHANNELS);
}

/* The map and the panels, one behind the other. */
static double check_residual(bench *x)
{
    const sw_norm norm = norm_of(x);
    const sw_panels y = {.data = (void *)activations(x, x->b, ROWS * CHANNELS), .type = x->type, .width = WIDTH,
                         .stride = ROWS * WIDTH};
    sw_panels dst = {.type = x->type, .width = WIDTH, .stride = ROWS * WIDTH};
    float *const got = x->got, *const want = x->want;
    double largest = 0;
    for (int post = 0; post < 2; post++) {
        dst.data = got + COUNT / 2;
        x->kernels->residual(got, x->index, &y, post ? &norm : NULL, ROWS, CHANNELS, &dst, &norm);
        dst.data = want + COUNT / 2;
        x->plain->residual(want, x->index, &y, post ? &norm : NULL, ROWS, CHANNELS, &dst, &norm);
        largest = fmax(largest, compare(x, SW_F32, ROWS * CHANNELS));
        const double tolerance = x->type == SW_BF16 ? BF16_TOLERANCE : F32_TOLERANCE;
        for (size_t i = 0; i < ROWS * CHANNELS; i++)
            largest = fmax(largest, difference(number(got + COUNT / 2, x->type, i),
                                               number(want + COUNT / 2, x->type, i), tolerance));
    }
    return largest;
}

static double check_merge(bench *x)
{
    const sw_norm norm = norm_of(x);
    sw_panels got = {.data = x->got, .type = x->type, .width = 2 * CHANNELS, .stride = ROWS * 2 * CHANNELS};
    sw_panels want = got;
    want.data = x->want;
    x->kernels->gather_merge(&got, x->a, x->index, ROWS, CHANNELS, &norm);
    x->plain->gather_merge(&want, x->a, x->index, ROWS, CHANNELS, &norm);
    return compare(x, x->type, ROWS * 4 * CHANNELS);
}

static double check_patches(bench *x)
{
    const sw_pixels pixels = {.data = x->pixels,
                              .height = SIDE,
                              .width = SIDE,
                              .row_stride = SIDE * 3,
                              .scale = {0.017f, 0.0175f, 0.0174f},
                              .shift = {-2.1f, -2.0f, -1.8f}};
    x->kernels->gather_patches(x->got, x->type, &pixels, PATCH, GRID, 5, PATCHES);
    x->plain->gather_patches(x->want, x->type, &pixels, PATCH, GRID, 5, PATCHES);
    return compare(x, x->type, PATCHES * 3 * PATCH * PATCH);
}

static double check_map(bench *x)
{
    const sw_norm norm = norm_of(x);
    double largest = 0;
    for (int nhwc = 0; nhwc < 2; nhwc++) {
        x->kernels->store_map(x->got, nhwc, MAP_TOKENS, x->a, 7, ROWS, CHANNELS, &norm);
        x->plain->store_map(x->want, nhwc, MAP_TOKENS, x->a, 7, ROWS, CHANNELS, &norm);
        largest = fmax(largest, compare(x, SW_F32, MAP_TOKENS * CHANNELS));
    }
    return largest;
}

static double check_gather_head(bench *x)
{
    const void *src = activations(x, x->a, TOKENS * CHANNELS);
    double largest = 0;
    for (int normalise = 0; normalise < 2; normalise++) {
        x->kernels->gather_head(x->got, x->type, src, x->type, CHANNELS, x->index, x->bias, TOKENS, HEAD, normalise,
                                3.5f);
        x->plain->gather_head(x->want, x->type, src, x->type, CHANNELS, x->index, x->bias, TOKENS, HEAD, normalise,
                              3.5f);
        largest = fmax(largest, compare(x, x->type, TOKENS * HEAD));
    }
    return largest;
}

static double check_scatter_head(bench *x)
{
    const void *src = activations(x, x->a, TOKENS * HEAD);
    x->kernels->scatter_head(x->got, x->type, CHANNELS, src, x->index, TOKENS, HEAD);
    x->plain->scatter_head(x->want, x->type, CHANNELS, src, x->index, TOKENS, HEAD);
    return compare(x, x->type, TOKENS * CHANNELS);
}

static double check_softmax(bench *x)
{
    for (int i = 0; i < TOKENS * STRIDE; i++)
        x->c[i] *= 4;
    x->kernels->softmax(x->got, x->type, x->c, x->b, TOKENS, x->region, -100, 0, TOKENS, TOKENS, STRIDE);
    x->plain->softmax(x->want, x->type, x->c, x->b, TOKENS, x->region, -100, 0, TOKENS, TOKENS, STRIDE);
    return compare(x, x->type, TOKENS * STRIDE);
}

static double check_gelu(bench *x)
{
    const size_t count = ROWS * CHANNELS + 5;
    for (size_t i = 0; i < count; i++)
        x->a[i] *= 3;
    const void *src = activations(x, x->a, count);
    x->kernels->gelu(x->got, x->type, src, x->type, count);
    x->plain->gelu(x->want, x->type, src, x->type, count);
    return compare(x, x->type, count);
}

static bool same_bytes(const void *a, const void *b, size_t count)
{
    return memcmp(a, b, count) == 0;
}

static double check_conversion(bench *x)
{
    const size_t count = ROWS * CHANNELS + 5;
    if (x->type == SW_BF16) {
        x->kernels->to_bf16((uint16_t *)(void *)x->got, x->a, count);
        x->plain->to_bf16((uint16_t *)(void *)x->want, x->a, count);
        /* Both round to nearest even: the same bits. */
        return same_bytes(x->got, x->want, count * sizeof(uint16_t)) ? 0 : DBL_MAX;
    }
    x->plain->to_bf16(x->narrow, x->a, count);
    x->kernels->from_bf16(x->got, x->narrow, count);
    x->plain->from_bf16(x->want, x->narrow, count);
    return same_bytes(x->got, x->want, count * sizeof(float)) ? 0 : DBL_MAX;
}

/* ------------------------------------------------------------------------------------------------------------------
 * AMX: against sums in double precision
 */

/* Column `column` of row `row` in panels of 32 columns and AMX_ROWS rows. */
static size_t panel_at(int32_t row, int32_t column)
{
    return (size_t)(column / SW_AMX_WIDTH) * AMX_ROWS * SW_AMX_WIDTH +
           (size_t)(row * SW_AMX_WIDTH + column % SW_AMX_WIDTH);
}

static double rounded(const bench *x, float value)
{
    uint16_t narrow;
    if (x->type == SW_F32)
        return value;
    x->plain->to_bf16(&narrow, &value, 1);
    return widen(narrow);
}

static double check_amx_linear(bench *x, sw_amx_finish finish)
{
    const bool wide = finish == SW_AMX_STORE || finish == SW_AMX_ADD;
    const sw_type out = wide ? SW_F32 : x->type;
    static const float scale[AMX_OUT / SW_AMX_WIDTH] = {3.0f, 0.5f};
    float *const w = x->b;
    for (int i = 0; i < AMX_OUT * AMX_IN; i++)
        w[i] /= 8;
    assert(sw_amx_strip_bytes(x->type, AMX_IN, 1) * (AMX_OUT / SW_AMX_WIDTH) <= sizeof x->packed);
    assert(sw_amx_linear_scratch(ROWS, AMX_IN) <= sizeof x->scratch);
    sw_amx_pack(x->packed, x->type, w, AMX_OUT, AMX_IN, 1);
    const sw_amx_linear linear = {
        .type = x->type,
        .rows = ROWS,
        .a = activations(x, x->a, AMX_ROWS * AMX_IN),
        .a_stride = AMX_ROWS * SW_AMX_WIDTH,
        .k_count = AMX_IN / SW_AMX_WIDTH,
        .b = x->packed,
        .b_stride = sw_amx_strip_bytes(x->type, AMX_IN, 1),
        .b_at = sw_amx_chunk_at(x->type, AMX_IN, 0),
        .n_count = AMX_OUT / SW_AMX_WIDTH,
        .bias = finish == SW_AMX_ADD ? NULL : x->bias,
        .scale = scale,
        .finish = finish,
        .c = x->got,
        .c_stride = AMX_ROWS * SW_AMX_WIDTH,
        .scratch = x->scratch,
    };
    sw_amx_linear_run(&linear);
    sw_amx_release();
    double largest = 0;
    for (int32_t r = 0; r < ROWS; r++) {
        double sums[AMX_OUT], squares[AMX_OUT / SW_AMX_WIDTH] = {0};
        for (int32_t n = 0; n < AMX_OUT; n++) {
            double sum = finish == SW_AMX_ADD ? x->want[panel_at(r, n)] : x->bias[n];
            for (int32_t k = 0; k < AMX_IN; k++)
                sum += number(linear.a, x->type, panel_at(r, k)) * rounded(x, w[n * AMX_IN + k]);
            sums[n] = sum;
            squares[n / SW_AMX_WIDTH] += sum * sum;
        }
        for (int32_t n = 0; n < AMX_OUT; n++) {
            const int32_t panel = n / SW_AMX_WIDTH;
            if (finish == SW_AMX_GELU)
                sums[n] *= 0.5 * erfc(-sums[n] * sqrt(0.5));
            if (finish == SW_AMX_NORMALISE)
                sums[n] *= (double)scale[panel] / sqrt(squares[panel]);
            largest = fmax(largest, difference(number(x->got, out, panel_at(r, n)), sums[n],
                                               out == SW_BF16 ? BF16_TOLERANCE : F32_TOLERANCE));
        }
    }
    return largest;
}

static double check_amx_store(bench *x)
{
    return check_amx_linear(x, SW_AMX_STORE);
}

static double check_amx_add(bench *x)
{
    return check_amx_linear(x, SW_AMX_ADD);
}

static double check_amx_narrow(bench *x)
{
    return check_amx_linear(x, SW_AMX_NARROW);
}

static double check_amx_gelu(bench *x)
{
    return check_amx_linear(x, SW_AMX_GELU);
}

static double check_amx_normalise(bench *x)
{
    return check_amx_linear(x, SW_AMX_NORMALISE);
}

static double check_amx_attention(bench *x)
{
    /* Queries, keys and values one behind the other; queries are read up to whole tiles. */
    enum { EACH = (TOKENS + 15) / 16 * 16 * HEAD };
    for (int i = 0; i < EACH; i++)
        x->a[i] /= 2;
    const char *q = activations(x, x->a, 3 * EACH);
    const size_t bytes = EACH * sw_type_size(x->type);
    const sw_amx_attention attention = {.type = x->type, .tokens = TOKENS, .q = q, .k = q + bytes, .v = q + 2 * bytes,
                                        .context = x->got, .region = x->region, .mask = -100, .scratch = x->scratch};
    assert(sw_amx_attention_scratch(x->type, TOKENS) <= sizeof x->scratch);
    sw_amx_attention_load(&attention);
    sw_amx_attention_queries(&attention, 0, TOKENS, x->b);
    sw_amx_release();
    double largest = 0;
    for (int32_t i = 0; i < TOKENS; i++) {
        double share[TOKENS], peak = -DBL_MAX, sum = 0;
        for (int32_t j = 0; j < TOKENS; j++) {
            share[j] = (double)x->b[i * TOKENS + j] + (x->region[i] == x->region[j] ? 0 : -100);
            for (int32_t c = 0; c < HEAD; c++)
                share[j] += number(attention.q, x->type, (size_t)(i * HEAD + c)) *
                            number(attention.k, x->type, (size_t)(j * HEAD + c));
            peak = fmax(peak, share[j]);
        }
        for (int32_t j = 0; j < TOKENS; j++)
            sum += share[j] = exp(share[j] - peak);
        for (int32_t c = 0; c < HEAD; c++) {
            double exact = 0;
            for (int32_t j = 0; j < TOKENS; j++)
                exact += share[j] / sum * number(attention.v, x->type, (size_t)(j * HEAD + c));
            largest = fmax(largest, difference(number(x->got, x->type, (size_t)(i * HEAD + c)), exact,
                                               x->type == SW_BF16 ? BF16_TOLERANCE : F32_TOLERANCE));
        }
    }
    return largest;
}

/* ------------------------------------------------------------------------------------------------------------------
 * All of them
 */

static const struct {
    const char *name;
    double (*check)(bench *x);
    sw_type type;
    bool amx;
} checks[] = {
    {"gather f32", check_gather, SW_F32, false},
    {"gather bf16", check_gather, SW_BF16, false},
    {"residual f32", check_residual, SW_F32, false},
    {"residual bf16", check_residual, SW_BF16, false},
    {"merge f32", check_merge, SW_F32, false},
    {"merge bf16", check_merge, SW_BF16, false},
    {"patches f32", check_patches, SW_F32, false},
    {"patches bf16", check_patches, SW_BF16, false},
    {"map", check_map, SW_F32, false},
    {"gather head f32", check_gather_head, SW_F32, false},
    {"gather head bf16", check_gather_head, SW_BF16, false},
    {"scatter head f32", check_scatter_head, SW_F32, false},
    {"scatter head bf16", check_scatter_head, SW_BF16, false},
    {"softmax f32", check_softmax, SW_F32, false},
    {"softmax bf16", check_softmax, SW_BF16, false},
    {"gelu f32", check_gelu, SW_F32, false},
    {"gelu bf16", check_gelu, SW_BF16, false},
    {"from bf16", check_conversion, SW_F32, false},
    {"to bf16", check_conversion, SW_BF16, false},
    {"linear f32", check_amx_store, SW_F32, true},
    {"linear bf16", check_amx_store, SW_BF16, true},
    {"linear, added f32", check_amx_add, SW_F32, true},
    {"linear, added bf16", check_amx_add, SW_BF16, true},
    {"linear to bf16", check_amx_narrow, SW_BF16, true},
    {"linear, gelu f32", check_amx_gelu, SW_F32, true},
    {"linear, gelu bf16", check_amx_gelu, SW_BF16, true},
    {"linear, normalised f32", check_amx_normalise, SW_F32, true},
    {"linear, normalised bf16", check_amx_normalise, SW_BF16, true},
    {"attention f32", check_amx_attention, SW_F32, true},
    {"attention bf16", check_amx_attention, SW_BF16, true},
};

swin_status sw_selftest_run(const sw_kernels *kernels, bool amx, size_t index, sw_selftest *result, swin_error *err)
{
    *result = (sw_selftest){0};
    if (index >= sizeof checks / sizeof checks[0])
        return SWIN_OK;
    if (checks[index].amx && !(amx && sw_amx_built() && sw_cpu_has_amx()))
        return SWIN_OK;
    bench *x = sw_alloc(1, sizeof *x);
    if (x == NULL)
        return sw_fail_memory(err, sizeof *x, "a self-test");
    x->kernels = kernels;
    x->plain = sw_kernels_for(SW_ISA_PLAIN);
    x->type = checks[index].type;
    fill(x);
    result->kernel = checks[index].name;
    result->isa = checks[index].amx ? "amx" : kernels->name;
    result->error = checks[index].check(x);
    sw_free(x);
    if (result->error > 1)
        return sw_fail(err, SWIN_ERR_INTERNAL, "kernel \"%s\" (%s) is off by %.3g times what is allowed",
                       result->kernel, result->isa, result->error);
    return SWIN_OK;
}
