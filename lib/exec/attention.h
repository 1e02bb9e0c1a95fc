/* SPDX-License-Identifier: MIT */
/*
 * attention.h - window attention of a tile: scores, position bias, mask, softmax, context.
 *
 * [V1] section 3.2, equation 4; [V2] section 3.2, equation 2 (cosine attention). Shifted windows and their mask: [V1]
 * figure 4. Slots of padding take part as keys and values, as in the published code: they hold what the projection
 * makes of zeros, its bias.
 */
#ifndef SW_EXEC_ATTENTION_H
#define SW_EXEC_ATTENTION_H

#include "tile.h"

/* One thread's memory for attention. */
typedef struct sw_attention_memory {
    float *scores;   /* of one product                              */
    void *probabilities;
    void *q, *k, *v; /* slots laid out, where they cannot be viewed */
    void *context;
    float *bias;     /* rows of a position bias laid out            */
    void *tiles;     /* AMX: scratch of its kernel                  */
    int32_t *regions;
} sw_attention_memory;

swin_status sw_attention_memory_create(sw_attention_memory *memory, const sw_network *network, swin_error *err);
void sw_attention_memory_destroy(sw_attention_memory *memory);
size_t sw_attention_memory_bytes(const sw_network *network);

typedef struct sw_attention {
    const sw_network *network;
    const sw_kernels *kernels;
    int32_t stage, block;
    const sw_geometry *geometry;
    const sw_position_bias *bias;
    bool shifted;
    int32_t parts; /* that the heads are cut into: the stage's head_parts, or with AMX any divisor of the heads */
} sw_attention;

/* The context of windows first .. first + count - 1 of the tile, heads of one part. */
swin_status sw_attention_run(const sw_attention *attention, const sw_tile *tile, int32_t part, int32_t first,
                             int32_t count, const sw_attention_memory *memory, sw_dnn_thread *thread);

#endif
