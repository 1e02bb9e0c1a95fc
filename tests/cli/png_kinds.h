/* SPDX-License-Identifier: MIT */
/*
 * png_kinds.h - PNG files of every kind, made through libpng, with the RGB pixels that a reader must find in them.
 */
#ifndef TESTS_CLI_PNG_KINDS_H
#define TESTS_CLI_PNG_KINDS_H

#include <stdbool.h>
#include <stdint.h>

struct png_kind {
    const char *name;
    int colour_type; /* PNG_COLOR_TYPE_* */
    int bits;
    bool interlaced;
    bool transparent; /* a tRNS chunk           */
    bool extras;      /* gAMA, sBIT, text, pHYs */
};

extern const struct png_kind png_kinds[];
extern const int png_kind_count;

/* Writes to `path` and fills rgb[height * width * 3]. */
void png_kind_write(const struct png_kind *kind, int32_t height, int32_t width, const char *path, uint8_t *rgb);

#endif
