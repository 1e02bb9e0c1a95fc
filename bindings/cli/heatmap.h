/* SPDX-License-Identifier: MIT */
/*
 * heatmap.h - a grid of numbers drawn over the picture it was computed from.
 */
#ifndef CLI_HEATMAP_H
#define CLI_HEATMAP_H

#include "colormap.h"
#include "resample.h"

struct value_range {
    double low, high;
};

/* From the 1st to the 99th percentile of the finite values, so that a few outliers do not darken the rest. {0, 0} where
 * nothing is finite. */
bool heatmap_range(const float *values, size_t count, struct value_range *range, struct failure *failure);

/* Draws into `area`; a map of one value gets the middle colour. */
bool heatmap_draw(struct picture *picture, struct rectangle area, const struct grid *grid, struct value_range range,
                  const struct colormap *colours, struct failure *failure);

/* The colours from low to high, left to right. */
void heatmap_draw_scale(struct picture *picture, struct rectangle area, const struct colormap *colours);

#endif
