/* SPDX-License-Identifier: MIT */
#include "picture.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool picture_create(struct picture *picture, int32_t width, int32_t height, struct failure *failure)
{
    assert(width >= 1 && height >= 1);
    picture->width = width;
    picture->height = height;
    picture->pixels = NULL;
    const unsigned long long bytes = 3ULL * (unsigned long long)width * (unsigned long long)height;
    if (bytes <= SIZE_MAX / 2)
        picture->pixels = calloc((size_t)bytes, 1);
    return picture->pixels != NULL || failure_no_memory(failure, bytes, "a picture");
}

void picture_destroy(struct picture *picture)
{
    free(picture->pixels);
    picture->pixels = NULL;
}

void picture_fill(struct picture *picture, struct rectangle area, struct colour colour)
{
    for (int32_t y = area.y; y < area.y + area.height; y++) {
        uint8_t *pixel = picture_at(picture, area.x, y);
        for (int32_t x = 0; x < area.width; x++, pixel += 3) {
            pixel[0] = colour.red;
            pixel[1] = colour.green;
            pixel[2] = colour.blue;
        }
    }
}

void picture_paste(struct picture *picture, const struct picture *source, int32_t x, int32_t y)
{
    assert(x >= 0 && y >= 0 && x + source->width <= picture->width && y + source->height <= picture->height);
    for (int32_t row = 0; row < source->height; row++)
        memcpy(picture_at(picture, x, y + row), picture_at(source, 0, row), 3 * (size_t)source->width);
}
