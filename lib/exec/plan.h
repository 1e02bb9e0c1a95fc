/* SPDX-License-Identifier: MIT */
/*
 * plan.h - how images of one size are computed: the geometry of every stage, its windows grouped into tiles, and
 * where each stage's map lies in an image's buffer.
 *
 * A plan does not depend on the batch, and on the number of threads only with AMX, whose products compute a row in
 * the same way in every tile: that is why results depend on neither.
 */
#ifndef SW_EXEC_PLAN_H
#define SW_EXEC_PLAN_H

#include "geometry.h"
#include "network.h"

/* The windows of a stage, grouped. Windows full of tokens come first, so that few tiles have to deal with padding. */
typedef struct sw_tiling {
    int32_t tiles;
    int32_t *first;   /* [tiles + 1]: tile i has the windows number windows[first[i]] .. windows[first[i + 1] - 1] */
    int32_t *windows;
} sw_tiling;

typedef struct sw_stage_plan {
    sw_geometry geometry;
    int32_t tokens;
    sw_tiling tiling[2];             /* of even and of odd (shifted) blocks                                  */
    bool wide;                       /* one tile whose layers are shared out among the threads, instead of
                                        tiles that are                                                       */
    const sw_position_bias *clamped; /* [depth], where the window is clamped to the map; NULL: the blocks' own */
    size_t offset;                   /* of the map [tokens, C] in an image's buffer, in floats                */
} sw_stage_plan;

typedef struct sw_plan {
    int32_t image[2];
    int32_t stages;      /* planned so far: up to the last level asked for */
    int32_t patch_grid[2];
    sw_stage_plan stage[SWIN_MAX_STAGES];
    size_t image_floats; /* of an image's buffer */
    int32_t *memory;     /* of the tilings       */
    size_t memory_count;
} sw_plan;

/* Windows that a tile of up to `rows` rows may have, where the configured window has this many slots: more than fill
 * it, for windows at the edges hold less. */
static inline int32_t sw_tile_window_limit(int32_t rows, int32_t slots)
{
    return 2 * rows / slots + 1;
}

/* Plans for images of height x width and stages 0 .. stages - 1, always for the same number of threads. Does nothing
 * where that is planned already; allocates only where an earlier plan's memory is too small. */
swin_status sw_plan_make(sw_plan *plan, sw_network *network, int32_t threads, int32_t height, int32_t width,
                         int32_t stages, swin_error *err);
void sw_plan_release(sw_plan *plan);

/* The position bias of a block under this plan. */
const sw_position_bias *sw_plan_bias(const sw_plan *plan, const sw_network *network, int32_t stage, int32_t block);

/* Sizes of every level's map: rows and columns. Fails with ARGUMENT where the image has no patch, LIMIT where a map
 * would have more than 2^31 - 1 tokens or its bytes would not fit the address range. */
swin_status sw_plan_maps(const swin_config *config, int32_t height, int32_t width, int32_t maps[SWIN_MAX_STAGES][2],
                         swin_error *err);

#endif
