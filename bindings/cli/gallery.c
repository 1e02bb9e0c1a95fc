/* SPDX-License-Identifier: MIT */
#include "gallery.h"

#include <string.h>

#include "attention_sheet.h"
#include "sheet.h"

/* Takes over the picture. */
static bool write_picture(struct output *output, const char *name, struct picture *picture, struct failure *failure)
{
    FILE *stream = output_begin(output, name, failure);
    const bool done = stream != NULL && picture_write_png(picture, stream, output_path(output), failure) &&
                      output_end(output, failure);
    picture_destroy(picture);
    return done;
}

static bool write_heatmap(const struct plan *plan, const struct picture *photo, const struct level_view *view,
                          struct output *output, struct failure *failure)
{
    struct picture picture;
    char name[32];
    const struct rectangle all = {0, 0, photo->width, photo->height};
    const struct grid grid = level_view_grid(view, view->energy, photo->height, photo->width);
    if (!picture_create(&picture, photo->width, photo->height, failure))
        return false;
    if (!heatmap_draw(&picture, all, &grid, view->range, &plan->colours, failure)) {
        picture_destroy(&picture);
        return false;
    }
    snprintf(name, sizeof name, "c%d.png", view->map.info.level + 2);
    return write_picture(output, name, &picture, failure);
}

static bool write_sheet(const struct plan *plan, const struct picture *photo, const char *title,
                        const struct level_view *view, struct output *output, struct failure *failure)
{
    struct picture sheet;
    char name[32];
    snprintf(name, sizeof name, "c%d-channels.png", view->map.info.level + 2);
    return sheet_draw_level(&sheet, photo, title, view, &plan->colours, failure) &&
           write_picture(output, name, &sheet, failure);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

enum { TITLE_TEXT = 512 };

static void title_of(const struct plan *plan, const struct image_run *run, char title[TITLE_TEXT])
{
    snprintf(title, TITLE_TEXT, "%s    %s", file_name(run->path), plan->label);
}

bool gallery_write(const struct plan *plan, const struct image_run *run, struct output *output, struct failure *failure)
{
    struct level_view views[SWIN_MAX_STAGES] = {0};
    struct picture overview;
    char title[TITLE_TEXT];
    bool done = true;

    title_of(plan, run, title);
    for (int i = 0; i < run->level_count && done; i++)
        done = level_view_create(&views[i], &run->levels[i], failure);
    for (int i = 0; i < run->level_count && done; i++) {
        done = write_heatmap(plan, &run->photo, &views[i], output, failure) &&
               write_sheet(plan, &run->photo, title, &views[i], output, failure);
    }
    done = done &&
           sheet_draw_overview(&overview, &run->photo, title, views, run->level_count, &plan->colours, failure) &&
           write_picture(output, "overview.png", &overview, failure);
    for (int i = 0; i < run->level_count; i++)
        level_view_destroy(&views[i]);
    return done;
}

bool gallery_write_attention(const struct plan *plan, const struct image_run *run, const struct attention *attention,
                             struct output *output, struct failure *failure)
{
    struct picture sheet;
    char title[TITLE_TEXT];
    title_of(plan, run, title);
    return attention_sheet_draw(&sheet, &run->photo, title, attention, &plan->colours, failure) &&
           write_picture(output, "attention.png", &sheet, failure);
}
