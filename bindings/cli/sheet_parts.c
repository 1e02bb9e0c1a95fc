/* SPDX-License-Identifier: MIT */
#include "sheet_parts.h"

#include "heatmap.h"
#include "lettering.h"

enum { SCALE_WIDTH = 160 };

static const double title_size = 12;
static const double label_size = 9;
static const struct colour paper = {18, 20, 24};
static const struct colour ink = {226, 228, 232};
static const struct colour pale_ink = {158, 164, 174};

bool sheet_parts_begin(struct picture *sheet, struct rectangle last, struct failure *failure)
{
    if (!picture_create(sheet, last.x + last.width + SHEET_MARGIN, last.y + last.height + SHEET_MARGIN / 2, failure))
        return false;
    picture_fill(sheet, (struct rectangle){0, 0, sheet->width, sheet->height}, paper);
    return true;
}

void sheet_parts_title(struct picture *sheet, const char *title, const char *detail, const struct colormap *colours)
{
    const double y = (SHEET_TITLE - title_size) / 2;
    const struct rectangle scale = {sheet->width - SHEET_MARGIN - SCALE_WIDTH - 34, (SHEET_TITLE - 10) / 2, SCALE_WIDTH,
                                    10};
    const double room = scale.x - 50 - SHEET_MARGIN;
    const double beside = SHEET_MARGIN + lettering_width(title, title_size) + 30;
    lettering_draw_within(sheet, SHEET_MARGIN, y, room, title, title_size, ink);
    lettering_draw_within(sheet, beside, y + title_size - label_size, room - beside, detail, label_size, pale_ink);
    heatmap_draw_scale(sheet, scale, colours);
    const double level = (SHEET_TITLE - label_size) / 2;
    lettering_draw(sheet, scale.x - 8 - lettering_width("low", label_size), level, "low", label_size, pale_ink);
    lettering_draw(sheet, scale.x + scale.width + 8, level, "high", label_size, pale_ink);
}

void sheet_parts_label(struct picture *sheet, struct rectangle place, struct rectangle panel, const char *name,
                       const char *detail)
{
    const bool narrow = place.width - panel.width > 2 * SHEET_GAP;
    const double left = narrow ? place.x + SHEET_GAP : panel.x + 1;
    const double width = narrow ? place.width - 2 * SHEET_GAP : panel.width;
    const double y = panel.y + panel.height + 7;
    const double detail_width = lettering_width(detail, label_size);
    lettering_draw_within(sheet, left, y, width - detail_width - 6, name, label_size, ink);
    lettering_draw(sheet, left + width - detail_width - 1, y, detail, label_size, pale_ink);
}
