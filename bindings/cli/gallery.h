/* SPDX-License-Identifier: MIT */
/*
 * gallery.h - the PNG files of an image: cN.png is the energy of a level over the photo's own pixels, cN-channels.png
 * its contact sheet, overview.png the photo with all levels. attention.png is what a pixel attends to.
 */
#ifndef CLI_GALLERY_H
#define CLI_GALLERY_H

#include "attention.h"
#include "image_run.h"
#include "output.h"

bool gallery_write(const struct plan *plan, const struct image_run *run, struct output *output,
                   struct failure *failure);

bool gallery_write_attention(const struct plan *plan, const struct image_run *run, const struct attention *attention,
                             struct output *output, struct failure *failure);

#endif
