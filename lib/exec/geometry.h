/* SPDX-License-Identifier: MIT */
/*
 * geometry.h - windows, shifts, padding and masks as arithmetic: the one place where the lineages differ.
 *
 * A stage's map of height x width tokens is padded to whole windows. In shifted blocks it is rolled as well. Whatever
 * the lineage, the outcome is: for every slot of every window, the token that stands there or none (padding), and a
 * region number; slots of different regions do not attend to each other.
 */
#ifndef SW_EXEC_GEOMETRY_H
#define SW_EXEC_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "../model/config.h"

/* Pairs are {rows, columns}. */
typedef struct sw_geometry {
    int32_t map[2];     /* tokens                                                  */
    int32_t window[2];  /* tokens of a window, the lineage's clamping applied      */
    int32_t shift[2];   /* of shifted (odd) blocks                                 */
    int32_t padded[2];  /* the map, padded to whole windows                        */
    int32_t windows[2]; /* how many                                                */
    bool roll_first;    /* timm: the map is rolled, then padded; others the reverse */
    float mask;         /* added to the scores of slots of different regions; not minus infinity */
} sw_geometry;

/* The patch grid of an image: ceil, or floor in torchvision's lineage. May be zero there. */
void sw_geometry_grid(const swin_config *config, int32_t height, int32_t width, int32_t grid[2]);

/* A stage on a map of this size; the image's size is asked for where a lineage clamps by it and the configuration has
 * none. */
void sw_geometry_init(sw_geometry *geometry, const swin_config *config, int32_t stage, const int32_t map[2],
                      const int32_t image_size[2]);

static inline int32_t sw_geometry_window_count(const sw_geometry *g)
{
    return g->windows[0] * g->windows[1];
}

/* T: slots of a window. */
static inline int32_t sw_geometry_slots(const sw_geometry *g)
{
    return g->window[0] * g->window[1];
}

/* Whether odd blocks differ from even ones. */
static inline bool sw_geometry_shifts(const sw_geometry *g)
{
    return g->shift[0] > 0 || g->shift[1] > 0;
}

/* How many slots of a window hold a token. Windows are numbered row by row. */
int32_t sw_geometry_token_count(const sw_geometry *g, bool shifted, int32_t window);

/* The token in each slot of a window, row by row, or -1. */
void sw_geometry_tokens(const sw_geometry *g, bool shifted, int32_t window, int32_t *tokens);

/* Where a cell {row, column} of the map stands: the number of its window, and its slot there. */
void sw_geometry_find(const sw_geometry *g, bool shifted, const int32_t cell[2], int32_t *window, int32_t *slot);

/* The region of each slot of a window. False, and nothing written, where all are the same: no mask is needed. */
bool sw_geometry_regions(const sw_geometry *g, bool shifted, int32_t window, int32_t *regions);

#endif
