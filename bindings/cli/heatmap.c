/* SPDX-License-Identifier: MIT */
#include "heatmap.h"

#include <math.h>
#include <stdlib.h>

/* The value at `rank` of `values` in order (Hoare's selection); reorders them. */
static float select_rank(float *values, size_t count, size_t rank)
{
    size_t low = 0;
    size_t high = count - 1;
    while (low < high) {
        const float pivot = values[low + (high - low) / 2];
        size_t i = low;
        size_t j = high;
        while (i <= j) {
            /* The pivot itself ends both loops. */
            while (values[i] < pivot) /* NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult) */
                i++;
            while (pivot < values[j]) /* NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult) */
                j--;
            if (i <= j) {
                const float swapped = values[i];
                values[i++] = values[j];
                values[j] = swapped;
                if (j == 0)
                    break;
                j--;
            }
        }
        if (rank <= j)
            high = j;
        else if (rank >= i)
            low = i;
        else
            break;
    }
    return values[rank];
}

bool heatmap_range(const float *values, size_t count, struct value_range *range, struct failure *failure)
{
    float *finite = malloc(count * sizeof *finite);
    if (finite == NULL)
        return failure_no_memory(failure, count * sizeof *finite, "a heatmap");
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (isfinite(values[i]))
            finite[kept++] = values[i];
    }
    *range = (struct value_range){0, 0};
    if (kept > 0) {
        const size_t margin = (size_t)(0.01 * (double)(kept - 1) + 0.5);
        range->low = (double)select_rank(finite, kept, margin);
        range->high = (double)select_rank(finite, kept, kept - 1 - margin);
    }
    free(finite);
    return true;
}

bool heatmap_draw(struct picture *picture, struct rectangle area, const struct grid *grid, struct value_range range,
                  const struct colormap *colours, struct failure *failure)
{
    const size_t bytes = (size_t)area.height * (size_t)area.width * sizeof(float);
    float *samples = malloc(bytes);
    if (samples == NULL)
        return failure_no_memory(failure, bytes, "a heatmap");
    if (!grid_resample(grid, area.height, area.width, samples, failure)) {
        free(samples);
        return false;
    }
    const double span = range.high - range.low;
    for (int32_t y = 0; y < area.height; y++) {
        uint8_t *pixel = picture_at(picture, area.x, area.y + y);
        const float *sample = samples + (size_t)y * (size_t)area.width;
        for (int32_t x = 0; x < area.width; x++, pixel += 3) {
            const double value = (double)sample[x];
            const struct colour c = colormap_at(colours, isnan(value) ? NAN
                                                         : span > 0   ? (value - range.low) / span
                                                                      : 0.5);
            pixel[0] = c.red;
            pixel[1] = c.green;
            pixel[2] = c.blue;
        }
    }
    free(samples);
    return true;
}

void heatmap_draw_scale(struct picture *picture, struct rectangle area, const struct colormap *colours)
{
    for (int32_t x = 0; x < area.width; x++) {
        const double value = area.width > 1 ? x / (double)(area.width - 1) : 0.5;
        picture_fill(picture, (struct rectangle){area.x + x, area.y, 1, area.height}, colormap_at(colours, value));
    }
}
