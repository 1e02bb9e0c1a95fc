/* SPDX-License-Identifier: MIT */
/*
 * position_bias.h - the relative position bias of a block, ready to be added to attention scores.
 *
 * Small windows keep it expanded, one number per pair of slots; large ones keep the table, (2M-1)^2 numbers per head,
 * and rows are laid out when they are needed: with 24 x 24 tokens an expanded bias would take 1.3 MB per head.
 */
#ifndef SW_EXEC_POSITION_BIAS_H
#define SW_EXEC_POSITION_BIAS_H

#include <stdbool.h>

#include "../model/model.h"

typedef struct sw_position_bias {
    int32_t window[2];
    int32_t heads;
    bool expanded;
    float *values; /* expanded: [H, T, T]; else per head the table with both axes reversed, [H, (2M-1)^2] */
} sw_position_bias;

swin_status sw_position_bias_create(sw_position_bias *bias, const sw_model *model, int32_t stage, int32_t block,
                                    int32_t heads, const int32_t window[2], swin_error *err);
void sw_position_bias_destroy(sw_position_bias *bias);
size_t sw_position_bias_bytes(const sw_position_bias *bias);

/* Rows first .. first + rows - 1 (queries) of one head: [rows, T], row stride T. Either a view, or laid out in
 * `scratch`, which has room for that. */
const float *sw_position_bias_rows(const sw_position_bias *bias, int32_t head, int32_t first, int32_t rows,
                                   float *scratch);

#endif
