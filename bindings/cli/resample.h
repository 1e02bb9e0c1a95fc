/* SPDX-License-Identifier: MIT */
/*
 * resample.h - pictures and grids of numbers at another size, by a triangle filter: bilinear when growing, and widened
 * by the scale when shrinking, so that nothing aliases. Pictures come out as Pillow's BILINEAR resize gives them, byte
 * for byte: the resize that detection code trains and tests with. (Pillow 13 takes the rows first where the height
 * shrinks more than the width, and then differs by one here and there.)
 */
#ifndef CLI_RESAMPLE_H
#define CLI_RESAMPLE_H

#include "picture.h"

/* Makes `resized`, of height x width. */
bool picture_resize(const struct picture *source, int32_t height, int32_t width, struct picture *resized,
                    struct failure *failure);

/* Cells of a map: a grid of rows x columns numbers. A picture made of it spans row_extent x column_extent cells from
 * the top left corner; cells beyond that are padding. */
struct grid {
    int32_t rows, columns;
    double row_extent, column_extent;
    const float *cells;
};

/* Fills samples[height][width]. */
bool grid_resample(const struct grid *grid, int32_t height, int32_t width, float *samples, struct failure *failure);

#endif
