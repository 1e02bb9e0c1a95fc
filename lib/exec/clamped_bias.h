/* SPDX-License-Identifier: MIT */
/*
 * clamped_bias.h - position biases of windows that a lineage clamps to a small map: made when a map of that size is
 * first planned, shared by all plans that ask, kept for a while after the last one gave them back. There may be as many
 * as a window has shapes that fit into it, so what nobody uses is bounded.
 */
#ifndef SW_EXEC_CLAMPED_BIAS_H
#define SW_EXEC_CLAMPED_BIAS_H

#include <pthread.h>

#include "position_bias.h"

/* Bytes of biases that nobody uses; the one used last stays whatever its size. */
#define SW_CLAMPED_IDLE_BYTES ((size_t)32 << 20)

typedef struct sw_clamped_bias {
    struct sw_clamped_bias *next; /* in the order of use, the last one first */
    int32_t users;
    int32_t stage, depth;
    int32_t window[2];
    size_t bytes;
    sw_position_bias *blocks; /* [depth] */
} sw_clamped_bias;

/* Any thread may call anything but the first and the last. */
typedef struct sw_clamped_biases {
    pthread_mutex_t lock;
    sw_clamped_bias *first;
} sw_clamped_biases;

void sw_clamped_biases_init(sw_clamped_biases *biases);
void sw_clamped_biases_release(sw_clamped_biases *biases);

/* The biases of a stage's `depth` blocks for a window of rows x columns, to be given back. */
swin_status sw_clamped_bias_take(sw_clamped_biases *biases, const sw_model *model, int32_t stage, int32_t depth,
                                 int32_t heads, const int32_t window[2], sw_clamped_bias **taken, swin_error *err);
void sw_clamped_bias_give_back(sw_clamped_biases *biases, sw_clamped_bias *taken);

size_t sw_clamped_biases_bytes(sw_clamped_biases *biases);

#endif
