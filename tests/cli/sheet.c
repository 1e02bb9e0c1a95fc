/* SPDX-License-Identifier: MIT */
/* Lettering and contact sheets: legible, inside their picture, whatever the photo's shape. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lettering.h"
#include "sheet.h"

static const struct colour white = {255, 255, 255};

static int ink_in(const struct picture *picture, struct rectangle area)
{
    int count = 0;
    for (int32_t y = area.y; y < area.y + area.height; y++) {
        for (int32_t x = area.x; x < area.x + area.width; x++)
            count += picture_at(picture, x, y)[0] > 0;
    }
    return count;
}

static struct picture drawn(const char *text, double size)
{
    struct picture picture;
    struct failure failure;
    assert_true(picture_create(&picture, 64, 48, &failure));
    lettering_draw(&picture, 12, 12, text, size, white);
    return picture;
}

/* Each printable character leaves ink where its width says, and no two look alike but those that do in any plain
 * alphabet. */
static void every_character_is_its_own(void **state)
{
    struct picture pictures[95];
    (void)state;
    for (int c = ' '; c <= '~'; c++) {
        const char text[2] = {(char)c, '\0'};
        const int width = (int)(lettering_width(text, 16) + 0.999);
        struct picture *picture = &pictures[c - ' '];
        *picture = drawn(text, 16);
        const int all = ink_in(picture, (struct rectangle){0, 0, 64, 48});
        assert_int_equal(all, ink_in(picture, (struct rectangle){9, 9, width + 6, 30}));
        assert_true(c == ' ' ? all == 0 : all > 3);
    }
    for (int a = 0; a < 95; a++) {
        for (int b = a + 1; b < 95; b++) {
            if (memcmp(pictures[a].pixels, pictures[b].pixels, 64 * 48 * 3) == 0)
                assert_true(a + ' ' == 'I' && b + ' ' == 'l');
        }
    }
    for (int i = 0; i < 95; i++)
        picture_destroy(&pictures[i]);
}

static void foreign_characters_are_one_question_mark(void **state)
{
    struct picture foreign = drawn("\xc3\xa4", 12);
    struct picture plain = drawn("?", 12);
    (void)state;
    assert_memory_equal(foreign.pixels, plain.pixels, 64 * 48 * 3);
    assert_true(lettering_width("\xe6\x97\xa5\xe6\x9c\xac", 12) == lettering_width("??", 12));
    assert_true(lettering_width("", 12) == 0);
    picture_destroy(&foreign);
    picture_destroy(&plain);
}

static void long_text_is_cut(void **state)
{
    struct picture picture;
    struct failure failure;
    const char *text = "a_very_long_file_name_that_does_not_fit.png";
    (void)state;
    assert_true(picture_create(&picture, 400, 20, &failure));
    assert_true(lettering_width(text, 9) > 150);
    lettering_draw_within(&picture, 4, 4, 100, text, 9, white);
    assert_true(ink_in(&picture, (struct rectangle){60, 0, 44, 20}) > 0);
    assert_int_equal(ink_in(&picture, (struct rectangle){106, 0, 294, 20}), 0);
    picture_destroy(&picture);
}

/* Beyond the edges nothing happens; a sanitizer watches. */
static void text_is_clipped(void **state)
{
    struct picture picture;
    struct failure failure;
    (void)state;
    assert_true(picture_create(&picture, 5, 4, &failure));
    for (double at = -60; at < 60; at += 7.3)
        lettering_draw(&picture, at, at / 3, "W@yj|", 33, white);
    lettering_draw(&picture, 0, 0, "too large", 1000, white);
    picture_destroy(&picture);
}

static void sheets_of_all_shapes(void **state)
{
    static const int32_t sizes[][2] = {{1, 1}, {1, 3000}, {3000, 1}, {60, 80}, {333, 17}};
    enum { CHANNELS = 20 };
    struct colormap colours;
    (void)state;
    colormap_create(&colours);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int32_t rows = (sizes[i][0] + 3) / 4;
        const int32_t columns = (sizes[i][1] + 3) / 4;
        const size_t count = (size_t)CHANNELS * (size_t)rows * (size_t)columns;
        float *values = malloc(count * sizeof *values);
        struct picture photo;
        struct picture sheet;
        struct level_view views[3];
        struct failure failure;
        assert_non_null(values);
        for (size_t v = 0; v < count; v++)
            values[v] = (float)(v % 101);
        const struct feature_map map = {.info = {0, 4, CHANNELS, rows, columns, 0}, .data = values};
        assert_true(picture_create(&photo, sizes[i][1], sizes[i][0], &failure));
        for (int v = 0; v < 3; v++)
            assert_true(level_view_create(&views[v], &map, &failure));
        assert_true(sheet_draw_level(&sheet, &photo, "photo.png", &views[0], &colours, &failure));
        assert_in_range(sheet.width, 600, 6000);
        assert_in_range(sheet.height, 200, 4000);
        picture_destroy(&sheet);
        for (int count_of_views = 1; count_of_views <= 3; count_of_views++) {
            assert_true(sheet_draw_overview(&sheet, &photo, "photo.png", views, count_of_views, &colours, &failure));
            assert_in_range(sheet.width, 300, 6000);
            picture_destroy(&sheet);
        }
        for (int v = 0; v < 3; v++)
            level_view_destroy(&views[v]);
        picture_destroy(&photo);
        free(values);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_is_its_own), cmocka_unit_test(foreign_characters_are_one_question_mark),
        cmocka_unit_test(long_text_is_cut),           cmocka_unit_test(text_is_clipped),
        cmocka_unit_test(sheets_of_all_shapes),
    };
    return cmocka_run_group_tests_name("cli-sheet", tests, NULL, NULL);
}
