/* SPDX-License-Identifier: MIT */
/*
 * Window geometry against the operations that the published code performs on arrays: pad, roll, cut into windows, and
 * the mask that Swin-Transformer-Object-Detection builds by painting slices.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "exec/geometry.h"

#define SIDE_MAX 40
#define CELLS_MAX (SIDE_MAX * SIDE_MAX)

typedef struct grid {
    int32_t rows, columns;
    int32_t cell[CELLS_MAX];
} grid;

static void pad(grid *g, int32_t rows, int32_t columns)
{
    grid padded = {.rows = rows, .columns = columns};
    for (int32_t y = 0; y < rows; y++) {
        for (int32_t x = 0; x < columns; x++)
            padded.cell[y * columns + x] = y < g->rows && x < g->columns ? g->cell[y * g->columns + x] : -1;
    }
    *g = padded;
}

/* torch.roll(x, (-dy, -dx)) */
static void roll(grid *g, int32_t dy, int32_t dx)
{
    grid rolled = *g;
    for (int32_t y = 0; y < g->rows; y++) {
        for (int32_t x = 0; x < g->columns; x++)
            rolled.cell[y * g->columns + x] = g->cell[(y + dy) % g->rows * g->columns + (x + dx) % g->columns];
    }
    *g = rolled;
}

/* Regions painted as the published code does: slices (0, -w), (-w, -s), (-s, end) per axis, one number for each pair.
 * An axis without shift is one slice. */
static void paint(grid *g, int32_t rows, int32_t columns, const sw_geometry *geometry, bool shifted)
{
    const int32_t size[2] = {rows, columns};
    int32_t bounds[2][4];
    for (int axis = 0; axis < 2; axis++) {
        const int32_t shift = shifted ? geometry->shift[axis] : 0, window = geometry->window[axis];
        bounds[axis][0] = 0;
        bounds[axis][1] = shift > 0 ? size[axis] - window : size[axis];
        bounds[axis][2] = shift > 0 ? size[axis] - shift : size[axis];
        bounds[axis][3] = size[axis];
    }
    g->rows = rows;
    g->columns = columns;
    int32_t number = 0;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++, number++) {
            for (int32_t y = bounds[0][i]; y < bounds[0][i + 1]; y++) {
                for (int32_t x = bounds[1][j]; x < bounds[1][j + 1]; x++)
                    g->cell[y * columns + x] = number;
            }
        }
    }
}

static void check(const sw_geometry *g, bool shifted)
{
    grid tokens = {.rows = g->map[0], .columns = g->map[1]}, regions = {0};
    for (int32_t i = 0; i < g->map[0] * g->map[1]; i++)
        tokens.cell[i] = i;
    const int32_t dy = shifted ? g->shift[0] : 0, dx = shifted ? g->shift[1] : 0;
    if (g->roll_first) {
        roll(&tokens, dy, dx);
        pad(&tokens, g->padded[0], g->padded[1]);
    } else {
        pad(&tokens, g->padded[0], g->padded[1]);
        roll(&tokens, dy, dx);
    }
    paint(&regions, g->padded[0], g->padded[1], g, shifted);

    const int32_t slots = sw_geometry_slots(g);
    int32_t *seen = calloc((size_t)(g->map[0] * g->map[1]), sizeof *seen);
    int32_t *found = malloc((size_t)slots * sizeof *found), *found_regions = malloc((size_t)slots * sizeof *found);
    for (int32_t w = 0; w < sw_geometry_window_count(g); w++) {
        sw_geometry_tokens(g, shifted, w, found);
        const bool masked = sw_geometry_regions(g, shifted, w, found_regions);
        const int32_t top = w / g->windows[1] * g->window[0], left = w % g->windows[1] * g->window[1];
        int32_t count = 0;
        bool mixed = false;
        for (int32_t t = 0; t < slots; t++) {
            const int32_t cell = (top + t / g->window[1]) * g->padded[1] + left + t % g->window[1];
            const int32_t first = top * g->padded[1] + left;
            assert_int_equal(found[t], tokens.cell[cell]);
            if (found[t] >= 0) {
                const int32_t place[2] = {found[t] / g->map[1], found[t] % g->map[1]};
                int32_t window, slot;
                sw_geometry_find(g, shifted, place, &window, &slot);
                assert_int_equal(window, w);
                assert_int_equal(slot, t);
                seen[found[t]]++;
            }
            count += found[t] >= 0;
            mixed = mixed || regions.cell[cell] != regions.cell[first];
            if (masked) /* the same pairs are apart */
                assert_int_equal(found_regions[t] == found_regions[0], regions.cell[cell] == regions.cell[first]);
        }
        if (!masked)
            assert_false(mixed);
        assert_int_equal(sw_geometry_token_count(g, shifted, w), count);
    }
    for (int32_t i = 0; i < g->map[0] * g->map[1]; i++)
        assert_int_equal(seen[i], 1);
    free(seen);
    free(found);
    free(found_regions);
}

static void windows_are_what_pad_and_roll_give(void **state)
{
    (void)state;
    static const int32_t windows[][2] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {7, 7}, {4, 7}, {12, 5}};
    static const int32_t sides[] = {1, 2, 3, 4, 5, 7, 8, 13, 14, 23};
    for (int32_t lineage = SWIN_LINEAGE_DETECTION; lineage <= SWIN_LINEAGE_MMPRETRAIN; lineage++) {
        for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++) {
            for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
                for (size_t j = 0; j < sizeof sides / sizeof sides[0]; j++) {
                    swin_config config = {.lineage = lineage, .patch_size = 4};
                    memcpy(config.window[1], windows[w], sizeof config.window[1]);
                    const int32_t map[2] = {sides[i], sides[j]}, image[2] = {8 * sides[i], 8 * sides[j]};
                    sw_geometry g;
                    sw_geometry_init(&g, &config, 1, map, image);
                    check(&g, false);
                    if (sw_geometry_shifts(&g))
                        check(&g, true);
                }
            }
        }
    }
}

 /* Which window and shift each lineage uses; sources in dialect order: Swin-Transformer-Object-Detection
  * swin_transformer.py, Swin-Transformer models/swin_transformer.py, torchvision shifted_window_attention, timm
  * _calc_window_shift, transformers set_shift_and_window_size, mmpretrain ShiftWindowMSA. */
static void lineages_clamp_as_published(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t lineage, map[2], image_size[2];
        int32_t window[2], shift[2];
    } cases[] = {
        {"detection keeps all on a map of one window", SWIN_LINEAGE_DETECTION, {7, 7}, {0, 0}, {7, 7}, {3, 3}},
        {"detection keeps all on a small map", SWIN_LINEAGE_DETECTION, {2, 3}, {0, 0}, {7, 7}, {3, 3}},
        {"microsoft drops the shift at the window's size", SWIN_LINEAGE_MICROSOFT, {7, 9}, {0, 0}, {7, 7}, {0, 0}},
        {"microsoft shrinks the window", SWIN_LINEAGE_MICROSOFT, {3, 9}, {0, 0}, {3, 3}, {0, 0}},
        {"microsoft leaves larger maps alone", SWIN_LINEAGE_MICROSOFT, {8, 9}, {0, 0}, {7, 7}, {3, 3}},
        {"torchvision drops the shift axis by axis", SWIN_LINEAGE_TORCHVISION, {7, 8}, {0, 0}, {7, 7}, {0, 3}},
        {"torchvision pads small maps", SWIN_LINEAGE_TORCHVISION, {2, 20}, {0, 0}, {7, 7}, {0, 3}},
        {"timm clamps by the configured size", SWIN_LINEAGE_TIMM, {20, 20}, {56, 112}, {7, 7}, {0, 3}},
        {"timm clamps axis by axis", SWIN_LINEAGE_TIMM, {20, 20}, {40, 112}, {5, 7}, {0, 3}},
        {"timm takes the image where nothing is configured", SWIN_LINEAGE_TIMM, {5, 20}, {0, 0}, {5, 7}, {0, 3}},
        {"timm rounds up", SWIN_LINEAGE_TIMM, {20, 20}, {36, 44}, {5, 6}, {0, 0}},
        {"hugging face shrinks as microsoft", SWIN_LINEAGE_HUGGINGFACE, {9, 3}, {0, 0}, {3, 3}, {0, 0}},
        {"mmpretrain drops the shift at the window's size", SWIN_LINEAGE_MMPRETRAIN, {9, 7}, {0, 0}, {7, 7}, {0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        swin_config config = {.lineage = cases[i].lineage, .patch_size = 4, .window = {{0, 0}, {7, 7}}};
        memcpy(config.image_size, cases[i].image_size, sizeof config.image_size);
        const int32_t image[2] = {8 * cases[i].map[0], 8 * cases[i].map[1]};
        sw_geometry g;
        sw_geometry_init(&g, &config, 1, cases[i].map, image);
        if (memcmp(g.window, cases[i].window, sizeof g.window) != 0 ||
            memcmp(g.shift, cases[i].shift, sizeof g.shift) != 0)
            fail_msg("%s: window %d x %d, shift %d, %d", cases[i].name, g.window[0], g.window[1], g.shift[0],
                     g.shift[1]);
    }
}

/* transformers modeling_swinv2.py, Swinv2Layer: decided once, by the rows of the configured image, and the mask added
 * twice. */
static void hugging_face_v2_looks_at_rows(void **state)
{
    (void)state;
    static const struct {
        int32_t image_size[2], window[2], shift[2];
    } cases[] = {
        {{64, 16}, {7, 7}, {3, 3}},
        {{56, 999}, {7, 7}, {0, 0}},
        {{44, 999}, {5, 5}, {0, 0}},
        {{4, 999}, {1, 1}, {0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        swin_config config = {
            .version = 2, .lineage = SWIN_LINEAGE_HUGGINGFACE, .patch_size = 4, .window = {{0, 0}, {7, 7}}};
        memcpy(config.image_size, cases[i].image_size, sizeof config.image_size);
        const int32_t map[2] = {3, 30}, image[2] = {24, 240};
        sw_geometry g;
        sw_geometry_init(&g, &config, 1, map, image);
        assert_memory_equal(g.window, cases[i].window, sizeof g.window);
        assert_memory_equal(g.shift, cases[i].shift, sizeof g.shift);
        assert_true(g.mask == -200.0f);
        config.version = 1;
        sw_geometry_init(&g, &config, 1, map, image);
        assert_true(g.mask == -100.0f);
    }
}

static void patch_grids_are_rounded_up_but_in_torchvision(void **state)
{
    (void)state;
    swin_config config = {.lineage = SWIN_LINEAGE_DETECTION, .patch_size = 4};
    int32_t grid[2];
    sw_geometry_grid(&config, 1, 9, grid);
    assert_int_equal(grid[0], 1);
    assert_int_equal(grid[1], 3);
    config.lineage = SWIN_LINEAGE_TORCHVISION;
    sw_geometry_grid(&config, 3, 9, grid);
    assert_int_equal(grid[0], 0);
    assert_int_equal(grid[1], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_what_pad_and_roll_give),
        cmocka_unit_test(lineages_clamp_as_published),
        cmocka_unit_test(hugging_face_v2_looks_at_rows),
        cmocka_unit_test(patch_grids_are_rounded_up_but_in_torchvision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
