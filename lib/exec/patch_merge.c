/* SPDX-License-Identifier: MIT */
#include "patch_merge.h"

#include <string.h>

/* Tokens of the next map that an item makes, at most: the largest of the merge menu. */
#define CHUNK_MAX 128

typedef struct step {
    sw_run *run;
    const sw_stage *stage;
    int32_t stage_number;
    int32_t begin, end;    /* tokens of the next map that this round makes */
    int32_t chunk, chunks; /* tokens per item, items per image             */
} step;

/* The four tokens of the map that token r of the next one is made of, in Microsoft's order; -1 beyond the map. */
static void list_sources(int32_t *index, const int32_t map[2], int32_t next_columns, int32_t first, int32_t rows)
{
    for (int32_t r = first; r < first + rows; r++) {
        const int32_t y = r / next_columns * 2, x = r % next_columns * 2;
        for (int32_t column = 0; column < 2; column++) {
            for (int32_t row = 0; row < 2; row++)
                *index++ = y + row < map[0] && x + column < map[1] ? (y + row) * map[1] + x + column : -1;
        }
    }
}

static swin_status merge_rows(const step *s, int32_t image, int32_t first, int32_t rows, const sw_worker *worker)
{
    const sw_run *run = s->run;
    const sw_linear *merge = &s->stage->merge;
    const bool pre_norm = run->network->config.version == 1;
    const int32_t channels = s->stage->channels, menu = sw_menu_choose(&s->stage->merge_menu, rows);
    const sw_stage_plan *plan = &run->plan->stage[s->stage_number];

    int32_t index[4 * CHUNK_MAX];
    list_sources(index, plan->geometry.map, run->plan->stage[s->stage_number + 1].geometry.map[1], first, rows);
    const bool amx = run->network->amx;
    const size_t padded = sw_tile_panel_rows(rows);
    const sw_panels in = {worker->rows, run->network->type, amx ? SW_AMX_WIDTH : 4 * channels, padded * SW_AMX_WIDTH};
    run->kernels->gather_merge(&in, sw_run_map(run, image, s->stage_number), index, rows, channels,
                               pre_norm ? &s->stage->merge_norm : NULL);
    float *next = sw_run_map(run, image, s->stage_number + 1) + (size_t)first * (size_t)(2 * channels);
    const sw_panels out = {worker->out, SW_F32, amx ? SW_AMX_WIDTH : merge->out_width,
                           amx ? padded * SW_AMX_WIDTH
                               : (size_t)s->stage->merge_menu.rows[menu] * (size_t)merge->out_width};
    SW_TRY(sw_linear_run_all(merge, &worker->linear, menu, rows, &in, 0, 1, &out));
    memset(next, 0, (size_t)rows * (size_t)(2 * channels) * sizeof *next);
    run->kernels->residual(next, NULL, &out, pre_norm ? NULL : &s->stage->merge_norm, rows, 2 * channels, NULL, NULL);
    return SWIN_OK;
}

static void merge_task(void *context, int32_t item, int32_t thread)
{
    const step *s = context;
    if (sw_run_failed(s->run))
        return;
    const int32_t image = item / s->chunks, first = s->begin + item % s->chunks * s->chunk;
    const int32_t rows = s->end - first < s->chunk ? s->end - first : s->chunk;
    sw_run_note(s->run, merge_rows(s, image, first, rows, &s->run->workers[thread]));
    sw_run_release_tiles(s->run);
}

/* How far the next map may be written while the map from row pair `done` on is still to be read, in rows of the next
 * map: the next map stands before the map, at a distance, and is half as large. */
static int32_t safe_rows(const sw_run *run, int32_t stage, int32_t done)
{
    const sw_stage_plan *from = &run->plan->stage[stage], *to = from + 1;
    const int32_t rows = to->geometry.map[0];
    if (to->offset >= from->offset)
        return rows;
    const size_t channels = (size_t)run->network->stages[stage].channels;
    const size_t unread = from->offset + (size_t)(2 * done) * (size_t)from->geometry.map[1] * channels;
    const size_t safe = (unread - to->offset) / ((size_t)to->geometry.map[1] * 2 * channels);
    return safe < (size_t)rows ? (int32_t)safe : rows;
}

void sw_patch_merge_run(sw_run *run, int32_t stage)
{
    const int32_t *next = run->plan->stage[stage + 1].geometry.map;
    const sw_menu *menu = &run->network->stages[stage].merge_menu;
    step s = {.run = run, .stage = &run->network->stages[stage], .stage_number = stage};
    for (int32_t done = 0; done < next[0] && !sw_run_failed(run);) {
        const int32_t until = safe_rows(run, stage, done);
        s.begin = done * next[1];
        s.end = until * next[1];
        /* small enough that several threads find work */
        s.chunk = menu->rows[sw_menu_choose(menu, (s.end - s.begin + 7) / 8)];
        s.chunks = (s.end - s.begin + s.chunk - 1) / s.chunk;
        sw_pool_run(run->pool, run->images * s.chunks, merge_task, &s);
        done = until;
    }
}
