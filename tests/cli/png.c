/* SPDX-License-Identifier: MIT */
/* The PNG reader and writer: every kind of file, every way of breaking one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "picture.h"
#include "place.h"
#include "png_kinds.h"

enum { LIMIT = 256000000 };

static void reads_every_kind(void **state)
{
    static const int32_t sizes[][2] = {{1, 1}, {1, 9}, {5, 1}, {7, 5}, {17, 33}, {64, 48}};
    (void)state;
    for (int k = 0; k < png_kind_count; k++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            const int32_t height = sizes[s][0];
            const int32_t width = sizes[s][1];
            const size_t bytes = (size_t)height * (size_t)width * 3;
            uint8_t *expected = malloc(bytes);
            struct picture picture;
            struct failure failure;
            const char *path = place_path("kind.png");
            assert_non_null(expected);
            png_kind_write(&png_kinds[k], height, width, path, expected);
            if (!picture_read_png(&picture, path, LIMIT, &failure))
                fail_msg("%s, %d x %d: %s", png_kinds[k].name, height, width, failure.text);
            assert_int_equal(picture.height, height);
            assert_int_equal(picture.width, width);
            if (memcmp(picture.pixels, expected, bytes) != 0)
                fail_msg("%s, %d x %d: other pixels", png_kinds[k].name, height, width);
            picture_destroy(&picture);
            free(expected);
        }
    }
}

/* The bytes of a good file. */
static char *good_file(size_t *count, bool interlaced)
{
    const struct png_kind kind = {"rgb 8", PNG_COLOR_TYPE_RGB, 8, interlaced, false, false};
    uint8_t rgb[16 * 16 * 3];
    png_kind_write(&kind, 16, 16, place_path("good.png"), rgb);
    return place_read(place_path("good.png"), count);
}

static void assert_refused(const char *path, uint64_t limit, const char *what, const char *with)
{
    struct picture picture;
    struct failure failure = {""};
    if (picture_read_png(&picture, path, limit, &failure))
        fail_msg("%s was read", what);
    assert_null(picture.pixels);
    if (strstr(failure.text, path) == NULL || (with != NULL && strstr(failure.text, with) == NULL))
        fail_msg("%s: '%s' should name the file and say '%s'", what, failure.text, with);
    assert_null(strchr(failure.text, '\n'));
}

static void refuses_every_truncation(void **state)
{
    (void)state;
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        size_t count;
        char *bytes = good_file(&count, interlaced != 0);
        for (size_t kept = 0; kept < count; kept++) {
            char what[64];
            snprintf(what, sizeof what, "the first %zu of %zu bytes", kept, count);
            place_write("short.png", bytes, kept);
            assert_refused(place_path("short.png"), LIMIT, what, kept >= 8 ? "truncated" : NULL);
        }
        free(bytes);
    }
}

/* Any byte of a critical chunk turned over is noticed by its checksum. The last chunk's own checksum, of no bytes, is
 * not looked at by libpng from 1.6.48 on. */
static void refuses_every_broken_byte(void **state)
{
    size_t count;
    char *bytes = good_file(&count, false);
    (void)state;
    for (size_t at = 0; at < count - 4; at++) {
        char what[64];
        bytes[at] = (char)(bytes[at] ^ 0x41);
        snprintf(what, sizeof what, "byte %zu turned over", at);
        place_write("broken.png", bytes, count);
        assert_refused(place_path("broken.png"), LIMIT, what, NULL);
        bytes[at] = (char)(bytes[at] ^ 0x41);
    }
    free(bytes);
}

/* A chunk with its length and checksum; returns its size. */
static size_t put_chunk(uint8_t *to, const char *type, const uint8_t *data, uint32_t count)
{
    uint32_t crc = 0xffffffff;
    to[0] = (uint8_t)(count >> 24);
    to[1] = (uint8_t)(count >> 16);
    to[2] = (uint8_t)(count >> 8);
    to[3] = (uint8_t)count;
    memcpy(to + 4, type, 4);
    if (count > 0)
        memcpy(to + 8, data, count);
    for (uint32_t i = 4; i < 8 + count; i++) {
        crc ^= to[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0xedb88320 & (0 - (crc & 1)));
    }
    crc = ~crc;
    for (int i = 0; i < 4; i++)
        to[8 + count + (uint32_t)i] = (uint8_t)(crc >> (24 - 8 * i));
    return 12 + count;
}

static void write_header_only(const char *name, uint32_t width, uint32_t height)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    uint8_t file[128];
    const uint8_t header[13] = {(uint8_t)(width >> 24),
                                (uint8_t)(width >> 16),
                                (uint8_t)(width >> 8),
                                (uint8_t)width,
                                (uint8_t)(height >> 24),
                                (uint8_t)(height >> 16),
                                (uint8_t)(height >> 8),
                                (uint8_t)height,
                                8,
                                2,
                                0,
                                0,
                                0};
    const uint8_t nothing[8] = {0x78, 0x9c, 3, 0, 0, 0, 0, 1};
    size_t count = sizeof signature;
    memcpy(file, signature, sizeof signature);
    count += put_chunk(file + count, "IHDR", header, sizeof header);
    count += put_chunk(file + count, "IDAT", nothing, sizeof nothing);
    count += put_chunk(file + count, "IEND", NULL, 0);
    place_write(name, file, count);
}

static void refuses_sizes(void **state)
{
    static const struct {
        const char *what;
        uint32_t width, height;
        const char *with;
    } cases[] = {
        {"a bomb", 30000, 30000, "over the limit of 256000000"},
        {"a long bomb", 2147483647, 1, "over the limit"},
        {"the largest", 2147483647, 2147483647, "over the limit"},
        {"no column", 0, 5, "broken PNG (0 x 5 pixels, expected at least 1 x 1)"},
        {"no row", 5, 0, "broken PNG (5 x 0 pixels, expected at least 1 x 1)"},
        {"too many columns for PNG", 0x80000001, 1, "broken PNG"},
        {"pixels that are not there", 100, 100, "broken PNG"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_header_only("size.png", cases[i].width, cases[i].height);
        assert_refused(place_path("size.png"), LIMIT, cases[i].what, cases[i].with);
    }
}

static void limit_is_exact(void **state)
{
    size_t count;
    struct picture picture;
    struct failure failure;
    (void)state;
    free(good_file(&count, false));
    assert_refused(place_path("good.png"), 255, "256 pixels of 255", "--max-pixels");
    assert_true(picture_read_png(&picture, place_path("good.png"), 256, &failure));
    picture_destroy(&picture);
}

static void refuses_other_files(void **state)
{
    static const struct {
        const char *bytes;
        const char *with;
    } cases[] = {
        {"\xff\xd8\xff\xe0 JFIF and more", "is a JPEG, not a PNG; convert it to PNG first"},
        {"\x40\1\1\1\1\1\1\1{\"a\":{}}", "is a safetensors checkpoint, not a picture; give it with --weights"},
        {"PK\3\4 and an archive", "is a zip file or a PyTorch checkpoint"},
        {"GIF89a and so on and on", "is a GIF"},
        {"RIFFsizeWEBPVP8 ", "is a WebP"},
        {"BM and what follows it", "is a BMP"},
        {"plain text, nothing else", "not a PNG"},
        {"x", "not a PNG"},
        {"", "empty"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        place_write("other", cases[i].bytes, strlen(cases[i].bytes));
        assert_refused(place_path("other"), LIMIT, cases[i].with, cases[i].with);
    }
    assert_refused(place_path("missing.png"), LIMIT, "a missing file", "no such file");
    assert_refused(place_path(""), LIMIT, "a directory", "is a directory");
}

static void fill(struct picture *picture, int colours)
{
    uint32_t state = 1;
    const size_t count = (size_t)picture->width * (size_t)picture->height;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        const uint32_t colour = i < (size_t)colours ? (uint32_t)i : (state >> 8) % (uint32_t)colours;
        picture->pixels[3 * i] = (uint8_t)(colour * 7);
        picture->pixels[3 * i + 1] = (uint8_t)(colour >> 3);
        picture->pixels[3 * i + 2] = (uint8_t)(colour * 31 + 5);
    }
}

static void writes_what_it_reads(void **state)
{
    static const struct {
        int32_t width, height;
        int colours, colour_type;
    } cases[] = {{1, 1, 1, PNG_COLOR_TYPE_PALETTE},     {40, 30, 2, PNG_COLOR_TYPE_PALETTE},
                 {40, 30, 256, PNG_COLOR_TYPE_PALETTE}, {40, 30, 257, PNG_COLOR_TYPE_RGB},
                 {257, 99, 2000, PNG_COLOR_TYPE_RGB},   {1, 300, 300, PNG_COLOR_TYPE_RGB}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct picture written;
        struct picture read;
        struct failure failure;
        size_t count;
        const char *path = place_path("written.png");
        assert_true(picture_create(&written, cases[i].width, cases[i].height, &failure));
        fill(&written, cases[i].colours);
        FILE *stream = fopen(path, "wb");
        assert_non_null(stream);
        if (!picture_write_png(&written, stream, path, &failure))
            fail_msg("%s", failure.text);
        assert_int_equal(fclose(stream), 0);
        char *bytes = place_read(path, &count);
        assert_int_equal(bytes[25], cases[i].colour_type);
        free(bytes);
        if (!picture_read_png(&read, path, LIMIT, &failure))
            fail_msg("%s", failure.text);
        assert_int_equal(read.width, written.width);
        assert_int_equal(read.height, written.height);
        assert_memory_equal(read.pixels, written.pixels, (size_t)read.width * (size_t)read.height * 3);
        picture_destroy(&read);
        picture_destroy(&written);
    }
}

static void says_that_the_disk_is_full(void **state)
{
    struct picture picture;
    struct failure failure;
    FILE *stream = fopen("/dev/full", "wb");
    (void)state;
    if (stream == NULL)
        skip();
    assert_true(picture_create(&picture, 400, 400, &failure));
    fill(&picture, 2000);
    assert_false(picture_write_png(&picture, stream, "out/c2.png", &failure));
    assert_non_null(strstr(failure.text, "out/c2.png: cannot be written: the disk is full"));
    picture_destroy(&picture);
    fclose(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_kind),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(refuses_every_broken_byte),
        cmocka_unit_test(refuses_sizes),
        cmocka_unit_test(limit_is_exact),
        cmocka_unit_test(refuses_other_files),
        cmocka_unit_test(writes_what_it_reads),
        cmocka_unit_test(says_that_the_disk_is_full),
    };
    return cmocka_run_group_tests_name("cli-png", tests, place_set_up, place_tear_down);
}
