/* SPDX-License-Identifier: MIT */
/*
 * sheet.h - pictures for people: the photo with what the network makes of it beside it, labelled.
 */
#ifndef CLI_SHEET_H
#define CLI_SHEET_H

#include "level_view.h"

enum { SHEET_CHANNELS = 16 };

/* One level: photo and energy at the left, its strongest channels at the right, each with the range of its values.
 * `title` says what the picture is of. */
bool sheet_draw_level(struct picture *sheet, const struct picture *photo, const char *title,
                      const struct level_view *view, const struct colormap *colours, struct failure *failure);

/* The photo and the energy of `count` levels. */
bool sheet_draw_overview(struct picture *sheet, const struct picture *photo, const char *title,
                         const struct level_view *views, int count, const struct colormap *colours,
                         struct failure *failure);

#endif
