/* SPDX-License-Identifier: MIT */
/*
 * sheet_parts.h - what all pictures for people share: paper, the line on top with the scale of colours, and the line
 * below a panel.
 */
#ifndef CLI_SHEET_PARTS_H
#define CLI_SHEET_PARTS_H

#include "colormap.h"

enum {
    SHEET_MARGIN = 14,
    SHEET_GAP = 10,
    SHEET_TITLE = 44, /* height of the line on top       */
    SHEET_LABEL = 22  /* height of the line below a panel */
};

/* Blank paper up to the right and lower edge of the last panel with its label. */
bool sheet_parts_begin(struct picture *sheet, struct rectangle last, struct failure *failure);

void sheet_parts_title(struct picture *sheet, const char *title, const char *detail, const struct colormap *colours);

/* `name` at the left edge below a panel and `detail` at the right one; of a narrow panel those of its place. */
void sheet_parts_label(struct picture *sheet, struct rectangle place, struct rectangle panel, const char *name,
                       const char *detail);

#endif
