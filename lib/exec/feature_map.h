/* SPDX-License-Identifier: MIT */
/*
 * feature_map.h - a stage's tokens become the caller's map: the level's LayerNorm where there is one, and the layout.
 */
#ifndef SW_EXEC_FEATURE_MAP_H
#define SW_EXEC_FEATURE_MAP_H

#include "run.h"

/* `map`: the caller's memory for the images in work, one after the other. */
void sw_feature_map_run(sw_run *run, int32_t stage, float *map, bool nhwc);

#endif
