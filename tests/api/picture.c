/* SPDX-License-Identifier: MIT */
#include "picture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* SplitMix64 */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

float *picture_planes(int32_t height, int32_t width, uint64_t seed, float scale)
{
    const size_t plane = (size_t)height * (size_t)width;
    float *planes = malloc(3 * plane * sizeof *planes);
    assert_non_null(planes);
    uint64_t state = seed;
    for (size_t i = 0; i < 3 * plane; i++) {
        const double noise = (double)(next(&state) >> 11) * 0x1p-53 - 0.5; /* variance 1/12 */
        const double y = (double)(i % plane / (size_t)width) / height, x = (double)(i % (size_t)width) / width;
        const double slope = sin(7 * y + 3 * (double)(i / plane)) + cos(5 * x - 2 * y); /* variance about 1 */
        planes[i] = scale * (float)(0.8 * slope + 2 * noise);
    }
    return planes;
}

uint8_t *picture_bytes(size_t count, uint64_t seed)
{
    uint8_t *bytes = malloc(count);
    assert_non_null(bytes);
    uint64_t state = seed;
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(next(&state) >> 56);
    return bytes;
}

swin_image picture_image(const float *planes, int32_t height, int32_t width)
{
    swin_image image;
    swin_image_init(&image, sizeof image);
    image.data = planes;
    image.format = SWIN_PIXEL_F32_PLANAR;
    image.height = height;
    image.width = width;
    return image;
}

swin_maps picture_maps(const swin_model *model, int32_t height, int32_t width, size_t count, unsigned levels,
                       int32_t layout)
{
    swin_error err;
    swin_output_info infos[SWIN_MAX_STAGES];
    if (swin_model_output_info(model, height, width, infos, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    swin_maps maps;
    swin_maps_init(&maps, sizeof maps);
    maps.layout = layout;
    for (int s = 0; s < SWIN_MAX_STAGES; s++) {
        if ((levels >> s & 1) == 0 || infos[s].channels == 0)
            continue;
        maps.capacity[s] = count * (size_t)infos[s].channels * (size_t)infos[s].height * (size_t)infos[s].width;
        maps.data[s] = malloc(maps.capacity[s] * sizeof(float));
        assert_non_null(maps.data[s]);
        memset(maps.data[s], 0xff, maps.capacity[s] * sizeof(float));
    }
    return maps;
}

void picture_maps_release(swin_maps *maps)
{
    for (int s = 0; s < SWIN_MAX_STAGES; s++)
        free(maps->data[s]);
    swin_maps_init(maps, sizeof *maps);
}

int picture_maps_equal(const swin_maps *a, const swin_maps *b)
{
    for (int s = 0; s < SWIN_MAX_STAGES; s++) {
        if (a->capacity[s] != b->capacity[s] ||
            (a->capacity[s] > 0 && memcmp(a->data[s], b->data[s], a->capacity[s] * sizeof(float)) != 0))
            return 0;
    }
    return 1;
}
