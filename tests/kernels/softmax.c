/* SPDX-License-Identifier: MIT */
#include "trial.h"

#include <stdlib.h>

enum { MOST_TOKENS = 1200 };

static double exact[MOST_TOKENS];

static void exact_softmax(const float *scores, const float *bias, const int32_t *region, float mask, int32_t row,
                          int32_t tokens)
{
    double peak = -INFINITY, sum = 0;
    for (int32_t j = 0; j < tokens; j++) {
        /* The values are rounded to float32 as the kernel has them: what a mask of -100 does to the last bits of a
         * score is no error of the softmax. */
        const float value = scores[j] + bias[j];
        exact[j] = region == NULL || region[row] == region[j] ? value : value + mask;
        peak = exact[j] > peak ? exact[j] : peak;
    }
    for (int32_t j = 0; j < tokens; j++)
        sum += exact[j] = exp(exact[j] - peak);
    for (int32_t j = 0; j < tokens; j++)
        exact[j] /= sum;
}

/* The exponential is good to 1.2e-7 (one and a half roundings and the polynomial). Rounding x - max and its product
 * with 1 / ln 2 costs one UNIT each for every power of e that the weight is below the largest; the sum is as good as
 * its terms, of which those near the maximum weigh most; the reciprocal and the product add a rounding each. Weights
 * below e^-80 are zero. The exponential for bf16 results is good to 8.6e-5, in the weight and in the sum. */
static double tolerance(double share, int32_t tokens, sw_type type)
{
    const double distance = share > 0 ? -log(share) : 0;
    return share * (UNIT * (8 + 2 * distance + 0.05 * tokens) + (type == SW_BF16 ? 1.8e-4 : 0)) + 2e-35;
}

static void check_softmax(const sw_kernels *kernels, int32_t tokens, size_t stride, sw_type type, bool in_place,
                          int32_t first, int32_t rows, bool masked, float spread)
{
    const size_t bias_stride = (size_t)tokens + 3;
    const size_t count = (size_t)(rows - 1) * stride + (size_t)tokens;
    float *scores = guarded_alloc((size_t)rows * stride, sizeof *scores);
    for (size_t i = 0; i < count; i++)
        scores[i] = trial_normal(0, spread);
    float *copy = guarded_alloc(count, sizeof *copy);
    memcpy(copy, scores, count * sizeof *scores);
    if (!in_place)
        guarded_seal(scores);
    const float *bias = trial_normals((size_t)(rows - 1) * bias_stride + (size_t)tokens, SW_F32, 0, 1);
    int32_t *region = guarded_alloc((size_t)tokens, sizeof *region);
    for (int32_t j = 0; j < tokens; j++)
        region[j] = j % 3 == 0 ? 4 : j / 5 % 2;
    guarded_seal(region);
    void *dst = in_place ? (void *)scores : guarded_alloc((size_t)rows * stride, sw_type_size(type));
    kernels->softmax(dst, type, scores, bias, bias_stride, masked ? region : NULL, -100, first, rows, tokens, stride);
    for (int32_t i = 0; i < rows; i++) {
        exact_softmax(copy + (size_t)i * stride, bias + (size_t)i * bias_stride, masked ? region : NULL, -100,
                      first + i, tokens);
        for (int32_t j = 0; j < tokens; j++)
            trial_close(trial_get(dst, type, (size_t)i * stride + (size_t)j), exact[j],
                        tolerance(exact[j], tokens, type), type, "%s, T = %d, row %d, column %d",
                        kernels->name, (int)tokens, (int)i, (int)j);
        for (size_t j = (size_t)tokens; j < stride; j++)
            assert_true(trial_get(dst, type, (size_t)i * stride + j) == 0);
    }
    guarded_free_all();
}

static void shapes(const sw_kernels *kernels)
{
    static const int32_t counts[] = {1, 2, 9, 16, 25, 49, 64, 144, 256, 576, 1023, 1024, 1025, MOST_TOKENS};
    int turn = 0;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        const int32_t tokens = counts[i];
        const size_t strides[] = {(size_t)tokens, (size_t)tokens + 1, ((size_t)tokens + 31) & ~(size_t)31};
        for (size_t s = 0; s < COUNT_OF(strides); s++) {
            for (int form = 0; form < 6; form++, turn++) {
                const int32_t rows = tokens < 64 ? tokens : 7 + turn % 5, first = tokens - rows;
                check_softmax(kernels, tokens, strides[s], form < 4 ? SW_F32 : SW_BF16, (form & 3) > 1, first, rows,
                              form & 1, turn % 3 == 0 ? 12.0f : 1.5f);
            }
        }
    }
    for (int32_t tokens = 1; tokens <= 100; tokens++) {
        check_softmax(kernels, tokens, (size_t)tokens, SW_F32, false, 0, 1, true, 2);
        check_softmax(kernels, tokens, (size_t)tokens + 2, SW_BF16, false, tokens / 2, 1, false, 2);
    }
}

/* Single rows of a length, with one or two values set among zeros. */
static void special(const sw_kernels *kernels)
{
    static const struct {
        const char *name;
        float rest, first, last;
        double share_rest, share_first, share_last; /* before division by the number of equal shares */
    } cases[] = {
        {"one huge", 0, 0, 1e30f, 0, 0, 1},
        {"one hugely negative", 0, -1e30f, 0, 1, 0, 1},
        {"all hugely negative but one", -1e30f, -1e30f, -1e29f, 0, 0, 1},
        {"one minus infinity", 0, -INFINITY, 0, 1, 0, 1},
        {"all minus infinity but one", -INFINITY, -INFINITY, 3, 0, 0, 1},
        {"all minus infinity", -INFINITY, -INFINITY, -INFINITY, NAN, NAN, NAN},
        {"plus infinity", 0, 0, INFINITY, NAN, NAN, NAN},
        {"not a number", 0, NAN, 0, NAN, NAN, NAN},
        {"not a number, last", 0, 0, NAN, NAN, NAN, NAN},
        {"not a number beside minus infinity", -INFINITY, NAN, -INFINITY, NAN, NAN, NAN},
        {"largest and smallest", -3.4e38f, -3.4e38f, 3.4e38f, 0, 0, 1},
        {"denormals", 1e-40f, 0, -1e-40f, 1, 1, 1},
    };
    static const int32_t counts[] = {2, 3, 9, 16, 17, 49, 64, 65, 130, 1030};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (size_t k = 0; k < 2 * COUNT_OF(counts); k++) {
            const int32_t tokens = counts[k / 2];
            const sw_type type = k % 2 == 0 ? SW_F32 : SW_BF16;
            float *scores = guarded_alloc((size_t)tokens, sizeof *scores), *bias = guarded_alloc((size_t)tokens, 4);
            memset(bias, 0, (size_t)tokens * sizeof *bias);
            for (int32_t j = 0; j < tokens; j++)
                scores[j] = j == 0 ? cases[i].first : j == tokens - 1 ? cases[i].last : cases[i].rest;
            void *dst = guarded_alloc((size_t)tokens, sw_type_size(type));
            kernels->softmax(dst, type, guarded_seal(scores), bias, (size_t)tokens, NULL, 0, 0, 1, tokens,
                             (size_t)tokens);
            const double sum = cases[i].share_first + cases[i].share_last + (tokens - 2) * cases[i].share_rest;
            for (int32_t j = 0; j < tokens; j++) {
                const double share = j == 0            ? cases[i].share_first
                                     : j == tokens - 1 ? cases[i].share_last
                                                       : cases[i].share_rest;
                trial_close(trial_get(dst, type, (size_t)j), share / sum, 1e-6 * share / sum, type,
                            "%s %s, T = %d, column %d", kernels->name, cases[i].name, (int)tokens, (int)j);
            }
            guarded_free_all();
        }
    }
}

/* A row with a NaN leaves the rows beside it alone. */
static void neighbours(const sw_kernels *kernels)
{
    enum { ROWS = 19, TOKENS = 49 };
    float *scores = guarded_alloc(ROWS * TOKENS, sizeof *scores);
    for (int i = 0; i < ROWS * TOKENS; i++)
        scores[i] = trial_normal(0, 1);
    const float *bias = trial_normals(ROWS * TOKENS, SW_F32, 0, 1);
    float *clean = guarded_alloc(ROWS * TOKENS, sizeof *clean), *dirty = guarded_alloc(ROWS * TOKENS, sizeof *dirty);
    kernels->softmax(clean, SW_F32, scores, bias, TOKENS, NULL, 0, 0, ROWS, TOKENS, TOKENS);
    for (int bad = 0; bad < ROWS; bad++) {
        const float kept = scores[bad * TOKENS + bad];
        scores[bad * TOKENS + bad] = bad % 2 == 0 ? NAN : INFINITY;
        kernels->softmax(dirty, SW_F32, scores, bias, TOKENS, NULL, 0, 0, ROWS, TOKENS, TOKENS);
        for (int i = 0; i < ROWS * TOKENS; i++)
            assert_true(i / TOKENS == bad ? isnan(dirty[i]) : dirty[i] == clean[i]);
        scores[bad * TOKENS + bad] = kept;
    }
}

/* Whatever rows share a call, each gets the same bits. */
static void split(const sw_kernels *kernels)
{
    static const int32_t counts[] = {9, 16, 49, 64, 144, 1030};
    for (size_t k = 0; k < COUNT_OF(counts); k++) {
        const int32_t tokens = counts[k], rows = tokens < 40 ? tokens : 40;
        const size_t stride = (size_t)tokens + (size_t)(k % 2) * 7;
        const float *scores = trial_normals((size_t)rows * stride, SW_F32, 0, 2);
        const float *bias = trial_normals((size_t)rows * (size_t)tokens, SW_F32, 0, 1);
        int32_t *region = guarded_alloc((size_t)tokens, sizeof *region);
        for (int32_t j = 0; j < tokens; j++)
            region[j] = j % 4;
        float *whole = guarded_alloc((size_t)rows * stride, sizeof *whole);
        float *parts = guarded_alloc((size_t)rows * stride, sizeof *parts);
        kernels->softmax(whole, SW_F32, scores, bias, (size_t)tokens, region, -100, 0, rows, tokens, stride);
        for (int32_t at = 0, step = 1; at < rows; at += step, step = step % 18 + 1) {
            if (step > rows - at)
                step = rows - at;
            kernels->softmax(parts + (size_t)at * stride, SW_F32, scores + (size_t)at * stride,
                             bias + (size_t)at * (size_t)tokens, (size_t)tokens, region, -100, at, step, tokens,
                             stride);
        }
        assert_memory_equal(whole, parts, (size_t)rows * stride * sizeof *whole);
        guarded_free_all();
    }
}

#define TEST(name)                          \
    static void test_##name(void **context) \
    {                                       \
        (void)context;                      \
        trial_run(name);                    \
    }
TEST(shapes)
TEST(special)
TEST(neighbours)
TEST(split)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_split),
    };
    return cmocka_run_group_tests_name("kernels-softmax", tests, NULL, NULL);
}
