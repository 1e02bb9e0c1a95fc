/* SPDX-License-Identifier: MIT */
/*
 * colormap.h - numbers as colours: from near black through violet, red and orange to a pale yellow, in even steps of
 * lightness, so that what looks twice as bright is, and so that it reads the same in gray and to the colour-blind.
 *
 * Made here from a path through OKLab (Ottosson, "A perceptual color space for image processing", 2020): lightness is a
 * straight line, hue turns evenly, and chroma is an arch, cut where a screen has no such colour.
 */
#ifndef CLI_COLORMAP_H
#define CLI_COLORMAP_H

#include "picture.h"

enum { COLORMAP_SIZE = 256 };

struct colormap {
    struct colour entries[COLORMAP_SIZE];
};

void colormap_create(struct colormap *map);

/* The colour of a value between 0 and 1; beyond is clamped. NaN is a gray that the map does not hold. */
struct colour colormap_at(const struct colormap *map, double value);

#endif
