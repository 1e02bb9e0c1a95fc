/* SPDX-License-Identifier: MIT */
/*
 * feature_map.h - one level's map of one image as the library hands it out, and what can be said about its numbers.
 */
#ifndef CLI_FEATURE_MAP_H
#define CLI_FEATURE_MAP_H

#include <swin/swin.h>

#include "failure.h"

struct feature_map {
    swin_output_info info;
    bool nhwc; /* [H, W, C] rather than [C, H, W] */
    const float *data;
};

struct map_statistics {
    double minimum, maximum, mean, deviation; /* of the finite values */
    uint64_t nonfinite;
};

static inline size_t feature_map_cells(const struct feature_map *map)
{
    return (size_t)map->info.height * (size_t)map->info.width;
}

struct map_statistics feature_map_statistics(const struct feature_map *map);

/* Length of the vector of channels in each cell; `cells` has room for height * width. */
void feature_map_energy(const struct feature_map *map, float *cells);

/* One channel, [height, width]. */
void feature_map_channel(const struct feature_map *map, int32_t channel, float *cells);

/* The channels that vary most over the map, strongest first; at most `most`, and no more than there are. Returns how
 * many, or -1 with a failure set. */
int32_t feature_map_strongest(const struct feature_map *map, int32_t *channels, int32_t most, struct failure *failure);

#endif
