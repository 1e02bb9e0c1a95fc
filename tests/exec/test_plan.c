/* SPDX-License-Identifier: MIT */
/*
 * Plans: every window in one tile, tiles within their limits, in every slot of every tile the token that belongs there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_of.h"
#include "exec/plan.h"
#include "exec/tile.h"
#include "memory_counted.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Networks with patches of one pixel, so that an image's size is its first map's. */
static const struct {
    int32_t version, lineage, embed_dim, heads;
    int32_t window[SWIN_MAX_STAGES][2];
    int32_t image_size[2];
    sw_type type;
} networks[] = {
    {1, SWIN_LINEAGE_DETECTION, 8, 1, {{7, 7}, {7, 7}, {7, 7}, {7, 7}}, {0, 0}, SW_F32},
    {1, SWIN_LINEAGE_DETECTION, 8, 1, {{7, 7}, {7, 7}, {7, 7}, {7, 7}}, {0, 0}, SW_BF16},
    {2, SWIN_LINEAGE_DETECTION, 8, 1, {{16, 16}, {16, 16}, {16, 16}, {8, 8}}, {0, 0}, SW_F32},
    {1, SWIN_LINEAGE_MICROSOFT, 6, 1, {{7, 7}, {7, 7}, {7, 7}, {7, 7}}, {0, 0}, SW_F32},
    {2, SWIN_LINEAGE_MICROSOFT, 4, 1, {{12, 12}, {12, 12}, {12, 12}, {6, 6}}, {0, 0}, SW_BF16},
    {1, SWIN_LINEAGE_TORCHVISION, 4, 2, {{7, 7}, {5, 5}, {4, 4}, {2, 2}}, {0, 0}, SW_F32},
    {1, SWIN_LINEAGE_TIMM, 4, 1, {{6, 6}, {6, 6}, {6, 6}, {6, 6}}, {56, 40}, SW_F32},
    {1, SWIN_LINEAGE_DETECTION, 4, 1, {{1, 1}, {2, 2}, {3, 3}, {1, 1}}, {0, 0}, SW_F32},
    {1, SWIN_LINEAGE_DETECTION, 4, 1, {{4, 9}, {9, 4}, {1, 7}, {7, 1}}, {0, 0}, SW_F32},
    {2, SWIN_LINEAGE_HUGGINGFACE, 4, 1, {{9, 4}, {4, 9}, {6, 6}, {5, 2}}, {56, 40}, SW_F32},
    {1, SWIN_LINEAGE_DETECTION, 192, 4, {{12, 12}, {12, 12}, {12, 12}, {12, 12}}, {0, 0}, SW_F32},
    {1, SWIN_LINEAGE_DETECTION, 32, 1, {{7, 7}, {7, 7}, {7, 7}, {7, 7}}, {0, 0}, SW_F32}, /* AMX */
    {2, SWIN_LINEAGE_MICROSOFT, 32, 1, {{8, 8}, {16, 16}, {8, 8}, {8, 8}}, {0, 0}, SW_BF16},
};

static const int32_t sizes[][2] = {
    {1, 1},   {1, 2},   {2, 1},   {3, 3},   {7, 7},    {8, 8},     {1, 97},    {97, 1},  {1, 5000}, {5000, 1},
    {14, 15}, {33, 17}, {56, 56}, {57, 56}, {13, 200}, {113, 226}, {200, 334}, {64, 64}, {2, 999},  {99, 3},
};

static sw_network *make_network(size_t n, sw_model **model)
{
    swin_error err;
    swin_config config = config_of(networks[n].version, 4, networks[n].embed_dim, networks[n].heads, 1);
    config.lineage = networks[n].lineage;
    config.patch_size = 1;
    config.mlp_ratio = 1.0;
    memcpy(config.window, networks[n].window, sizeof config.window);
    memcpy(config.image_size, networks[n].image_size, sizeof config.image_size);
    sw_network *network = NULL;
    if (sw_model_create_random(&config, n, model, &err) != SWIN_OK ||
        sw_network_create(*model, networks[n].type, true, 1, &network, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    return network;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Tiles
 */

static void check_tiling(const sw_network *network, const sw_plan *plan, int32_t s, bool shifted, const char *where)
{
    const sw_stage *stage = &network->stages[s];
    const sw_geometry *g = &plan->stage[s].geometry;
    const sw_tiling *tiling = &plan->stage[s].tiling[shifted];
    const int32_t windows = sw_geometry_window_count(g), slots = sw_geometry_slots(g);
    const int32_t limit = stage->menu.rows[stage->menu.count - 1];
    if (slots > stage->slots || slots < 1)
        fail_msg("%s: a window of %d slots, configured are %d", where, slots, stage->slots);
    unsigned char *seen = calloc((size_t)windows, 1);
    assert_non_null(seen);
    int32_t placed = 0, tokens = 0;
    bool partial = false; /* windows full of tokens come first */
    if (tiling->tiles < 1 || tiling->first[0] != 0 || tiling->first[tiling->tiles] != windows)
        fail_msg("%s: tiles do not span the windows", where);
    if (plan->stage[s].wide && tiling->tiles != 1)
        fail_msg("%s: %d tiles in wide form", where, tiling->tiles);
    for (int32_t t = 0; t < tiling->tiles; t++) {
        const int32_t count = tiling->first[t + 1] - tiling->first[t];
        int32_t rows = 0;
        for (int32_t i = tiling->first[t]; i < tiling->first[t + 1]; i++, placed++) {
            const int32_t window = tiling->windows[i];
            if (window < 0 || window >= windows || seen[window]++ != 0)
                fail_msg("%s: window %d out of place", where, window);
            const int32_t filled = sw_geometry_token_count(g, shifted, window);
            if (filled < 1 || (partial && filled == slots))
                fail_msg("%s: window %d with %d tokens after partial ones", where, window, filled);
            partial = partial || filled < slots;
            rows += filled;
        }
        if (count < 1 || count > sw_tile_window_limit(limit, stage->slots) || rows > limit)
            fail_msg("%s: tile %d has %d windows, %d rows", where, t, count, rows);
        tokens += rows;
    }
    if (placed != windows || tokens != plan->stage[s].tokens)
        fail_msg("%s: %d windows, %d tokens", where, placed, tokens);
    free(seen);
}

/* Panels of a tile's layers within its memory: those of oneDNN's products have the rows of the menu's entry, those of
 * AMX are 32 columns wide with an odd multiple of 16 rows. */
static void check_panels(const sw_network *network, const sw_stage *stage, const sw_tile *tile,
                         const sw_tile_memory *memory, const char *where)
{
    const int32_t menu_rows = stage->menu.rows[tile->menu], amx_rows = (tile->rows + 15) / 32 * 32 + 16;
    const size_t rows = (size_t)(network->amx ? amx_rows : menu_rows);
    const struct {
        const sw_panels *panels;
        const void *data;
        int32_t width;
    } parts[] = {
        {&tile->input, memory->a, stage->channels},
        {&tile->qkv, memory->b, stage->channels / stage->head_parts},
        {&tile->context, memory->a, stage->channels / stage->head_parts},
        {&tile->hidden, memory->b, stage->blocks[0].fc1.out_width},
        {&tile->out, memory->out, stage->blocks[0].proj.out_width},
    };
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        const int32_t width = network->amx ? 32 : parts[i].width;
        const sw_panels *p = parts[i].panels;
        if (p->width != width || p->data != parts[i].data ||
            (p->stride != rows * (size_t)width && !(p == &tile->input && p->stride == 0)))
            fail_msg("%s: panels %zu are %d wide with stride %zu", where, i, p->width, p->stride);
    }
}

/* Against the geometry: which token stands in which row, and which row in which slot. */
static void check_tile(const sw_network *network, const sw_plan *plan, int32_t s, bool shifted, int32_t index,
                       const sw_tile_memory *memory, unsigned char *seen, const char *where)
{
    const sw_stage *stage = &network->stages[s];
    const sw_geometry *g = &plan->stage[s].geometry;
    sw_tile tile;
    memset(&tile, 0xee, sizeof tile);
    sw_tile_init(&tile, memory, network, plan, s, shifted, index);
    const int32_t live = sw_geometry_slots(g), slots = stage->slots;
    int32_t *expected = malloc((size_t)live * sizeof *expected), row = 0;
    assert_non_null(expected);
    bool whole = live == slots;
    for (int32_t w = 0; w < tile.windows; w++) {
        sw_geometry_tokens(g, shifted, tile.numbers[w], expected);
        for (int32_t i = 0; i < slots; i++) {
            const int32_t at = tile.slots[w * slots + i];
            if (i >= live || expected[i] < 0) {
                whole = false;
                if (at != -1)
                    fail_msg("%s: tile %d, slot %d has row %d, expected none", where, index, i, at);
                continue;
            }
            if (at != row || tile.tokens[row] != expected[i] || seen[expected[i]]++ != 0)
                fail_msg("%s: tile %d, window %d, slot %d: row %d, token %d, expected %d, %d", where, index, w, i, at,
                         tile.tokens[row], row, expected[i]);
            row++;
        }
    }
    const int32_t menu_rows = stage->menu.rows[tile.menu];
    if (tile.rows != row || menu_rows < row || (tile.menu > 0 && stage->menu.rows[tile.menu - 1] >= row) ||
        tile.whole != whole)
        fail_msg("%s: tile %d has %d rows, menu %d, whole %d", where, index, tile.rows, menu_rows, tile.whole);
    check_panels(network, stage, &tile, memory, where);
    free(expected);
}

static void check_plan(sw_network *network, sw_plan *plan, size_t n, const int32_t size[2])
{
    sw_tile_memory memory = {0};
    assert_int_equal(sw_tile_memory_create(&memory, network, n % 2 == 0, NULL), SWIN_OK);
    int32_t map[2] = {size[0], size[1]};
    for (int32_t s = 0; s < plan->stages; s++) {
        assert_memory_equal(plan->stage[s].geometry.map, map, sizeof map);
        assert_int_equal(plan->stage[s].tokens, map[0] * map[1]);
        for (int shifted = 0; shifted < 2; shifted++) {
            char where[100];
            snprintf(where, sizeof where, "network %zu, %d x %d, stage %d, shifted %d", n, size[0], size[1], s,
                     shifted);
            check_tiling(network, plan, s, shifted, where);
            unsigned char *seen = calloc((size_t)plan->stage[s].tokens, 1);
            assert_non_null(seen);
            for (int32_t t = 0; t < plan->stage[s].tiling[shifted].tiles; t++)
                check_tile(network, plan, s, shifted, t, &memory, seen, where);
            for (int32_t t = 0; t < plan->stage[s].tokens; t++)
                assert_int_equal(seen[t], 1);
            free(seen);
        }
        map[0] = (map[0] + 1) / 2;
        map[1] = (map[1] + 1) / 2;
    }
    sw_tile_memory_destroy(&memory);
}

static void every_token_has_one_place(void **state)
{
    (void)state;
    for (size_t n = 0; n < COUNT_OF(networks); n++) {
        sw_model *model;
        sw_network *network = make_network(n, &model);
        sw_plan plan = {0};
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            const int32_t stages = 1 + (int32_t)((i + n) % 4);
            swin_error err;
            if (sw_plan_make(&plan, network, 1 + (int32_t)n % 4, sizes[i][0], sizes[i][1], stages, &err) != SWIN_OK)
                fail_msg("%s", err.message);
            assert_int_equal(plan.stages, stages);
            check_plan(network, &plan, n, sizes[i]);
        }
        sw_plan_release(&plan);
        sw_network_destroy(network);
        sw_model_destroy(model);
        assert_int_equal(memory_live_blocks(), 0);
    }
}

/* With AMX each thread has as many tiles, of about as many rows, where all windows are full. */
static void tiles_are_shared_out_evenly(void **state)
{
    (void)state;
    const size_t n = COUNT_OF(networks) - 2;
    sw_model *model;
    sw_network *network = make_network(n, &model);
    if (!network->amx)
        print_message("no AMX here: nothing to share out\n");
    for (int32_t threads = 1; threads <= 5 && network->amx; threads++) {
        sw_plan plan = {0};
        assert_int_equal(sw_plan_make(&plan, network, threads, 196, 336, 3, NULL), SWIN_OK);
        for (int32_t s = 0; s < 3; s++) {
            const sw_stage_plan *stage = &plan.stage[s];
            const sw_tiling *tiling = &stage->tiling[0];
            if (stage->wide)
                continue;
            if (tiling->tiles % threads != 0)
                fail_msg("stage %d: %d tiles for %d threads", s, tiling->tiles, threads);
            for (int32_t t = 0; t < tiling->tiles; t++) {
                int32_t rows = 0;
                for (int32_t i = tiling->first[t]; i < tiling->first[t + 1]; i++)
                    rows += sw_geometry_token_count(&stage->geometry, false, tiling->windows[i]);
                const int32_t share = stage->tokens / tiling->tiles, window = sw_geometry_slots(&stage->geometry);
                if (abs(rows - share) > window)
                    fail_msg("stage %d: tile %d of %d has %d of %d tokens", s, t, tiling->tiles, rows, stage->tokens);
            }
        }
        sw_plan_release(&plan);
    }
    sw_network_destroy(network);
    sw_model_destroy(model);
}

static void a_known_plan_costs_nothing(void **state)
{
    (void)state;
    sw_model *model;
    sw_network *network = make_network(3, &model); /* windows are clamped to small maps */
    sw_plan plan = {0};
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        assert_int_equal(sw_plan_make(&plan, network, 1, sizes[i][0], sizes[i][1], 4, NULL), SWIN_OK);
    const size_t before = memory_allocations();
    for (int repeat = 0; repeat < 2; repeat++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            for (int32_t stages = 4; stages >= 1; stages--)
                assert_int_equal(sw_plan_make(&plan, network, 1, sizes[i][0], sizes[i][1], stages, NULL), SWIN_OK);
        }
    }
    assert_int_equal(memory_allocations(), before);
    sw_plan_release(&plan);
    sw_network_destroy(network);
    sw_model_destroy(model);
}

static void planning_may_lack_memory(void **state)
{
    (void)state;
    static const int32_t size[2] = {11, 301}; /* windows of 12 are clamped to it, and to what follows */
    swin_status status = SWIN_ERR_NO_MEMORY;
    long failing = 0;
    for (; status != SWIN_OK; failing++) {
        sw_model *model;
        sw_network *network = make_network(4, &model);
        sw_plan plan = {0};
        swin_error err;
        sw_error_reset(&err);
        assert_int_equal(sw_plan_make(&plan, network, 1, 24, 24, 4, &err), SWIN_OK);
        memory_fail_after(failing);
        status = sw_plan_make(&plan, network, 1, size[0], size[1], 4, &err);
        assert_int_equal(memory_fail_no_more(), status != SWIN_OK);
        if (status != SWIN_OK) { /* and the same size is planned again, not taken for known */
            assert_int_equal(status, SWIN_ERR_NO_MEMORY);
            assert_int_equal(err.status, SWIN_ERR_NO_MEMORY);
            assert_int_equal(sw_plan_make(&plan, network, 1, size[0], size[1], 4, &err), SWIN_OK);
        }
        check_plan(network, &plan, 4, size);
        sw_plan_release(&plan);
        sw_network_destroy(network);
        sw_model_destroy(model);
        assert_int_equal(memory_live_blocks(), 0);
    }
    assert_true(failing > 10);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Map sizes
 */

static void sizes_are_those_of_the_design(void **state)
{
    (void)state;
    static const struct {
        int32_t lineage, patch, stages, height, width;
        int32_t maps[SWIN_MAX_STAGES][2]; /* zeros: refused */
        swin_status status;
    } cases[] = {
        {SWIN_LINEAGE_DETECTION, 4, 4, 1, 1, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}, SWIN_OK},
        {SWIN_LINEAGE_DETECTION, 4, 4, 224, 224, {{56, 56}, {28, 28}, {14, 14}, {7, 7}}, SWIN_OK},
        {SWIN_LINEAGE_DETECTION, 4, 4, 800, 1333, {{200, 334}, {100, 167}, {50, 84}, {25, 42}}, SWIN_OK},
        {SWIN_LINEAGE_DETECTION, 4, 4, 97, 131, {{25, 33}, {13, 17}, {7, 9}, {4, 5}}, SWIN_OK},
        {SWIN_LINEAGE_DETECTION, 5, 2, 16, 15, {{4, 3}, {2, 2}}, SWIN_OK},
        {SWIN_LINEAGE_DETECTION, 1, 3, 5, 1, {{5, 1}, {3, 1}, {2, 1}}, SWIN_OK},
        {SWIN_LINEAGE_TORCHVISION, 4, 4, 97, 131, {{24, 32}, {12, 16}, {6, 8}, {3, 4}}, SWIN_OK},
        {SWIN_LINEAGE_TORCHVISION, 4, 4, 7, 4, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}, SWIN_OK},
        {SWIN_LINEAGE_TORCHVISION, 4, 4, 3, 400, {{0}}, SWIN_ERR_ARGUMENT},
        {SWIN_LINEAGE_TORCHVISION, 4, 4, 400, 3, {{0}}, SWIN_ERR_ARGUMENT},
        {SWIN_LINEAGE_DETECTION, 4, 4, INT32_MAX, INT32_MAX, {{0}}, SWIN_ERR_LIMIT},
        {SWIN_LINEAGE_DETECTION, 1, 4, INT32_MAX, 1, {{0}}, SWIN_ERR_LIMIT},
        {SWIN_LINEAGE_DETECTION, 1, 4, 1, INT32_MAX, {{0}}, SWIN_ERR_LIMIT},
        {SWIN_LINEAGE_DETECTION, 64, 1, INT32_MAX, 1, {{33554432, 1}}, SWIN_OK},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        swin_config config = config_of(1, cases[i].stages, 96, 3, 7);
        config.lineage = cases[i].lineage;
        config.patch_size = cases[i].patch;
        int32_t maps[SWIN_MAX_STAGES][2] = {{0}};
        swin_error err;
        sw_error_reset(&err);
        const swin_status status = sw_plan_maps(&config, cases[i].height, cases[i].width, maps, &err);
        if (status != cases[i].status || err.status != (int32_t)status)
            fail_msg("case %zu: status %d (%s)", i, (int)status, err.message);
        if (status == SWIN_OK)
            assert_memory_equal(maps, cases[i].maps, sizeof maps);
        else
            assert_non_null(strstr(err.message, "image of "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_has_one_place),
        cmocka_unit_test(tiles_are_shared_out_evenly),
        cmocka_unit_test(a_known_plan_costs_nothing),
        cmocka_unit_test(planning_may_lack_memory),
        cmocka_unit_test(sizes_are_those_of_the_design),
    };
    return cmocka_run_group_tests_name("plans and tiles", tests, NULL, NULL);
}
