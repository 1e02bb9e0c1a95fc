/* SPDX-License-Identifier: MIT */
/*
 * patch_merge.h - four neighbouring tokens become one of twice the channels: the next stage's map. [V1] section 3.1.
 *
 * V1 normalises the four, then reduces; V2 reduces, then normalises. An odd map is padded with zeros below and to the
 * right.
 */
#ifndef SW_EXEC_PATCH_MERGE_H
#define SW_EXEC_PATCH_MERGE_H

#include "run.h"

/* From stage to stage + 1, for all images in work. */
void sw_patch_merge_run(sw_run *run, int32_t stage);

#endif
