/* SPDX-License-Identifier: MIT */
#include "geometry.h"

#include "../base/checked.h"

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

void sw_geometry_grid(const swin_config *config, int32_t height, int32_t width, int32_t grid[2])
{
    const int32_t patch = config->patch_size;
    if (config->lineage == SWIN_LINEAGE_TORCHVISION) {
        grid[0] = height / patch;
        grid[1] = width / patch;
    } else {
        grid[0] = sw_ceil_div(height, patch);
        grid[1] = sw_ceil_div(width, patch);
    }
}

/* Microsoft's rule, which Hugging Face's V1 shares: a map not larger than the window becomes the window, unshifted. The
 * rule compares the smaller side with a square window. */
static void clamp_to_map(sw_geometry *g, const int32_t map[2])
{
    const int32_t side = min32(map[0], map[1]);
    if (side <= min32(g->window[0], g->window[1])) {
        g->window[0] = g->window[1] = side;
        g->shift[0] = g->shift[1] = 0;
    }
}

/* timm: each axis by itself, from the size that the model was made for; every stage halves it, rounding up (down in
 * versions up to 1.0.26). */
static void clamp_each_axis(sw_geometry *g, const swin_config *config, int32_t stage, const int32_t image_size[2])
{
    for (int axis = 0; axis < 2; axis++) {
        const int32_t configured = config->image_size[axis] > 0 ? config->image_size[axis] : image_size[axis];
        int32_t resolution = configured / config->patch_size;
        for (int32_t s = 0; s < stage; s++)
            resolution = sw_ceil_div(resolution, 2);
        if (resolution < 1)
            resolution = 1;
        g->window[axis] = min32(g->window[axis], resolution);
        if (resolution <= g->window[axis])
            g->shift[axis] = 0;
    }
}

/* Hugging Face's V2: both axes from the rows of the size that the model was made for, halved rounding down. It knows
 * square windows alone; others keep each axis within its own length. */
static void clamp_to_rows(sw_geometry *g, const swin_config *config, int32_t stage, const int32_t image_size[2])
{
    const int32_t configured = config->image_size[0] > 0 ? config->image_size[0] : image_size[0];
    const int32_t resolution = configured / config->patch_size >> stage;
    const bool shifts = resolution > g->window[0];
    for (int axis = 0; axis < 2; axis++) {
        g->window[axis] = min32(g->window[axis], resolution > 0 ? resolution : 1);
        if (!shifts)
            g->shift[axis] = 0;
    }
}

void sw_geometry_init(sw_geometry *g, const swin_config *config, int32_t stage, const int32_t map[2],
                      const int32_t image_size[2])
{
    const bool hugging_face_v2 = config->lineage == SWIN_LINEAGE_HUGGINGFACE && config->version == 2;
    /* Hugging Face's V2 adds the published -100 twice. */
    *g = (sw_geometry){.roll_first = config->lineage == SWIN_LINEAGE_TIMM, .mask = hugging_face_v2 ? -200.0f : -100.0f};
    for (int axis = 0; axis < 2; axis++) {
        g->map[axis] = map[axis];
        g->window[axis] = config->window[stage][axis];
        g->shift[axis] = g->window[axis] / 2;
    }
    switch ((swin_lineage)config->lineage) {
    case SWIN_LINEAGE_HUGGINGFACE:
        if (hugging_face_v2)
            clamp_to_rows(g, config, stage, image_size);
        else
            clamp_to_map(g, map);
        break;
    case SWIN_LINEAGE_MICROSOFT:
        clamp_to_map(g, map);
        break;
    case SWIN_LINEAGE_TIMM:
        clamp_each_axis(g, config, stage, image_size);
        break;
    case SWIN_LINEAGE_MMPRETRAIN:
        if (min32(map[0], map[1]) == g->window[0])
            g->shift[0] = g->shift[1] = 0;
        break;
    case SWIN_LINEAGE_TORCHVISION:
    case SWIN_LINEAGE_DETECTION:
    case SWIN_LINEAGE_AUTO:
        break;
    }
    for (int axis = 0; axis < 2; axis++) {
        g->windows[axis] = sw_ceil_div(map[axis], g->window[axis]);
        g->padded[axis] = g->windows[axis] * g->window[axis];
        if (config->lineage == SWIN_LINEAGE_TORCHVISION && g->window[axis] >= g->padded[axis])
            g->shift[axis] = 0;
    }
}

/* The row (or column) of the map that stands at a position of the padded, rolled axis, or -1. */
static int32_t source(const sw_geometry *g, int axis, int32_t shift, int32_t position)
{
    if (g->roll_first) {
        if (position >= g->map[axis])
            return -1;
        const int32_t rolled = position + shift;
        return rolled < g->map[axis] ? rolled : rolled % g->map[axis];
    }
    const int32_t rolled = position + shift;
    const int32_t at = rolled < g->padded[axis] ? rolled : rolled - g->padded[axis];
    return at < g->map[axis] ? at : -1;
}

static int32_t shift_of(const sw_geometry *g, bool shifted, int axis)
{
    return shifted ? g->shift[axis] : 0;
}

/* The other way round: where on the padded, rolled axis a row (or column) of the map stands. */
static int32_t position_of(const sw_geometry *g, int axis, int32_t shift, int32_t at)
{
    const int32_t length = g->roll_first ? g->map[axis] : g->padded[axis];
    const int32_t position = at - shift % length;
    return position >= 0 ? position : position + length;
}

static int32_t filled(const sw_geometry *g, int axis, int32_t shift, int32_t first)
{
    int32_t count = 0;
    for (int32_t i = 0; i < g->window[axis]; i++)
        count += source(g, axis, shift, first + i) >= 0;
    return count;
}

int32_t sw_geometry_token_count(const sw_geometry *g, bool shifted, int32_t window)
{
    const int32_t first_row = window / g->windows[1] * g->window[0];
    const int32_t first_column = window % g->windows[1] * g->window[1];
    return filled(g, 0, shift_of(g, shifted, 0), first_row) * filled(g, 1, shift_of(g, shifted, 1), first_column);
}

void sw_geometry_tokens(const sw_geometry *g, bool shifted, int32_t window, int32_t *tokens)
{
    const int32_t first_row = window / g->windows[1] * g->window[0];
    const int32_t first_column = window % g->windows[1] * g->window[1];
    const int32_t shift_rows = shift_of(g, shifted, 0), shift_columns = shift_of(g, shifted, 1);
    for (int32_t i = 0; i < g->window[0]; i++) {
        const int32_t row = source(g, 0, shift_rows, first_row + i);
        for (int32_t j = 0; j < g->window[1]; j++) {
            const int32_t column = source(g, 1, shift_columns, first_column + j);
            *tokens++ = row >= 0 && column >= 0 ? row * g->map[1] + column : -1;
        }
    }
}

void sw_geometry_find(const sw_geometry *g, bool shifted, const int32_t cell[2], int32_t *window, int32_t *slot)
{
    const int32_t row = position_of(g, 0, shift_of(g, shifted, 0), cell[0]);
    const int32_t column = position_of(g, 1, shift_of(g, shifted, 1), cell[1]);
    *window = row / g->window[0] * g->windows[1] + column / g->window[1];
    *slot = row % g->window[0] * g->window[1] + column % g->window[1];
}

/* 0 before the last window, 1 in it up to where the roll wraps, 2 after. An axis that is not shifted is one region. */
static int32_t region(const sw_geometry *g, int axis, int32_t shift, int32_t position)
{
    if (shift == 0 || position < g->padded[axis] - g->window[axis])
        return 0;
    return position < g->padded[axis] - shift ? 1 : 2;
}

bool sw_geometry_regions(const sw_geometry *g, bool shifted, int32_t window, int32_t *regions)
{
    const int32_t window_row = window / g->windows[1], window_column = window % g->windows[1];
    const int32_t shift_rows = shift_of(g, shifted, 0), shift_columns = shift_of(g, shifted, 1);
    const bool last_row = shift_rows > 0 && window_row == g->windows[0] - 1;
    const bool last_column = shift_columns > 0 && window_column == g->windows[1] - 1;
    if (!last_row && !last_column)
        return false;
    for (int32_t i = 0; i < g->window[0]; i++) {
        const int32_t row_region = region(g, 0, shift_rows, window_row * g->window[0] + i);
        for (int32_t j = 0; j < g->window[1]; j++)
            *regions++ = 3 * row_region + region(g, 1, shift_columns, window_column * g->window[1] + j);
    }
    return true;
}
