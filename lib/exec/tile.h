/* SPDX-License-Identifier: MIT */
/*
 * tile.h - some whole windows of one image, and the memory in which their block is computed.
 *
 * Rows of a tile are the tokens of its windows, window by window; padding has no row. Attention alone needs all T
 * slots of a window and looks them up in `slots`.
 *
 * Two buffers serve twice within a block: the input of qkv, later the context, later the input of fc1 lie in `a`; q,
 * k, v and later the hidden layer lie in `b`.
 */
#ifndef SW_EXEC_TILE_H
#define SW_EXEC_TILE_H

#include "network.h"
#include "plan.h"

typedef struct sw_tile {
    int32_t rows;
    int32_t menu;           /* entry of the stage's menu that holds `rows` */
    int32_t windows;
    bool whole;             /* every slot of every window holds a token, in order: slot i is row i */
    const int32_t *numbers; /* [windows] of the map                        */
    int32_t *tokens;        /* [rows]: token of each row                   */
    int32_t *slots;         /* [windows * T]: row of each slot, or -1      */
    /* Panels: a part of the layer each for oneDNN's products, 32 columns wide with AMX. */
    sw_panels input;        /* [rows, C]; one panel for oneDNN             */
    sw_panels qkv;          /* [rows, 3C]                                  */
    sw_panels context;      /* [rows, C]                                   */
    sw_panels hidden;       /* [rows, hidden], or one part of that         */
    sw_panels out;          /* [rows, C] float32: output of proj and fc2   */
} sw_tile;

/* Memory for one tile of any stage of a network. */
typedef struct sw_tile_memory {
    int32_t *indices;
    void *a, *b;
    float *out;
} sw_tile_memory;

/* `whole_hidden`: the hidden layer is kept whole, not panel by panel. */
swin_status sw_tile_memory_create(sw_tile_memory *memory, const sw_network *network, bool whole_hidden,
                                  swin_error *err);
void sw_tile_memory_destroy(sw_tile_memory *memory);
size_t sw_tile_memory_bytes(const sw_network *network, bool whole_hidden);

/* Sets up tile number `index` of a stage in its memory. */
void sw_tile_init(sw_tile *tile, const sw_tile_memory *memory, const sw_network *network, const sw_plan *plan,
                  int32_t stage, bool shifted, int32_t index);

/* Rows that a panel of 32 columns has room for. Not a multiple of 32: panels at such distances would share the same
 * few sets of the first-level cache. */
static inline size_t sw_tile_panel_rows(int32_t rows)
{
    const size_t rounded = ((size_t)rows + SW_AMX_ROWS - 1) / SW_AMX_ROWS * SW_AMX_ROWS;
    return rounded % 32 == 0 ? rounded + SW_AMX_ROWS : rounded;
}

/* Rows first .. of panels. */
static inline sw_panels sw_panels_from_row(const sw_panels *panels, int32_t first)
{
    sw_panels part = *panels;
    part.data = (char *)panels->data + (size_t)first * (size_t)panels->width * sw_type_size(panels->type);
    return part;
}

#endif
