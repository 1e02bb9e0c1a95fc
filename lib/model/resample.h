/* SPDX-License-Identifier: MIT */
/*
 * resample.h - tables of relative positions for another window, as the published loaders make them. A table has one
 * side of 2 * window - 1 entries per axis; both axes are resampled by a matrix of weights, so the rules are of one
 * dimension. Those after the first change a side even where its length stays, as long as the other's does not.
 *
 *   bicubic    torch's interpolate(mode="bicubic", align_corners=False): cubic convolution, a = -0.75, edges repeated
 *   spline     old entries lie on a grid whose steps grow geometrically from the middle, so that both tables cover
 *              the same distances; a not-a-knot cubic spline through them is read at integers (SimMIM, mmpretrain)
 *   linear     the same grid, read linearly (timm)
 */
#ifndef SW_MODEL_RESAMPLE_H
#define SW_MODEL_RESAMPLE_H

#include <stdint.h>

#include "../base/status.h"

typedef enum sw_resample_rule {
    SW_RESAMPLE_BICUBIC,
    SW_RESAMPLE_SPLINE,
    SW_RESAMPLE_LINEAR
} sw_resample_rule;

/* weights[to][from]: entry i of the new side is the sum over j of weights[i][j] * old[j]. Sides are odd. */
swin_status sw_resample_weights(sw_resample_rule rule, int32_t from, int32_t to, double *weights, swin_error *err);

/* dst[channel][to_rows][to_columns] from src[from_rows][from_columns][channels]; where both sides agree they are
 * copied. */
swin_status sw_resample_table(sw_resample_rule rule, const float *src, int32_t channels, int32_t from_rows,
                              int32_t from_columns, int32_t to_rows, int32_t to_columns, float *dst, swin_error *err);

#endif
