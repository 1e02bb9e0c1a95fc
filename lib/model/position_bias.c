/* SPDX-License-Identifier: MIT */
#include "position_bias.h"

#include <math.h>

#include "../base/memory.h"

/* A window of one token has the distance 0 only, where the published formula divides 0 by 0; Hugging Face's code takes
 * 0. */
static double log_coordinate(int32_t distance, int32_t window)
{
    if (distance == 0 || window < 2)
        return 0.0;
    const double t = 8.0 * distance / (window - 1);
    return copysign(log2(fabs(t) + 1.0) / 3.0, t);
}

swin_status sw_cpb_bias(const sw_cpb *cpb, int32_t rows, int32_t columns, float *dst, swin_error *err)
{
    const int32_t height = 2 * rows - 1, width = 2 * columns - 1;
    const int32_t row_reference = cpb->pretrained[0] > 0 ? cpb->pretrained[0] : rows;
    const int32_t column_reference = cpb->pretrained[1] > 0 ? cpb->pretrained[1] : columns;
    const size_t heads = (size_t)cpb->heads;

    /* The second layer's weights with heads innermost, so that the inner loop runs over adjacent sums. */
    const size_t doubles = (SW_CPB_HIDDEN + 1) * heads;
    double *weight2 = sw_alloc(doubles, sizeof *weight2);
    if (weight2 == NULL)
        return sw_fail_memory(err, doubles * sizeof *weight2, "a continuous position bias");
    double *sums = weight2 + SW_CPB_HIDDEN * heads;
    for (size_t head = 0; head < heads; head++) {
        for (size_t k = 0; k < SW_CPB_HIDDEN; k++)
            weight2[k * heads + head] = (double)cpb->weight2[head * SW_CPB_HIDDEN + k];
    }

    for (int32_t y = 0; y < height; y++) {
        const double v = log_coordinate(y - rows + 1, row_reference);
        for (int32_t x = 0; x < width; x++) {
            const double u = log_coordinate(x - columns + 1, column_reference);
            for (size_t head = 0; head < heads; head++)
                sums[head] = 0.0;
            for (size_t k = 0; k < SW_CPB_HIDDEN; k++) {
                const double hidden = (double)cpb->weight1[2 * k] * v + (double)cpb->weight1[2 * k + 1] * u +
                                      (double)cpb->bias1[k];
                if (hidden <= 0.0)
                    continue;
                for (size_t head = 0; head < heads; head++)
                    sums[head] += hidden * weight2[k * heads + head];
            }
            for (size_t head = 0; head < heads; head++)
                dst[(head * (size_t)height + (size_t)y) * (size_t)width + (size_t)x] =
                    (float)(16.0 / (1.0 + exp(-sums[head])));
        }
    }
    sw_free(weight2);
    return SWIN_OK;
}
