/* SPDX-License-Identifier: MIT */
/*
 * position_bias.h - V2's continuous position bias: a small network of two layers from log-spaced coordinates to one
 * value per head. Computed in double: it is input-independent and done once per model.
 */
#ifndef SW_MODEL_POSITION_BIAS_H
#define SW_MODEL_POSITION_BIAS_H

#include <stdint.h>

#include "../base/status.h"

/* Hidden width of the network in every implementation. */
#define SW_CPB_HIDDEN 512

typedef struct sw_cpb {
    const float *weight1; /* [SW_CPB_HIDDEN, 2], inputs in the order row, column */
    const float *bias1;   /* [SW_CPB_HIDDEN]                                     */
    const float *weight2; /* [heads, SW_CPB_HIDDEN]                              */
    int32_t heads;
    int32_t pretrained[2]; /* {rows, columns} that coordinates are relative to; {0, 0}: the window itself */
} sw_cpb;

/* dst[head][2*rows-1][2*columns-1] = 16 * sigmoid(network(coordinates)). */
swin_status sw_cpb_bias(const sw_cpb *cpb, int32_t rows, int32_t columns, float *dst, swin_error *err);

#endif
