/* SPDX-License-Identifier: MIT */
/*
 * block.h - a Swin Transformer block, in place on the residual stream.
 *
 * [V1] equation 3: x += WMSA(LN(x)), x += MLP(LN(x)); [V2] figure 1: x += LN(WMSA(x)), x += LN(MLP(x)). Every token
 * belongs to exactly one window, so tiles of windows are independent of one another through the whole block.
 */
#ifndef SW_EXEC_BLOCK_H
#define SW_EXEC_BLOCK_H

#include "run.h"

/* Block number `block` of a stage, for all images in work. */
void sw_block_run(sw_run *run, int32_t stage, int32_t block);

/* The first step alone: q, k and v of a tile's rows, into the tile. `x` is the map of its image. */
swin_status sw_block_project(sw_run *run, int32_t stage, int32_t block, const sw_tile *tile, const float *x,
                             const sw_worker *worker);

#endif
