/* SPDX-License-Identifier: MIT */
/*
 * layer.h - the linear layers of a network, in order, and what each is made of: the patch embedding, then each
 * stage's blocks (qkv, proj, fc1, fc2) and merge.
 */
#ifndef SW_EXEC_LAYER_H
#define SW_EXEC_LAYER_H

#include "network.h"

typedef struct sw_layer {
    sw_linear *linear; /* in the network */
    const sw_menu *menu;
    sw_linear_spec spec;
    sw_tensor_id bias; /* spec.bias points here, or nowhere: not to be copied */
} sw_layer;

int32_t sw_layer_count(const sw_network *network);
void sw_layer_describe(sw_network *network, int32_t index, sw_layer *layer);

/* In how many groups of equal size a stage's heads are computed. */
int32_t sw_layer_head_parts(int32_t channels, int32_t heads);

/* Bytes that a thread needs for the products of any layer, beyond operands and results. */
size_t sw_layer_scratch(const sw_network *network);

#endif
