/* SPDX-License-Identifier: MIT */
/*
 * level_view.h - a level ready to be drawn: its map, and the energy of its cells with the range that is shown.
 */
#ifndef CLI_LEVEL_VIEW_H
#define CLI_LEVEL_VIEW_H

#include "feature_map.h"
#include "heatmap.h"

struct level_view {
    struct feature_map map;
    float *energy; /* [height, width] */
    struct value_range range;
};

/* `map` is borrowed. */
bool level_view_create(struct level_view *view, const struct feature_map *map, struct failure *failure);
void level_view_destroy(struct level_view *view);

/* `cells` of this level, [height, width], laid over a photo of height x width pixels. A cell covers stride x stride
 * pixels, the first one from the top left corner; what lies beyond the photo is padding. */
struct grid level_view_grid(const struct level_view *view, const float *cells, int32_t height, int32_t width);

#endif
