/* SPDX-License-Identifier: MIT */
#include "tile.h"

#include <string.h>

#include "../base/memory.h"

/* Bytes of each buffer, large enough for every stage. */
typedef struct sizes {
    size_t indices, a, b, out;
} sizes;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static sizes measure(const sw_network *network, bool whole_hidden)
{
    sizes size = {0};
    const size_t element = sw_type_size(network->type);
    for (int32_t s = 0; s < network->config.stages; s++) {
        const sw_stage *stage = &network->stages[s];
        const int32_t limit = sw_menu_largest(&stage->menu);
        const size_t rows = sw_tile_panel_rows(limit);
        const size_t channels = (size_t)stage->channels;
        const sw_block *block = &stage->blocks[0];
        const size_t qkv = rows * 3 * channels * sw_type_size(block->qkv.out_type);
        const size_t hidden_columns = whole_hidden ? (size_t)stage->hidden : (size_t)block->fc1.out_width;
        const size_t windows = (size_t)sw_tile_window_limit(limit, stage->slots);
        size.indices = larger(size.indices, ((size_t)limit + windows * (size_t)stage->slots) * sizeof(int32_t));
        size.a = larger(size.a, rows * channels * element);
        size.b = larger(size.b, larger(qkv, rows * hidden_columns * element));
        size.out = larger(size.out, rows * channels * sizeof(float));
    }
    return size;
}

size_t sw_tile_memory_bytes(const sw_network *network, bool whole_hidden)
{
    const sizes size = measure(network, whole_hidden);
    return size.indices + size.a + size.b + size.out;
}

swin_status sw_tile_memory_create(sw_tile_memory *memory, const sw_network *network, bool whole_hidden,
                                  swin_error *err)
{
    const sizes size = measure(network, whole_hidden);
    memory->indices = sw_alloc_zeroed(size.indices, 1);
    memory->a = sw_alloc_zeroed(size.a, 1);
    memory->b = sw_alloc_zeroed(size.b, 1);
    memory->out = sw_alloc_zeroed(size.out, 1);
    if (memory->indices == NULL || memory->a == NULL || memory->b == NULL || memory->out == NULL)
        return sw_fail_memory(err, sw_tile_memory_bytes(network, whole_hidden), "a tile");
    return SWIN_OK;
}

void sw_tile_memory_destroy(sw_tile_memory *memory)
{
    sw_free(memory->indices);
    sw_free(memory->a);
    sw_free(memory->b);
    sw_free(memory->out);
}

static void list_tokens(sw_tile *tile, const sw_geometry *g, bool shifted, int32_t slots)
{
    const int32_t live = sw_geometry_slots(g);
    int32_t *const slot_rows = tile->slots;
    tile->rows = 0;
    tile->whole = live == slots;
    for (int32_t w = 0; w < tile->windows; w++) {
        int32_t *slot = slot_rows + (size_t)w * (size_t)slots;
        sw_geometry_tokens(g, shifted, tile->numbers[w], slot);
        for (int32_t i = 0; i < live; i++) {
            if (slot[i] < 0) {
                tile->whole = false;
                continue;
            }
            tile->tokens[tile->rows] = slot[i];
            slot[i] = tile->rows++;
        }
        for (int32_t i = live; i < slots; i++)
            slot[i] = -1;
    }
}

void sw_tile_init(sw_tile *tile, const sw_tile_memory *memory, const sw_network *network, const sw_plan *plan,
                  int32_t s, bool shifted, int32_t index)
{
    const sw_stage *stage = &network->stages[s];
    const sw_tiling *tiling = &plan->stage[s].tiling[shifted];
    const sw_block *block = &stage->blocks[0];
    const int32_t limit = sw_menu_largest(&stage->menu);
    tile->windows = tiling->first[index + 1] - tiling->first[index];
    tile->numbers = tiling->windows + tiling->first[index];
    tile->tokens = memory->indices;
    tile->slots = memory->indices + limit;
    list_tokens(tile, &plan->stage[s].geometry, shifted, stage->slots);
    tile->menu = sw_menu_choose(&stage->menu, tile->rows);

    if (network->amx) {
        const size_t stride = sw_tile_panel_rows(tile->rows) * SW_AMX_WIDTH;
        tile->input = tile->context = (sw_panels){memory->a, network->type, SW_AMX_WIDTH, stride};
        tile->qkv = tile->hidden = (sw_panels){memory->b, network->type, SW_AMX_WIDTH, stride};
        tile->out = (sw_panels){memory->out, SW_F32, SW_AMX_WIDTH, stride};
        return;
    }
    const size_t rows = (size_t)stage->menu.rows[tile->menu];
    const int32_t head_width = stage->channels / stage->head_parts;
    tile->input = (sw_panels){memory->a, network->type, stage->channels, 0};
    tile->qkv = (sw_panels){memory->b, block->qkv.out_type, head_width, rows * (size_t)head_width};
    tile->context = (sw_panels){memory->a, network->type, head_width, rows * (size_t)head_width};
    tile->hidden = (sw_panels){memory->b, network->type, block->fc1.out_width, rows * (size_t)block->fc1.out_width};
    tile->out = (sw_panels){memory->out, SW_F32, block->proj.out_width, rows * (size_t)block->proj.out_width};
}
