/* SPDX-License-Identifier: MIT */
#include "level_view.h"

#include <stdlib.h>

bool level_view_create(struct level_view *view, const struct feature_map *map, struct failure *failure)
{
    const size_t cells = feature_map_cells(map);
    *view = (struct level_view){.map = *map, .energy = malloc(cells * sizeof *view->energy)};
    if (view->energy == NULL)
        return failure_no_memory(failure, cells * sizeof *view->energy, "a heatmap");
    feature_map_energy(map, view->energy);
    if (!heatmap_range(view->energy, cells, &view->range, failure)) {
        level_view_destroy(view);
        return false;
    }
    return true;
}

void level_view_destroy(struct level_view *view)
{
    free(view->energy);
    view->energy = NULL;
}

struct grid level_view_grid(const struct level_view *view, const float *cells, int32_t height, int32_t width)
{
    const swin_output_info *info = &view->map.info;
    return (struct grid){.rows = info->height,
                         .columns = info->width,
                         .row_extent = (double)height / info->stride,
                         .column_extent = (double)width / info->stride,
                         .cells = cells};
}
