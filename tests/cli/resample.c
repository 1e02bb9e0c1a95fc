/* SPDX-License-Identifier: MIT */
/* Resampling: pictures byte for byte as Pillow's, grids by what bilinear interpolation must do. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "resample.h"

/* The pictures that the hashes were made of: numpy and Pillow know nothing of this generator, their script repeated it.
 */
static void fill_noise(struct picture *picture)
{
    uint32_t state = 1;
    const size_t count = 3 * (size_t)picture->width * (size_t)picture->height;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        picture->pixels[i] = (uint8_t)(state >> 24);
    }
}

/* FNV-1a. */
static uint64_t hash_of(const struct picture *picture)
{
    uint64_t hash = 0xcbf29ce484222325;
    const size_t count = 3 * (size_t)picture->width * (size_t)picture->height;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ picture->pixels[i]) * 0x100000001b3;
    return hash;
}

/* Image.resize((width, height), BILINEAR) of Pillow 11.1, and of all before 13, which takes the rows first where the
 * height shrinks more than the width and then differs by one in some pixels. */
static void resizes_as_pillow_does(void **state)
{
    static const struct {
        int32_t from_height, from_width, height, width;
        uint64_t hash;
    } cases[] = {
        {7, 9, 3, 4, 0xb133a4b11051ae4b},         {7, 9, 14, 20, 0x5d33743d5be120e4},
        {7, 9, 7, 9, 0xd427855543cb19b6},         {7, 9, 1, 1, 0x386d621ae66d147f},
        {7, 9, 2, 31, 0x2cfe46a7d5e24c17},        {97, 131, 31, 200, 0x9a288b362ca074ae},
        {97, 131, 224, 224, 0xca4bc64889118e3b},  {97, 131, 13, 7, 0x10d431d1f19b7bd5},
        {97, 131, 800, 1333, 0x9381240affaa085c},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct picture source;
        struct picture resized;
        struct failure failure;
        assert_true(picture_create(&source, cases[i].from_width, cases[i].from_height, &failure));
        fill_noise(&source);
        assert_true(picture_resize(&source, cases[i].height, cases[i].width, &resized, &failure));
        assert_int_equal(resized.height, cases[i].height);
        assert_int_equal(resized.width, cases[i].width);
        if (hash_of(&resized) != cases[i].hash)
            fail_msg("%d x %d to %d x %d is not Pillow's", cases[i].from_height, cases[i].from_width, cases[i].height,
                     cases[i].width);
        picture_destroy(&resized);
        picture_destroy(&source);
    }
}

static void keeps_a_flat_picture(void **state)
{
    static const int32_t sizes[][2] = {{1, 1}, {5, 2}, {100, 3}, {9, 500}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct picture source;
        struct picture resized;
        struct failure failure;
        assert_true(picture_create(&source, 37, 11, &failure));
        picture_fill(&source, (struct rectangle){0, 0, 37, 11}, (struct colour){255, 1, 77});
        assert_true(picture_resize(&source, sizes[i][0], sizes[i][1], &resized, &failure));
        for (int32_t at = 0; at < resized.width * resized.height; at++)
            assert_memory_equal(resized.pixels + 3 * (size_t)at, "\xff\x01\x4d", 3);
        picture_destroy(&resized);
        picture_destroy(&source);
    }
}

/* A picture of stride 8 over a map whose cells hold their own centre in pixels: each pixel must read its own centre, as
 * far as cells reach on both sides, and the nearest cell's beyond. This is what an overlay stands on. */
static void cells_lie_over_their_pixels(void **state)
{
    enum { STRIDE = 8, HEIGHT = 53, WIDTH = 90, ROWS = 7, COLUMNS = 12 };
    float cells[ROWS * COLUMNS];
    static float samples[HEIGHT * WIDTH];
    struct failure failure;
    (void)state;
    for (int axis = 0; axis < 2; axis++) {
        for (int r = 0; r < ROWS; r++) {
            for (int c = 0; c < COLUMNS; c++)
                cells[r * COLUMNS + c] = ((float)(axis == 0 ? r : c) + 0.5f) * STRIDE;
        }
        const struct grid grid = {ROWS, COLUMNS, (double)HEIGHT / STRIDE, (double)WIDTH / STRIDE, cells};
        assert_true(grid_resample(&grid, HEIGHT, WIDTH, samples, &failure));
        for (int y = 0; y < HEIGHT; y++) {
            for (int x = 0; x < WIDTH; x++) {
                const double centre = (axis == 0 ? y : x) + 0.5;
                const double last = ((axis == 0 ? ROWS : COLUMNS) - 0.5) * STRIDE;
                const double wanted = fmin(fmax(centre, 0.5 * STRIDE), last);
                /* Sums of two float32 products of numbers below 100. */
                assert_true(fabs((double)samples[y * WIDTH + x] - wanted) < 2e-5);
            }
        }
    }
}

static void shrinking_a_grid_averages(void **state)
{
    float cells[64 * 64];
    float samples[4];
    struct failure failure;
    (void)state;
    /* Stripes of one cell: without antialiasing a sample would be one of them. */
    for (int i = 0; i < 64 * 64; i++)
        cells[i] = i % 2 == 0 ? 0.0f : 1.0f;
    const struct grid grid = {64, 64, 64, 64, cells};
    assert_true(grid_resample(&grid, 2, 2, samples, &failure));
    for (int i = 0; i < 4; i++)
        assert_true(fabsf(samples[i] - 0.5f) < 0.01f);
}

static void a_picture_may_reach_beyond_the_cells(void **state)
{
    const float cells[2] = {3, 5};
    float samples[10];
    struct failure failure;
    const struct grid grid = {1, 2, 1.75, 5, cells};
    (void)state;
    assert_true(grid_resample(&grid, 1, 10, samples, &failure));
    assert_true(samples[0] == 3);
    for (int i = 4; i < 10; i++)
        assert_true(samples[i] == 5);
}

/* What was had when the weights were refused is released, once. */
static void more_memory_than_there_is(void **state)
{
    const float cell = 1;
    const struct grid grid = {1, 1, 1, 1e14, &cell};
    float sample;
    struct failure failure;
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* ends a program that asks for as much */
#endif
    assert_false(grid_resample(&grid, 1, 10000000, &sample, &failure));
    assert_non_null(strstr(failure.text, "no memory for resampling"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resizes_as_pillow_does),
        cmocka_unit_test(keeps_a_flat_picture),
        cmocka_unit_test(cells_lie_over_their_pixels),
        cmocka_unit_test(shrinking_a_grid_averages),
        cmocka_unit_test(a_picture_may_reach_beyond_the_cells),
        cmocka_unit_test(more_memory_than_there_is),
    };
    return cmocka_run_group_tests_name("cli-resample", tests, NULL, NULL);
}
