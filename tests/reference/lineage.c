/* SPDX-License-Identifier: MIT */
#include "lineage.h"

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t ceil_div(int32_t value, int32_t divisor)
{
    return (value + divisor - 1) / divisor;
}

void reference_grid(const swin_config *config, int32_t height, int32_t width, int32_t grid[2])
{
    const int32_t patch = config->patch_size;
    if (config->lineage == SWIN_LINEAGE_TORCHVISION) { /* pixels beyond the last whole patch are dropped */
        grid[0] = height / patch;
        grid[1] = width / patch;
    } else { /* the image is padded to whole patches */
        grid[0] = ceil_div(height, patch);
        grid[1] = ceil_div(width, patch);
    }
}

/* The stage's map in an image of the size that the model was configured for; where nobody said, the present image. */
static void configured_map(const swin_config *config, int32_t stage, int32_t height, int32_t width, bool round_up,
                           int32_t map[2])
{
    map[0] = config->image_size[0] > 0 ? config->image_size[0] : height;
    map[1] = config->image_size[1] > 0 ? config->image_size[1] : width;
    for (int axis = 0; axis < 2; axis++) {
        map[axis] =
            config->image_size[axis] > 0 ? map[axis] / config->patch_size : ceil_div(map[axis], config->patch_size);
        for (int32_t s = 0; s < stage; s++)
            map[axis] = round_up ? ceil_div(map[axis], 2) : map[axis] / 2;
        if (map[axis] < 1)
            map[axis] = 1;
    }
}

reference_rule reference_rule_of(const swin_config *config, int32_t stage, int32_t block, int32_t rows, int32_t columns,
                                 int32_t height, int32_t width)
{
    const bool shifted = block % 2 == 1;
    reference_rule rule = {.mask = -100};
    for (int axis = 0; axis < 2; axis++) {
        rule.window[axis] = config->window[stage][axis];
        rule.shift[axis] = shifted ? rule.window[axis] / 2 : 0;
    }
    const int32_t side = smaller(rows, columns);
    int32_t configured[2];

    switch ((swin_lineage)config->lineage) {
    case SWIN_LINEAGE_DETECTION: /* window and shift stay, whatever the map */
    case SWIN_LINEAGE_AUTO:
        break;

    case SWIN_LINEAGE_MICROSOFT: /* a map with a side not longer than the window: the window becomes that side */
        if (side <= smaller(rule.window[0], rule.window[1])) {
            rule.window[0] = rule.window[1] = side;
            rule.shift[0] = rule.shift[1] = 0;
        }
        break;

    case SWIN_LINEAGE_HUGGINGFACE:
        if (config->version == 1) { /* as Microsoft's, decided anew for each image */
            if (side <= smaller(rule.window[0], rule.window[1])) {
                rule.window[0] = rule.window[1] = side;
                rule.shift[0] = rule.shift[1] = 0;
            }
        } else { /* decided once, by the rows of the configured image; and the mask is added twice */
            configured_map(config, stage, height, width, false, configured);
            if (configured[0] <= rule.window[0])
                rule.shift[0] = rule.shift[1] = 0;
            rule.window[0] = rule.window[1] = smaller(rule.window[0], configured[0]);
            rule.mask = -200;
        }
        break;

    case SWIN_LINEAGE_TORCHVISION: /* an axis that is one window long is not shifted */
        if (rows <= rule.window[0])
            rule.shift[0] = 0;
        if (columns <= rule.window[1])
            rule.shift[1] = 0;
        break;

    case SWIN_LINEAGE_TIMM: /* each axis for itself, decided once by the configured image */
        configured_map(config, stage, height, width, true, configured);
        for (int axis = 0; axis < 2; axis++) {
            if (configured[axis] <= rule.window[axis]) {
                rule.window[axis] = configured[axis];
                rule.shift[axis] = 0;
            }
        }
        rule.roll_before_padding = true;
        break;

    case SWIN_LINEAGE_MMPRETRAIN: /* a side as long as the window: no shift; a shorter one is refused there */
        if (side == rule.window[0])
            rule.shift[0] = rule.shift[1] = 0;
        break;
    }
    return rule;
}
