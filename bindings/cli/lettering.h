/* SPDX-License-Identifier: MIT */
/*
 * lettering.h - text in pictures, in a small alphabet of our own drawn with a round pen: each glyph is a handful of
 * lines and curves, so that it can be had at any size with smooth edges. Printable ASCII; anything else becomes '?'.
 */
#ifndef CLI_LETTERING_H
#define CLI_LETTERING_H

#include "picture.h"

/* Pixels from the left edge of the text to its right one; `size` is the height of a capital in pixels. */
double lettering_width(const char *text, double size);

/* Draws with the top left corner of the first capital at (x, y); clipped to the picture. */
void lettering_draw(struct picture *picture, double x, double y, const char *text, double size, struct colour colour);

/* The same, cut with ".." where the text is wider than `width`. */
void lettering_draw_within(struct picture *picture, double x, double y, double width, const char *text, double size,
                           struct colour colour);

#endif
