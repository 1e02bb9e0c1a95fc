/* SPDX-License-Identifier: MIT */
/* From a map to its heatmap: statistics, energy, ranking, range, colours, orientation. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "level_view.h"

/* CIE L*, from the definition of sRGB and CIE 1976. */
static double lightness(struct colour colour)
{
    const uint8_t bytes[3] = {colour.red, colour.green, colour.blue};
    const double weights[3] = {0.2126, 0.7152, 0.0722};
    double luminance = 0;
    for (int i = 0; i < 3; i++) {
        const double value = bytes[i] / 255.0;
        luminance += weights[i] * (value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4));
    }
    return luminance > 0.008856 ? 116 * cbrt(luminance) - 16 : 903.3 * luminance;
}

/* From dark to bright without a step back, a flat or a jump over any sixteenth of the scale. */
static void colours_grow_lighter_evenly(void **state)
{
    struct colormap map;
    (void)state;
    colormap_create(&map);
    const double first = lightness(map.entries[0]);
    const double last = lightness(map.entries[COLORMAP_SIZE - 1]);
    assert_true(first < 5);
    assert_true(last > 90);
    const double even = (last - first) / 16;
    for (int i = 16; i < COLORMAP_SIZE; i++) {
        const double step = lightness(map.entries[i]) - lightness(map.entries[i - 16]);
        if (step < 0.5 * even || step > 1.5 * even)
            fail_msg("lightness grows by %g up to entry %d, %g would be even", step, i, even);
    }
    for (int i = 1; i < COLORMAP_SIZE; i++)
        assert_true(lightness(map.entries[i]) > lightness(map.entries[i - 1]));
}

static void colours_of_values(void **state)
{
    struct colormap map;
    (void)state;
    colormap_create(&map);
    const struct colour low = colormap_at(&map, -3);
    const struct colour high = colormap_at(&map, INFINITY);
    const struct colour nan = colormap_at(&map, NAN);
    assert_memory_equal(&low, &map.entries[0], sizeof low);
    assert_memory_equal(&high, &map.entries[255], sizeof high);
    assert_int_equal(nan.red, nan.green);
    assert_int_equal(nan.green, nan.blue);
    for (int i = 0; i < COLORMAP_SIZE; i++) {
        const struct colour here = colormap_at(&map, i / 255.0);
        assert_memory_equal(&here, &map.entries[i], sizeof here);
        assert_memory_not_equal(&nan, &map.entries[i], sizeof nan);
    }
}

/* [3, 2, 2] and the same values as [2, 2, 3]. */
static const float planes[12] = {1, 2, 3, 4, -1, -1, -1, -1, 2, 0, -2, 8};
static const float interleaved[12] = {1, -1, 2, 2, -1, 0, 3, -1, -2, 4, -1, 8};

static struct feature_map small_map(bool nhwc)
{
    return (struct feature_map){.info = {.level = 1, .stride = 8, .channels = 3, .height = 2, .width = 2},
                                .nhwc = nhwc,
                                .data = nhwc ? interleaved : planes};
}

static void layouts_say_the_same(void **state)
{
    (void)state;
    for (int nhwc = 0; nhwc < 2; nhwc++) {
        const struct feature_map map = small_map(nhwc != 0);
        float cells[4];
        int32_t channels[3];
        struct failure failure;
        const double wanted[4] = {sqrt(6), sqrt(5), sqrt(14), sqrt(81)};
        feature_map_energy(&map, cells);
        for (int i = 0; i < 4; i++)
            assert_true(fabs((double)cells[i] - wanted[i]) < 1e-6);
        feature_map_channel(&map, 2, cells);
        assert_memory_equal(cells, planes + 8, sizeof cells);
        assert_int_equal(feature_map_strongest(&map, channels, 3, &failure), 3);
        assert_int_equal(channels[0], 2);
        assert_int_equal(channels[1], 0);
        assert_int_equal(channels[2], 1);
        assert_int_equal(feature_map_strongest(&map, channels, 1, &failure), 1);
        assert_int_equal(channels[0], 2);
        const struct map_statistics statistics = feature_map_statistics(&map);
        assert_true(statistics.minimum == -2 && statistics.maximum == 8);
        assert_true(fabs(statistics.mean - 14.0 / 12) < 1e-12);
        assert_true(fabs(statistics.deviation - sqrt(106.0 / 12 - 14.0 * 14 / 144)) < 1e-12);
        assert_int_equal(statistics.nonfinite, 0);
    }
}

static void statistics_leave_out_what_is_not_finite(void **state)
{
    float values[12];
    int32_t channels[3];
    struct failure failure;
    struct feature_map map = small_map(false);
    (void)state;
    memcpy(values, planes, sizeof values);
    values[8] = NAN;
    values[9] = INFINITY;
    map.data = values;
    const struct map_statistics statistics = feature_map_statistics(&map);
    assert_int_equal(statistics.nonfinite, 2);
    assert_true(statistics.minimum == -2 && statistics.maximum == 8);
    assert_int_equal(feature_map_strongest(&map, channels, 3, &failure), 3);
    assert_int_equal(channels[0], 0);
    assert_int_equal(channels[2], 2);
    for (int i = 0; i < 12; i++)
        values[i] = NAN;
    assert_int_equal(feature_map_statistics(&map).nonfinite, 12);
    assert_true(isnan(feature_map_statistics(&map).mean));
}

static void range_is_robust(void **state)
{
    enum { COUNT = 10001 };
    static float values[COUNT];
    struct value_range range;
    struct failure failure;
    uint32_t random = 7;
    (void)state;
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    for (int i = COUNT - 1; i > 0; i--) {
        random = random * 1664525 + 1013904223;
        const int j = (int)((random >> 8) % (uint32_t)(i + 1));
        const float swapped = values[i];
        values[i] = values[j];
        values[j] = swapped;
    }
    assert_true(heatmap_range(values, COUNT, &range, &failure));
    assert_true(range.low == 100 && range.high == 9900);
    values[5] = 1e30f;
    values[6] = NAN;
    values[7] = -INFINITY;
    assert_true(heatmap_range(values, COUNT, &range, &failure));
    assert_true(fabs(range.low - 100) <= 3 && fabs(range.high - 9900) <= 3);
    assert_true(heatmap_range(values, 1, &range, &failure));
    assert_true(range.low == (double)values[0] && range.high == range.low);
    assert_true(heatmap_range(&values[6], 1, &range, &failure));
    assert_true(range.low == 0 && range.high == 0);
    for (int i = 0; i < COUNT; i++)
        values[i] = 4;
    assert_true(heatmap_range(values, COUNT, &range, &failure));
    assert_true(range.low == 4 && range.high == 4);
}

/* A non-square map that is bright in its upper right quarter alone, over a photo that the last cells reach beyond. */
static void upper_right_stays_upper_right(void **state)
{
    enum { ROWS = 6, COLUMNS = 11, CHANNELS = 2, STRIDE = 4, HEIGHT = 23, WIDTH = 42 };
    static float values[CHANNELS * ROWS * COLUMNS];
    struct feature_map map = {.info = {.stride = STRIDE, .channels = CHANNELS, .height = ROWS, .width = COLUMNS},
                              .data = values};
    struct level_view view;
    struct picture picture;
    struct colormap colours;
    struct failure failure;
    double sum = 0;
    double x_sum = 0;
    double y_sum = 0;
    (void)state;
    for (int c = 0; c < CHANNELS; c++) {
        for (int i = 0; i < ROWS * COLUMNS; i++)
            values[c * ROWS * COLUMNS + i] = i / COLUMNS < ROWS / 2 && i % COLUMNS >= COLUMNS / 2 ? 2 : 0;
    }
    colormap_create(&colours);
    assert_true(level_view_create(&view, &map, &failure));
    assert_true(picture_create(&picture, WIDTH, HEIGHT, &failure));
    const struct grid grid = level_view_grid(&view, view.energy, HEIGHT, WIDTH);
    assert_int_equal(grid.rows, ROWS);
    assert_int_equal(grid.columns, COLUMNS);
    assert_true(grid.row_extent == 5.75 && grid.column_extent == 10.5);
    assert_true(heatmap_draw(&picture, (struct rectangle){0, 0, WIDTH, HEIGHT}, &grid, view.range, &colours, &failure));
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            const uint8_t *pixel = picture_at(&picture, x, y);
            const double bright = lightness((struct colour){pixel[0], pixel[1], pixel[2]});
            sum += bright;
            x_sum += bright * x;
            y_sum += bright * y;
        }
    }
    assert_true(x_sum / sum > 0.65 * WIDTH);
    assert_true(y_sum / sum < 0.35 * HEIGHT);
    const uint8_t *corner = picture_at(&picture, WIDTH - 1, 0);
    assert_memory_equal(corner, &colours.entries[255], 3);
    assert_memory_equal(picture_at(&picture, 0, HEIGHT - 1), &colours.entries[0], 3);
    picture_destroy(&picture);
    level_view_destroy(&view);
}

static void a_flat_map_has_the_middle_colour(void **state)
{
    const float cells[1] = {5};
    const struct grid grid = {1, 1, 0.25, 0.25, cells};
    struct picture picture;
    struct colormap colours;
    struct failure failure;
    (void)state;
    colormap_create(&colours);
    assert_true(picture_create(&picture, 3, 2, &failure));
    const struct value_range range = {5, 5};
    assert_true(heatmap_draw(&picture, (struct rectangle){1, 0, 2, 2}, &grid, range, &colours, &failure));
    const struct colour middle = colormap_at(&colours, 0.5);
    assert_memory_equal(picture_at(&picture, 2, 1), &middle, 3);
    assert_memory_equal(picture_at(&picture, 0, 1), "\0\0\0", 3);
    picture_destroy(&picture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_grow_lighter_evenly),
        cmocka_unit_test(colours_of_values),
        cmocka_unit_test(layouts_say_the_same),
        cmocka_unit_test(statistics_leave_out_what_is_not_finite),
        cmocka_unit_test(range_is_robust),
        cmocka_unit_test(upper_right_stays_upper_right),
        cmocka_unit_test(a_flat_map_has_the_middle_colour),
    };
    return cmocka_run_group_tests_name("cli-heatmap", tests, NULL, NULL);
}
