/* SPDX-License-Identifier: MIT */
#include "feature_map.h"

#include <math.h>
#include <stdlib.h>

static size_t channel_stride(const struct feature_map *map)
{
    return map->nhwc ? 1 : feature_map_cells(map);
}

static size_t cell_stride(const struct feature_map *map)
{
    return map->nhwc ? (size_t)map->info.channels : 1;
}

struct map_statistics feature_map_statistics(const struct feature_map *map)
{
    const size_t count = feature_map_cells(map) * (size_t)map->info.channels;
    struct map_statistics statistics = {.minimum = INFINITY, .maximum = -INFINITY};
    double sum = 0;
    double squares = 0;
    size_t finite = 0;

    for (size_t i = 0; i < count; i++) {
        const double value = (double)map->data[i];
        if (!isfinite(value)) {
            statistics.nonfinite++;
            continue;
        }
        finite++;
        sum += value;
        squares += value * value;
        if (value < statistics.minimum)
            statistics.minimum = value;
        if (value > statistics.maximum)
            statistics.maximum = value;
    }
    if (finite == 0) {
        statistics.minimum = statistics.maximum = statistics.mean = statistics.deviation = NAN;
        return statistics;
    }
    statistics.mean = sum / (double)finite;
    statistics.deviation = sqrt(fmax(squares / (double)finite - statistics.mean * statistics.mean, 0));
    return statistics;
}

void feature_map_energy(const struct feature_map *map, float *cells)
{
    const size_t count = feature_map_cells(map);
    const size_t step = cell_stride(map);

    for (size_t i = 0; i < count; i++)
        cells[i] = 0;
    if (map->nhwc) {
        for (size_t i = 0; i < count; i++) {
            for (int32_t c = 0; c < map->info.channels; c++)
                cells[i] += map->data[i * step + (size_t)c] * map->data[i * step + (size_t)c];
        }
    } else {
        for (int32_t c = 0; c < map->info.channels; c++) {
            const float *plane = map->data + (size_t)c * count;
            for (size_t i = 0; i < count; i++)
                cells[i] += plane[i] * plane[i];
        }
    }
    for (size_t i = 0; i < count; i++)
        cells[i] = sqrtf(cells[i]);
}

void feature_map_channel(const struct feature_map *map, int32_t channel, float *cells)
{
    const float *first = map->data + (size_t)channel * channel_stride(map);
    const size_t count = feature_map_cells(map);
    const size_t step = cell_stride(map);
    for (size_t i = 0; i < count; i++)
        cells[i] = first[i * step];
}

struct strength {
    int32_t channel;
    double variance;
};

/* Ties and channels that are not finite keep the order of their numbers, the latter at the end. */
static int by_variance(const void *left, const void *right)
{
    const struct strength *a = left;
    const struct strength *b = right;
    if (a->variance != b->variance)
        return a->variance > b->variance ? -1 : 1;
    return a->channel < b->channel ? -1 : 1;
}

static double channel_variance(const struct feature_map *map, int32_t channel)
{
    const float *first = map->data + (size_t)channel * channel_stride(map);
    const size_t count = feature_map_cells(map);
    const size_t step = cell_stride(map);
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < count; i++) {
        const double value = (double)first[i * step];
        sum += value;
        squares += value * value;
    }
    const double mean = sum / (double)count;
    const double variance = squares / (double)count - mean * mean;
    return isfinite(variance) ? variance : -1;
}

int32_t feature_map_strongest(const struct feature_map *map, int32_t *channels, int32_t most, struct failure *failure)
{
    const size_t count = (size_t)map->info.channels;
    struct strength *strengths = malloc(count * sizeof *strengths);
    if (strengths == NULL) {
        failure_no_memory(failure, count * sizeof *strengths, "ranking channels");
        return -1;
    }
    for (size_t c = 0; c < count; c++)
        strengths[c] = (struct strength){(int32_t)c, channel_variance(map, (int32_t)c)};
    qsort(strengths, count, sizeof *strengths, by_variance);
    const int32_t chosen = map->info.channels < most ? map->info.channels : most;
    for (int32_t i = 0; i < chosen; i++)
        channels[i] = strengths[i].channel;
    free(strengths);
    return chosen;
}
