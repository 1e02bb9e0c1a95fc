/* SPDX-License-Identifier: MIT */
/*
 * patch_embed.h - patches of the image become the tokens of the first stage: a projection of each patch's pixels, a
 * LayerNorm, and the absolute position embedding where the model has one. [V1] section 3.1.
 */
#ifndef SW_EXEC_PATCH_EMBED_H
#define SW_EXEC_PATCH_EMBED_H

#include "run.h"

/* `pixels`: one per image in work. */
void sw_patch_embed_run(sw_run *run, const sw_pixels *pixels);

#endif
