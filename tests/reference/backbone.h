/* SPDX-License-Identifier: MIT */
/*
 * backbone.h - the whole backbone in double precision, written to be read: what every numerical test compares with.
 *
 * It is itself compared with the published packages in tests/golden. Plain loops, one thread, whole tensors at every
 * step; fast enough for a full-size network on a small image.
 */
#ifndef TESTS_REFERENCE_BACKBONE_H
#define TESTS_REFERENCE_BACKBONE_H

#include "weights.h"

/* One level's map, planar: data[channel][row][column]. */
typedef struct reference_map {
    int32_t channels, height, width;
    double *data; /* released with free(), or by reference_maps_release() */
} reference_map;

typedef struct reference_maps {
    reference_map level[SWIN_MAX_STAGES];
} reference_maps;

/* A look into the attention of one block. */
typedef struct reference_attention {
    int32_t stage, block;           /* which: set by the caller */
    int32_t windows, heads, tokens; /* set by the forward       */
    double *probabilities;          /* [windows][heads][tokens of query][tokens of key], released with free() */
} reference_attention;

/* The normalised pixels of a picture, as swin_session_run() takes them in: planar [3][canvas rows][canvas columns],
 * zeros where the canvas is larger than the picture. Released with free(). */
double *reference_pixels(const swin_image *image, int32_t *height, int32_t *width);

/* All levels of one picture of normalised pixels [3][height][width]. `attention` may be NULL. */
void reference_forward(const reference_weights *weights, const double *pixels, int32_t height, int32_t width,
                       reference_maps *maps, reference_attention *attention);

void reference_maps_release(reference_maps *maps);

#endif
