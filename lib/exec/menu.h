/* SPDX-License-Identifier: MIT */
/*
 * menu.h - the few row counts that a stage's tiles have. oneDNN's products are of fixed size and made once for each
 * entry, so that no image size asks for new ones; with AMX the entries only say how large tiles are.
 */
#ifndef SW_EXEC_MENU_H
#define SW_EXEC_MENU_H

#include <stdint.h>

#include "../base/type.h"

#define SW_MENU_MAX 6

/* Rising. */
typedef struct sw_menu {
    int32_t count;
    int32_t rows[SW_MENU_MAX];
} sw_menu;

/* Appends an entry larger than those there are; does nothing otherwise. */
void sw_menu_add(sw_menu *menu, int32_t rows);

/* For tiles of windows with this many slots. */
void sw_menu_fill(sw_menu *menu, int32_t slots, int32_t channels, sw_type type);

/* The smallest entry that holds `rows`; the last one where none does. */
int32_t sw_menu_choose(const sw_menu *menu, int32_t rows);

static inline int32_t sw_menu_largest(const sw_menu *menu)
{
    return menu->rows[menu->count - 1];
}

#endif
