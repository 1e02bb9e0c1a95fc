/* SPDX-License-Identifier: MIT */
#include "absolute_position.h"

#include <math.h>
#include <stddef.h>

/* Keys' cubic convolution with a = -0.75, as PyTorch has it, at distance x from the sample. */
static double cubic(double x)
{
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
}

/* Four samples around the source of position `at`, their indices kept inside, and their weights. */
static void taps(int32_t at, int32_t size, int32_t table, int32_t index[4], double weight[4])
{
    const double source = ((double)at + 0.5) * (double)table / (double)size - 0.5;
    const double below = floor(source);
    for (int i = 0; i < 4; i++) {
        const int32_t sample = (int32_t)below - 1 + i;
        index[i] = sample < 0 ? 0 : sample >= table ? table - 1 : sample;
        weight[i] = cubic(source - (below - 1.0 + (double)i));
    }
}

void sw_absolute_position_add(float *x, const float *embedding, const int32_t table[2], const int32_t grid[2],
                              int32_t channels, int32_t first, int32_t rows)
{
    for (int32_t r = 0; r < rows; r++, x += channels) {
        int32_t row[4], column[4];
        double row_weight[4], column_weight[4];
        taps((first + r) / grid[1], grid[0], table[0], row, row_weight);
        taps((first + r) % grid[1], grid[1], table[1], column, column_weight);
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < 4; j++) {
                const float weight = (float)(row_weight[i] * column_weight[j]);
                if (weight == 0.0f)
                    continue;
                const float *e =
                    embedding + ((size_t)row[i] * (size_t)table[1] + (size_t)column[j]) * (size_t)channels;
                for (int32_t c = 0; c < channels; c++)
                    x[c] += weight * e[c];
            }
        }
    }
}
