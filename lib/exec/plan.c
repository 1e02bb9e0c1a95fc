/* SPDX-License-Identifier: MIT */
#include "plan.h"

#include <string.h>

#include "../base/checked.h"
#include "../base/memory.h"

/* oneDNN: a stage is cut into at least this many tiles where its windows allow it, so that threads find work. */
#define TILES_WANTED 8
/* oneDNN: with fewer windows than this, threads share the layers of one tile. With AMX they do so wherever one tile is
 * enough: each of them reads its share of the weights then, and memory is what small images wait for. */
#define WIDE_WINDOWS 4
/* AMX: tiles of a thread at least, so that one that is held up can be helped. */
#define TILES_OF_THREAD 2
#define MANY_TILES 4
/* The first merge writes behind its own reading position; the gap between them, as a share of the first map, bounds how
 * many rounds it takes. */
#define MERGE_GAP_SHARE 8
#define MERGE_GAP_FLOATS 262144

swin_status sw_plan_maps(const swin_config *config, int32_t height, int32_t width, int32_t maps[SWIN_MAX_STAGES][2],
                         swin_error *err)
{
    int32_t map[2];
    sw_geometry_grid(config, height, width, map);
    if (map[0] < 1 || map[1] < 1)
        return sw_fail(err, SWIN_ERR_ARGUMENT,
                       "image of %d x %d pixels: the %s lineage needs at least one patch of %d x %d", height, width,
                       "torchvision", config->patch_size, config->patch_size);
    for (int32_t s = 0; s < config->stages; s++) {
        /* Windows may double the tokens of a side, and a whole batch is indexed by size_t only. */
        size_t floats;
        const size_t padded_rows = (size_t)map[0] + (size_t)config->window[s][0];
        const size_t padded_columns = (size_t)map[1] + (size_t)config->window[s][1];
        if (!sw_mul(padded_rows, padded_columns, &floats) || floats > INT32_MAX / 4 ||
            !sw_mul(floats, (size_t)sw_config_channels(config, s) * sizeof(float), &floats) || floats > PTRDIFF_MAX / 4)
            return sw_fail(err, SWIN_ERR_LIMIT, "image of %d x %d pixels: level %d would have %d x %d tokens, too many",
                           height, width, s, map[0], map[1]);
        maps[s][0] = map[0];
        maps[s][1] = map[1];
        map[0] = sw_ceil_div(map[0], 2);
        map[1] = sw_ceil_div(map[1], 2);
    }
    return SWIN_OK;
}

const sw_position_bias *sw_plan_bias(const sw_plan *plan, const sw_network *network, int32_t stage, int32_t block)
{
    const sw_position_bias *clamped = plan->stage[stage].clamped;
    return clamped != NULL ? &clamped[block] : &network->stages[stage].blocks[block].bias;
}

/* oneDNN: the rows that a tile of this stage is filled up to. */
static int32_t tile_rows(const sw_stage *stage, int32_t tokens, int32_t slots)
{
    int32_t rows = sw_menu_largest(&stage->menu);
    for (int32_t i = stage->menu.count - 1; i >= 0 && stage->menu.rows[i] >= slots; i--) {
        rows = stage->menu.rows[i];
        if (tokens / rows >= TILES_WANTED)
            break;
    }
    return rows;
}

/* AMX: tiles of about as many rows, as many for each thread; few, for each reads all weights. Where there are many, the
 * largest have half a window to spare, so that no window is left over. */
static int32_t tile_count(const sw_stage *stage, int32_t tokens, int32_t threads)
{
    const int32_t rows = sw_menu_largest(&stage->menu);
    int32_t of_thread = sw_ceil_div(sw_ceil_div(tokens, rows), threads);
    if (of_thread < TILES_OF_THREAD)
        of_thread = threads > 1 ? TILES_OF_THREAD : 1;
    else if (of_thread >= MANY_TILES && rows > stage->slots)
        of_thread = sw_ceil_div(sw_ceil_div(tokens, rows - stage->slots / 2), threads);
    return threads * of_thread;
}

/* Whole windows first. */
static void order_windows(sw_tiling *tiling, const sw_geometry *g, bool shifted)
{
    const int32_t count = sw_geometry_window_count(g), slots = sw_geometry_slots(g);
    int32_t placed = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t w = 0; w < count; w++) {
            if ((sw_geometry_token_count(g, shifted, w) == slots) == (pass == 0))
                tiling->windows[placed++] = w;
        }
    }
}

/* Windows are put into tiles of up to `limit` rows and `window_limit` windows; into `wanted` tiles of about as many
 * rows where those limits and the windows allow it. */
static void group_windows(sw_tiling *tiling, const sw_geometry *g, bool shifted, int32_t tokens, int32_t wanted,
                          int32_t limit, int32_t window_limit)
{
    const int32_t count = sw_geometry_window_count(g);
    int32_t rows = 0;
    int64_t before = 0; /* rows of the windows before this one */
    order_windows(tiling, g, shifted);
    tiling->tiles = 0;
    tiling->first[0] = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t own = sw_geometry_token_count(g, shifted, tiling->windows[i]);
        /* whether the middle of this window is beyond the tile's share */
        const bool beyond = (2 * before + own) * wanted > 2 * (int64_t)tokens * (tiling->tiles + 1);
        if (rows > 0 && (beyond || rows + own > limit || i - tiling->first[tiling->tiles] >= window_limit)) {
            tiling->first[++tiling->tiles] = i;
            rows = 0;
        }
        rows += own;
        before += own;
    }
    tiling->first[++tiling->tiles] = count;
}

static swin_status plan_stage(sw_plan *plan, sw_network *network, int32_t s, const int32_t map[2], swin_error *err)
{
    sw_stage_plan *p = &plan->stage[s];
    const sw_stage *stage = &network->stages[s];
    sw_geometry_init(&p->geometry, &network->config, s, map, plan->image);
    p->tokens = map[0] * map[1];
    p->clamped = NULL;
    if (memcmp(p->geometry.window, network->config.window[s], sizeof p->geometry.window) != 0)
        SW_TRY(sw_network_position_bias(network, s, p->geometry.window, &p->clamped, err));
    const int32_t count = sw_geometry_window_count(&p->geometry);
    const int32_t rows = sw_menu_largest(&stage->menu);
    p->wide = p->tokens <= rows &&
              (network->amx ? count <= sw_tile_window_limit(rows, stage->slots) : count < WIDE_WINDOWS);
    return SWIN_OK;
}

/* Windows and tile boundaries of all stages, in one block. */
static swin_status make_tilings(sw_plan *plan, const sw_network *network, int32_t threads, swin_error *err)
{
    size_t count = 0;
    for (int32_t s = 0; s < plan->stages; s++)
        count += 2 * (2 * (size_t)sw_geometry_window_count(&plan->stage[s].geometry) + 1);
    if (count > plan->memory_count) {
        sw_free(plan->memory);
        plan->memory_count = 0;
        plan->memory = sw_alloc(count, sizeof *plan->memory);
        if (plan->memory == NULL)
            return sw_fail_memory(err, count * sizeof *plan->memory, "the plan of an image size");
        plan->memory_count = count;
    }
    int32_t *free = plan->memory;
    for (int32_t s = 0; s < plan->stages; s++) {
        sw_stage_plan *p = &plan->stage[s];
        const sw_geometry *g = &p->geometry;
        const int32_t windows = sw_geometry_window_count(g);
        const sw_stage *stage = &network->stages[s];
        const int32_t limit = p->wide || network->amx ? sw_menu_largest(&stage->menu)
                                                      : tile_rows(stage, p->tokens, sw_geometry_slots(g));
        const int32_t wanted = p->wide || !network->amx ? 1 : tile_count(stage, p->tokens, threads);
        const int32_t window_limit = sw_tile_window_limit(limit, stage->slots);
        for (int shifted = 0; shifted < 2; shifted++) {
            sw_tiling *tiling = &p->tiling[shifted];
            tiling->windows = free;
            tiling->first = free + windows;
            free += 2 * windows + 1;
            group_windows(tiling, g, shifted, p->tokens, wanted, limit, window_limit);
        }
    }
    return SWIN_OK;
}

/* The first map stands behind a gap, the second replaces it from the front, later ones take the places that are free.
 * */
static void place_maps(sw_plan *plan, const sw_network *network)
{
    size_t size[SWIN_MAX_STAGES], end = 0;
    for (int32_t s = 0; s < plan->stages; s++)
        size[s] = (size_t)plan->stage[s].tokens * (size_t)network->stages[s].channels;
    for (int32_t s = 0; s < plan->stages; s++) {
        size_t offset = 0;
        if (s == 0 && plan->stages > 1) {
            /* at least one row of the second map, so that every round makes progress */
            const size_t row = size[1] / (size_t)plan->stage[1].geometry.map[0];
            offset = size[0] / MERGE_GAP_SHARE;
            if (offset < MERGE_GAP_FLOATS)
                offset = MERGE_GAP_FLOATS < size[1] ? MERGE_GAP_FLOATS : size[1];
            if (offset < row)
                offset = row;
        } else if (s >= 2) {
            const size_t before = plan->stage[s - 1].offset;
            offset = size[s] <= before ? 0 : before + size[s - 1];
        }
        plan->stage[s].offset = offset;
        if (offset + size[s] > end)
            end = offset + size[s];
    }
    plan->image_floats = (end + 15) / 16 * 16;
}

swin_status sw_plan_make(sw_plan *plan, sw_network *network, int32_t threads, int32_t height, int32_t width,
                         int32_t stages, swin_error *err)
{
    if (plan->image[0] == height && plan->image[1] == width && plan->stages == stages)
        return SWIN_OK;
    int32_t maps[SWIN_MAX_STAGES][2] = {{0}};
    SW_TRY(sw_plan_maps(&network->config, height, width, maps, err));
    plan->stages = 0; /* no valid plan, should what follows fail */
    plan->image[0] = height;
    plan->image[1] = width;
    memcpy(plan->patch_grid, maps[0], sizeof plan->patch_grid);
    for (int32_t s = 0; s < stages; s++)
        SW_TRY(plan_stage(plan, network, s, maps[s], err));
    plan->stages = stages;
    const swin_status status = make_tilings(plan, network, threads, err);
    if (status != SWIN_OK) {
        plan->stages = 0;
        return status;
    }
    place_maps(plan, network);
    return SWIN_OK;
}

void sw_plan_release(sw_plan *plan)
{
    sw_free(plan->memory);
    plan->memory = NULL;
    plan->memory_count = 0;
    plan->stages = 0;
}
