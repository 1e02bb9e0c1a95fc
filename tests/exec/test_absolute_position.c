/* SPDX-License-Identifier: MIT */
/*
 * The absolute position embedding against a direct evaluation, in double precision, of what PyTorch's interpolate
 * computes with mode bicubic and align_corners off.
 */
#include "../kernels/trial.h"

#include "exec/absolute_position.h"

/* Keys (1981), equation 15 with a = -3/4. */
static double kernel(double s)
{
    s = fabs(s);
    if (s < 1)
        return 1.25 * s * s * s - 2.25 * s * s + 1;
    if (s < 2)
        return -0.75 * s * s * s + 3.75 * s * s - 6 * s + 3;
    return 0;
}

static int32_t held(int32_t sample, int32_t size)
{
    return sample < 0 ? 0 : sample >= size ? size - 1 : sample;
}

/* The sum over all samples of the table, extended without end by its border, and the sum of the terms' magnitudes. */
static double interpolate(const float *embedding, const int32_t table[2], const int32_t grid[2], int32_t channels,
                          int32_t token, int32_t channel, double *magnitude)
{
    const double y = (token / grid[1] + 0.5) * table[0] / grid[0] - 0.5;
    const double x = (token % grid[1] + 0.5) * table[1] / grid[1] - 0.5;
    double sum = 0;
    for (int32_t i = (int32_t)floor(y) - 3; i <= (int32_t)floor(y) + 3; i++) {
        for (int32_t j = (int32_t)floor(x) - 3; j <= (int32_t)floor(x) + 3; j++) {
            const int32_t at = (held(i, table[0]) * table[1] + held(j, table[1])) * channels + channel;
            const double term = kernel(y - i) * kernel(x - j) * embedding[at];
            sum += term;
            *magnitude += fabs(term);
        }
    }
    return sum;
}

static const struct {
    int32_t table[2], grid[2], channels;
} cases[] = {
    {{1, 1}, {1, 1}, 3},     {{1, 1}, {4, 3}, 2},  {{2, 2}, {2, 2}, 1},  {{7, 5}, {7, 5}, 4},
    {{7, 5}, {14, 10}, 3},   {{7, 5}, {3, 2}, 3},  {{7, 5}, {9, 4}, 96}, {{3, 8}, {8, 3}, 5},
    {{56, 56}, {25, 61}, 2}, {{4, 4}, {1, 33}, 2}, {{2, 9}, {30, 1}, 2},
};

static void check_case(size_t c, int32_t first, int32_t rows)
{
    const int32_t *table = cases[c].table, *grid = cases[c].grid, channels = cases[c].channels;
    const float *embedding = trial_normals((size_t)(table[0] * table[1] * channels), SW_F32, 0, 1);
    const float *before = trial_normals((size_t)(rows * channels), SW_F32, 0, 1);
    float *x = guarded_alloc((size_t)(rows * channels), sizeof *x);
    memcpy(x, before, (size_t)(rows * channels) * sizeof *x);
    sw_absolute_position_add(x, embedding, table, grid, channels, first, rows);
    const bool same = table[0] == grid[0] && table[1] == grid[1];
    for (int32_t r = 0; r < rows; r++) {
        for (int32_t i = 0; i < channels; i++) {
            double magnitude = fabs(before[r * channels + i]);
            const double sum =
                before[r * channels + i] + interpolate(embedding, table, grid, channels, first + r, i, &magnitude);
            if (same) { /* one addition, exactly */
                assert_true(x[r * channels + i] == before[r * channels + i] + embedding[(first + r) * channels + i]);
                continue;
            }
            /* each of 16 terms: a rounded weight, a rounded product, then at most 16 additions */
            trial_close(x[r * channels + i], sum, 18 * UNIT * magnitude, SW_F32, "case %zu, token %d, channel %d", c,
                        first + r, i);
        }
    }
    guarded_free_all();
}

static void tokens_get_their_embedding(void **state)
{
    (void)state;
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        const int32_t tokens = cases[c].grid[0] * cases[c].grid[1];
        for (int side = 0; side < GUARDED_SIDES; side++) {
            guarded_use_side((enum guarded_side)side);
            trial_seed(c);
            check_case(c, 0, tokens);
            check_case(c, tokens / 3, tokens - tokens / 3);
            check_case(c, tokens - 1, 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_get_their_embedding),
    };
    return cmocka_run_group_tests_name("absolute position", tests, NULL, NULL);
}
