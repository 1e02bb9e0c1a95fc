/* SPDX-License-Identifier: MIT */
/*
 * attention_sheet.h - what a pixel attends to, for people: the photo, darkened, with the weights in colour over the
 * window that the query sees, and beside it that window enlarged.
 */
#ifndef CLI_ATTENTION_SHEET_H
#define CLI_ATTENTION_SHEET_H

#include "attention.h"

/* `title` says what the picture is of. */
bool attention_sheet_draw(struct picture *sheet, const struct picture *photo, const char *title,
                          const struct attention *attention, const struct colormap *colours, struct failure *failure);

#endif
