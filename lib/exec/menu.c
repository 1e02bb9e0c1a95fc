/* SPDX-License-Identifier: MIT */
#include "menu.h"

/* Measured in bench/README.md. Rows of a tile: enough for the products to run at full speed, few enough that a tile's
 * activations (rows x hidden channels) stay in a core's second-level cache. */
#define TILE_ELEMENTS 160000 /* rows x channels */
#define TILE_ROWS 448

/* bf16 tiles hold 16 rows, and oneDNN's kernels are slow where a few rows remain. */
static int32_t round_rows(int32_t rows, sw_type type)
{
    return type == SW_BF16 ? (rows + 15) / 16 * 16 : rows;
}

void sw_menu_add(sw_menu *menu, int32_t rows)
{
    if (menu->count == 0 || menu->rows[menu->count - 1] < rows)
        menu->rows[menu->count++] = rows;
}

void sw_menu_fill(sw_menu *menu, int32_t slots, int32_t channels, sw_type type)
{
    const int32_t limit = TILE_ELEMENTS / channels < TILE_ROWS ? TILE_ELEMENTS / channels : TILE_ROWS;
    int32_t largest = slots;
    while (2 * largest <= limit)
        largest *= 2;
    sw_menu_add(menu, 16);
    for (int32_t divisor = 8; divisor >= 1; divisor /= 2) {
        if (largest / divisor >= 32)
            sw_menu_add(menu, round_rows(largest / divisor, type));
    }
    sw_menu_add(menu, round_rows(largest, type));
}

int32_t sw_menu_choose(const sw_menu *menu, int32_t rows)
{
    for (int32_t i = 0; i < menu->count; i++) {
        if (menu->rows[i] >= rows)
            return i;
    }
    return menu->count - 1;
}
