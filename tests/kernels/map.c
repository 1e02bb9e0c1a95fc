/* SPDX-License-Identifier: MIT */
#include "trial.h"

static void exact_row(double *row, const float *x, int32_t channels, const sw_norm *norm)
{
    double mean = 0, variance = 0;
    for (int32_t c = 0; c < channels; c++)
        mean += x[c];
    mean /= channels;
    for (int32_t c = 0; c < channels; c++)
        variance += (x[c] - mean) * (x[c] - mean);
    variance /= channels;
    for (int32_t c = 0; c < channels; c++)
        row[c] = norm == NULL ? (double)x[c]
                              : (x[c] - mean) / sqrt(variance + norm->eps) * norm->weight[c] + norm->bias[c];
}

/* The whole map lies in one block; what is not of the rows in question must keep its pattern. */
static void check_store(const sw_kernels *kernels, bool nhwc, int32_t tokens, int32_t first, int32_t rows,
                        int32_t channels, size_t plane, bool normed)
{
    static double exact[3072];
    const float *x = trial_normals((size_t)tokens * (size_t)channels, SW_F32, 0.7f, 2);
    const sw_norm norm = {trial_normals((size_t)channels, SW_F32, 1, 0.3f),
                          trial_normals((size_t)channels, SW_F32, 0, 0.5f), 1e-5f};
    const size_t count = nhwc ? (size_t)tokens * (size_t)channels : plane * (size_t)(channels - 1) + (size_t)tokens;
    float *map = guarded_alloc(count, sizeof *map);
    kernels->store_map(map, nhwc, plane, x, first, rows, channels, normed ? &norm : NULL);
    for (int32_t t = 0; t < tokens; t++) {
        const bool stored = t >= first && t < first + rows;
        exact_row(exact, x + (size_t)t * (size_t)channels, channels, normed ? &norm : NULL);
        for (int32_t c = 0; c < channels; c++) {
            float *at = map + (nhwc ? (size_t)t * (size_t)channels + (size_t)c : (size_t)c * plane + (size_t)t);
            if (!stored) {
                trial_untouched(at, sizeof *at, "row beside");
                continue;
            }
            /* See the tests of norm. */
            const double weight = norm.weight[c], bias = norm.bias[c];
            const double size = fabs(exact[c] - bias) + fabs(weight) + fabs(bias);
            const double tolerance = normed ? 16 * UNIT * size : 0;
            trial_close(*at, exact[c], tolerance, SW_F32, "%s, %s, C = %d, row %d, channel %d", kernels->name,
                        nhwc ? "nhwc" : "nchw", (int)channels, (int)t, (int)c);
        }
    }
    for (int32_t c = 0; !nhwc && c + 1 < channels; c++)
        trial_untouched(map + (size_t)c * plane + (size_t)tokens, (plane - (size_t)tokens) * sizeof *map,
                        "rest of plane");
    guarded_free_all();
}

static void shapes(const sw_kernels *kernels)
{
    static const int32_t channel_counts[] = {1, 3, 15, 16, 17, 24, 96, 128, 192, 384, 768, 1536, 3072};
    static const int32_t row_counts[] = {1, 2, 7, 9, 15, 16, 17, 25, 33, 49, 64, 144};
    for (size_t i = 0; i < COUNT_OF(channel_counts); i++) {
        for (size_t j = 0; j < COUNT_OF(row_counts); j++) {
            const int32_t channels = channel_counts[i], rows = row_counts[j];
            if (channels * rows > 20000)
                continue;
            for (int form = (int)(i + j) % 3; form < 8; form += 3) {
                const int32_t first = form & 4 ? 5 : 0, tokens = first + rows + (form & 4 ? 3 : 0);
                check_store(kernels, form & 1, tokens, first, rows, channels,
                            (size_t)tokens + (form & 1 || rows % 2 == 0 ? 0 : 11), (form & 2) != 0);
            }
        }
    }
}

/* Large enough for stores past the cache: planes that are whole cache lines, at every offset from one, and odd
 * planes. */
static void large(const sw_kernels *kernels)
{
    static const int32_t firsts[] = {0, 1, 5, 15, 16, 33};
    for (size_t i = 0; i < COUNT_OF(firsts); i++)
        check_store(kernels, false, 1600, firsts[i], 1600 - 3 * firsts[i] / 2, 200, 1600, true);
    check_store(kernels, false, 1601, 16, 1585, 200, 1601, true);
    check_store(kernels, true, 1600, 1, 1599, 96, 0, true);
    check_store(kernels, true, 1600, 1, 1599, 96, 0, false);
}

static void split(const sw_kernels *kernels)
{
    enum { TOKENS = 70, CHANNELS = 37 };
    const float *x = trial_normals(TOKENS * CHANNELS, SW_F32, 0, 1);
    const sw_norm norm = {trial_normals(CHANNELS, SW_F32, 1, 0.3f), trial_normals(CHANNELS, SW_F32, 0, 0.5f), 1e-6f};
    for (int nhwc = 0; nhwc < 2; nhwc++) {
        float *whole = guarded_alloc(TOKENS * CHANNELS, sizeof *whole);
        float *parts = guarded_alloc(TOKENS * CHANNELS, sizeof *parts);
        kernels->store_map(whole, nhwc, TOKENS, x, 0, TOKENS, CHANNELS, &norm);
        for (int32_t at = 0, step = 1; at < TOKENS; at += step, step++)
            kernels->store_map(parts, nhwc, TOKENS, x, at, step < TOKENS - at ? step : TOKENS - at, CHANNELS, &norm);
        assert_memory_equal(whole, parts, TOKENS * CHANNELS * sizeof *whole);
    }
}

#define TEST(name)                          \
    static void test_##name(void **context) \
    {                                       \
        (void)context;                      \
        trial_run(name);                    \
    }
TEST(shapes)
TEST(large)
TEST(split)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_split),
    };
    return cmocka_run_group_tests_name("kernels-map", tests, NULL, NULL);
}
