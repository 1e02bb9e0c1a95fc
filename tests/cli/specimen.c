/* SPDX-License-Identifier: MIT */
#include "specimen.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/stat.h>

#include "place.h"

void specimen_write(const char *name, const struct picture *picture)
{
    struct failure failure;
    FILE *stream = fopen(place_path(name), "wb");
    assert_non_null(stream);
    assert_true(picture_write_png(picture, stream, name, &failure));
    assert_int_equal(fclose(stream), 0);
}

struct picture specimen_noise(int32_t width, int32_t height, uint32_t seed)
{
    struct picture picture;
    struct failure failure;
    assert_true(picture_create(&picture, width, height, &failure));
    for (int32_t i = 0; i < 3 * width * height; i++) {
        seed = seed * 1664525 + 1013904223;
        picture.pixels[i] = (uint8_t)(seed >> 24);
    }
    return picture;
}

void specimen_write_noise(const char *name, int32_t width, int32_t height, uint32_t seed)
{
    struct picture picture = specimen_noise(width, height, seed);
    specimen_write(name, &picture);
    picture_destroy(&picture);
}

struct npy_array specimen_map(const char *name)
{
    struct npy_array array;
    struct failure failure;
    if (!npy_read(place_path(name), &array, &failure))
        fail_msg("%s", failure.text);
    return array;
}

void specimen_assert_same_maps(const char *one, const char *other)
{
    struct npy_array a = specimen_map(one);
    struct npy_array b = specimen_map(other);
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.values, b.values, a.count * sizeof *a.values);
    npy_destroy(&a);
    npy_destroy(&b);
}

json_t *specimen_summary(const char *name)
{
    json_error_t error;
    json_t *summary = json_load_file(place_path(name), 0, &error);
    if (summary == NULL)
        fail_msg("%s: %s", name, error.text);
    return summary;
}

void specimen_write_set(void)
{
    mkdir(place_path("set"), 0777);
    specimen_write_noise("set/a.png", 40, 30, 1);
    specimen_write_noise("set/b.png", 31, 50, 2);
    specimen_write_noise("set/d.png", 40, 30, 3);
    place_write_text("set/c.png", "\x89PNG\r\n\x1a\n broken");
    place_write_text("set/readme.txt", "no image");
}
