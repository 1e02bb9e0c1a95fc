/* SPDX-License-Identifier: MIT */
#include "sheet.h"

#include <math.h>
#include <stdlib.h>

#include "sheet_parts.h"

enum {
    PANEL_AREA = 30000, /* pixels of a small panel, whatever its shape */
    PANEL_LEAST = 16,   /* sides of a panel, for very long or tall photos */
    PANEL_MOST = 440,
    LARGE_MOST = 1400,
    CELL_LEAST = 160, /* width that a label needs */
    WIDE_CELL_LEAST = 310,
    ACROSS = 4, /* small panels of a contact sheet */
    DOWN = SHEET_CHANNELS / ACROSS
};

/* Small panels in the photo's shape, in cells that leave room for their labels. */
struct layout {
    int32_t panel_width, panel_height;
    int32_t cell_width, cell_height;
};

static int32_t clamped(double value, int32_t least, int32_t most)
{
    return (int32_t)lround(fmin(fmax(value, least), most));
}

static struct layout layout_of(const struct picture *photo)
{
    const double aspect = (double)photo->width / photo->height;
    struct layout layout;
    double width = sqrt(PANEL_AREA * aspect);
    double height = width / aspect;
    const double shrink = fmin(1, PANEL_MOST / fmax(width, height));
    width *= shrink;
    height *= shrink;
    layout.panel_width = clamped(width, PANEL_LEAST, PANEL_MOST);
    layout.panel_height = clamped(height, PANEL_LEAST, PANEL_MOST);
    layout.cell_width = layout.panel_width > CELL_LEAST ? layout.panel_width : CELL_LEAST;
    layout.cell_height = layout.panel_height + SHEET_LABEL;
    return layout;
}

/* The panel in a place: as large as fits over the label, centred between the sides. */
static struct rectangle panel_in(const struct layout *layout, struct rectangle place)
{
    const double scale =
        fmin((double)place.width / layout->panel_width, (double)(place.height - SHEET_LABEL) / layout->panel_height);
    const int32_t width = clamped(scale * layout->panel_width, 1, place.width);
    const int32_t height = clamped(scale * layout->panel_height, 1, place.height - SHEET_LABEL);
    return (struct rectangle){place.x + (place.width - width) / 2, place.y, width, height};
}

/* The large panels stand in a column of their own at the left, each as high as `rows` rows of small ones. */
static struct rectangle large_place(const struct layout *layout, int32_t index, int32_t rows)
{
    const int32_t height = rows * (layout->cell_height + SHEET_GAP) - SHEET_GAP;
    const int32_t width =
        clamped((double)(height - SHEET_LABEL) * layout->panel_width / layout->panel_height, CELL_LEAST, LARGE_MOST);
    return (struct rectangle){SHEET_MARGIN, SHEET_TITLE + index * (height + SHEET_GAP), width, height};
}

static struct rectangle small_place(const struct layout *layout, struct rectangle large, int32_t column, int32_t row)
{
    return (struct rectangle){large.x + large.width + SHEET_GAP + column * (layout->cell_width + SHEET_GAP),
                              SHEET_TITLE + row * (layout->cell_height + SHEET_GAP), layout->cell_width,
                              layout->cell_height};
}

static bool draw_photo(struct picture *sheet, const struct layout *layout, struct rectangle place,
                       const struct picture *photo, struct failure *failure)
{
    const struct rectangle panel = panel_in(layout, place);
    struct picture small;
    char detail[64];
    if (!picture_resize(photo, panel.height, panel.width, &small, failure))
        return false;
    picture_paste(sheet, &small, panel.x, panel.y);
    picture_destroy(&small);
    snprintf(detail, sizeof detail, "%d x %d pixels", photo->width, photo->height);
    sheet_parts_label(sheet, place, panel, "photo", detail);
    return true;
}

static bool draw_cells(struct picture *sheet, const struct layout *layout, struct rectangle place,
                       const struct picture *photo, const struct level_view *view, const float *cells,
                       struct value_range range, const char *name, const struct colormap *colours,
                       struct failure *failure)
{
    const struct rectangle panel = panel_in(layout, place);
    const struct grid grid = level_view_grid(view, cells, photo->height, photo->width);
    char detail[64];
    if (!heatmap_draw(sheet, panel, &grid, range, colours, failure))
        return false;
    snprintf(detail, sizeof detail, "%.3g .. %.3g", range.low, range.high);
    sheet_parts_label(sheet, place, panel, name, detail);
    return true;
}

static bool draw_channels(struct picture *sheet, const struct layout *layout, struct rectangle large,
                          const struct picture *photo, const struct level_view *view, const int32_t *channels,
                          int32_t count, const struct colormap *colours, struct failure *failure)
{
    const size_t cells = feature_map_cells(&view->map);
    float *values = malloc(cells * sizeof *values);
    if (values == NULL)
        return failure_no_memory(failure, cells * sizeof *values, "a contact sheet");
    bool done = true;
    for (int32_t i = 0; i < count && done; i++) {
        struct value_range range;
        char name[32];
        feature_map_channel(&view->map, channels[i], values);
        snprintf(name, sizeof name, "ch %d", channels[i]);
        done = heatmap_range(values, cells, &range, failure) &&
               draw_cells(sheet, layout, small_place(layout, large, i % ACROSS, i / ACROSS), photo, view, values, range,
                          name, colours, failure);
    }
    free(values);
    return done;
}

bool sheet_draw_level(struct picture *sheet, const struct picture *photo, const char *title,
                      const struct level_view *view, const struct colormap *colours, struct failure *failure)
{
    const struct layout layout = layout_of(photo);
    const struct rectangle first = large_place(&layout, 0, DOWN / 2);
    const struct rectangle second = large_place(&layout, 1, DOWN / 2);
    const swin_output_info *info = &view->map.info;
    int32_t channels[SHEET_CHANNELS];
    char text[128];
    char detail[512];

    *sheet = (struct picture){0};
    const int32_t count = feature_map_strongest(&view->map, channels, SHEET_CHANNELS, failure);
    if (count < 0 || !sheet_parts_begin(sheet, small_place(&layout, first, ACROSS - 1, DOWN - 1), failure))
        return false;
    snprintf(text, sizeof text, "c%d   stride %d   %d x %d x %d", info->level + 2, info->stride, info->channels,
             info->height, info->width);
    snprintf(detail, sizeof detail, "the %d of %d channels that vary most    %s", count, info->channels, title);
    sheet_parts_title(sheet, text, detail, colours);
    if (!draw_photo(sheet, &layout, first, photo, failure) ||
        !draw_cells(sheet, &layout, second, photo, view, view->energy, view->range,
                    "energy: length of the channel vector", colours, failure) ||
        !draw_channels(sheet, &layout, first, photo, view, channels, count, colours, failure)) {
        picture_destroy(sheet);
        return false;
    }
    return true;
}

bool sheet_draw_overview(struct picture *sheet, const struct picture *photo, const char *title,
                         const struct level_view *views, int count, const struct colormap *colours,
                         struct failure *failure)
{
    struct layout layout = layout_of(photo);
    const int32_t down = count > 1 ? 2 : 1;
    const int32_t across = (count + down - 1) / down;

    /* Few panels may be larger. */
    layout.panel_width = layout.panel_width * 3 / 2;
    layout.panel_height = layout.panel_height * 3 / 2;
    layout.cell_width = layout.panel_width > WIDE_CELL_LEAST ? layout.panel_width : WIDE_CELL_LEAST;
    layout.cell_height = layout.panel_height + SHEET_LABEL;
    const struct rectangle large = large_place(&layout, 0, down);
    *sheet = (struct picture){0};
    if (!sheet_parts_begin(sheet, small_place(&layout, large, across - 1, down - 1), failure))
        return false;
    sheet_parts_title(sheet, "energy of each level", title, colours);
    bool done = draw_photo(sheet, &layout, large, photo, failure);
    for (int i = 0; i < count && done; i++) {
        const swin_output_info *info = &views[i].map.info;
        char name[64];
        snprintf(name, sizeof name, "c%d   stride %d   %d x %d x %d", info->level + 2, info->stride, info->channels,
                 info->height, info->width);
        done = draw_cells(sheet, &layout, small_place(&layout, large, i % across, i / across), photo, &views[i],
                          views[i].energy, views[i].range, name, colours, failure);
    }
    if (!done)
        picture_destroy(sheet);
    return done;
}
