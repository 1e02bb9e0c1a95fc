/* SPDX-License-Identifier: MIT */
#include "window.h"

#include <stdlib.h>

#include "weights.h"

typedef struct grid {
    int32_t rows, columns;
    int32_t *cell;
} grid;

static grid grid_new(int32_t rows, int32_t columns)
{
    return (grid){rows, columns, reference_alloc((size_t)rows * (size_t)columns, sizeof(int32_t))};
}

static int32_t *cell(const grid *g, int32_t row, int32_t column)
{
    return g->cell + (size_t)row * (size_t)g->columns + (size_t)column;
}

static void replace(grid *g, grid with)
{
    free(g->cell);
    *g = with;
}

/* To the right and below, with -1. */
static void pad(grid *g, int32_t rows, int32_t columns)
{
    grid padded = grid_new(rows, columns);
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < columns; j++)
            *cell(&padded, i, j) = i < g->rows && j < g->columns ? *cell(g, i, j) : -1;
    replace(g, padded);
}

/* By (-down, -right), what leaves on one side coming back on the other. */
static void roll(grid *g, int32_t down, int32_t right)
{
    grid rolled = grid_new(g->rows, g->columns);
    for (int32_t i = 0; i < g->rows; i++)
        for (int32_t j = 0; j < g->columns; j++)
            *cell(&rolled, i, j) = *cell(g, (i + down) % g->rows, (j + right) % g->columns);
    replace(g, rolled);
}

/* Of a place on an axis of the padded map: up to the last window, in it up to where the roll came round, and after
 * that. An axis that is not shifted is one region. */
static int32_t band(int32_t place, int32_t size, int32_t window, int32_t shift)
{
    if (shift == 0 || place < size - window)
        return 0;
    return place < size - shift ? 1 : 2;
}

reference_layout reference_layout_new(const reference_rule *rule, int32_t rows, int32_t columns)
{
    const int32_t high = rule->window[0], wide = rule->window[1];
    const int32_t down = (rows + high - 1) / high, across = (columns + wide - 1) / wide;
    grid g = grid_new(rows, columns);
    for (int32_t i = 0; i < rows * columns; i++)
        g.cell[i] = i;
    if (rule->roll_before_padding)
        roll(&g, rule->shift[0], rule->shift[1]);
    pad(&g, down * high, across * wide);
    if (!rule->roll_before_padding)
        roll(&g, rule->shift[0], rule->shift[1]);

    const size_t slots = (size_t)g.rows * (size_t)g.columns;
    reference_layout layout = {.windows = down * across};
    layout.token = reference_alloc(slots, sizeof *layout.token);
    layout.region = reference_alloc(slots, sizeof *layout.region);
    size_t at = 0;
    for (int32_t n = 0; n < layout.windows; n++) {
        for (int32_t i = 0; i < high; i++) {
            for (int32_t j = 0; j < wide; j++, at++) {
                const int32_t row = n / across * high + i, column = n % across * wide + j;
                layout.token[at] = *cell(&g, row, column);
                layout.region[at] =
                    3 * band(row, g.rows, high, rule->shift[0]) + band(column, g.columns, wide, rule->shift[1]);
            }
        }
    }
    free(g.cell);
    return layout;
}

void reference_layout_release(reference_layout *layout)
{
    free(layout->token);
    free(layout->region);
    *layout = (reference_layout){0};
}
