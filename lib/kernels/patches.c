/* SPDX-License-Identifier: MIT */
/*
 * Pixels of an image into rows of patches: [rows, 3 * P * P] in the order channel, row, column.
 */
#include "set.h"
#include "vector.h"

/* The patch size of every published model; its patches have loops of their own where they lie inside the image. */
#define QUAD 4

/* Where the first pixel of a patch lies. */
typedef struct place {
    int64_t y, x;
} place;

/* One line of one channel of a patch: `inside` pixels from the image, zeros up to `size`. */
SW_INLINE void put_line(void *dst, sw_type type, const sw_pixels *pixels, int channel, int64_t y, int64_t x,
                        int32_t inside, int32_t size)
{
    const uint8_t *line = pixels->data + (ptrdiff_t)y * pixels->row_stride;
    const float *values = NULL;
    if (pixels->planar_f32)
        values = (const float *)(const void *)(line + channel * pixels->plane_stride) + x;
    else
        line += 3 * x + (pixels->bgr ? 2 - channel : channel);
    const float scale = pixels->scale[channel], shift = pixels->shift[channel];
    for (int32_t j = 0; j < size; j++) {
        float value = 0;
        if (j < inside)
            value = values != NULL ? values[j] : (float)line[3 * j] * scale + shift;
        if (type == SW_BF16)
            ((uint16_t *)dst)[j] = sw_bf16_from(value);
        else
            ((float *)dst)[j] = value;
    }
}

/* Any patch, also one that the image's edge cuts. */
SW_INLINE void put_patch(void *dst, sw_type type, const sw_pixels *pixels, int32_t size, place at)
{
    const int64_t width = pixels->width - at.x, height = pixels->height - at.y;
    const int32_t columns = width >= size ? size : width > 0 ? (int32_t)width : 0;
    const int32_t lines = columns == 0 ? 0 : height >= size ? size : height > 0 ? (int32_t)height : 0;
    for (int channel = 0; channel < 3; channel++) {
        for (int32_t i = 0; i < size; i++) {
            if (i < lines)
                put_line(dst, type, pixels, channel, at.y + i, at.x, columns, size);
            else
                memset(dst, 0, (size_t)size * sw_type_size(type));
            dst = vf_at(dst, type, (size_t)size);
        }
    }
}

SW_INLINE void put_quad_bytes(void *dst, sw_type type, const sw_pixels *pixels, place at)
{
    const uint8_t *from = pixels->data + (ptrdiff_t)at.y * pixels->row_stride + 3 * at.x;
    const int first = pixels->bgr ? 2 : 0;
    for (int i = 0; i < QUAD; i += VF_LANES / QUAD) {
        vf rgb[3];
        vf_pixels(rgb, from + i * pixels->row_stride, pixels->row_stride);
        const vf red = first == 0 ? rgb[0] : rgb[2], blue = first == 0 ? rgb[2] : rgb[0];
        const vf r = vf_fma(red, vf_set(pixels->scale[0]), vf_set(pixels->shift[0]));
        const vf g = vf_fma(rgb[1], vf_set(pixels->scale[1]), vf_set(pixels->shift[1]));
        const vf b = vf_fma(blue, vf_set(pixels->scale[2]), vf_set(pixels->shift[2]));
        vf_put(dst, type, (size_t)(i * QUAD), r);
        vf_put(dst, type, (size_t)(QUAD * QUAD + i * QUAD), g);
        vf_put(dst, type, (size_t)(2 * QUAD * QUAD + i * QUAD), b);
    }
}

SW_INLINE void put_quad_floats(void *dst, sw_type type, const sw_pixels *pixels, place at)
{
    const uint8_t *from = pixels->data + (ptrdiff_t)at.y * pixels->row_stride + at.x * (int64_t)sizeof(float);
    for (int channel = 0; channel < 3; channel++) {
        for (int i = 0; i < QUAD; i += VF_LANES / QUAD) {
            const uint8_t *lines = from + channel * pixels->plane_stride + i * pixels->row_stride;
            vf_put(dst, type, (size_t)((channel * QUAD + i) * QUAD), vf_quads(lines, pixels->row_stride));
        }
    }
}

SW_INLINE void put_patches(void *dst, sw_type type, const sw_pixels *pixels, int32_t patch_size, int32_t grid_width,
                           int32_t first, int32_t rows)
{
    const size_t length = 3 * (size_t)patch_size * (size_t)patch_size;
    int32_t line = first / grid_width, column = first % grid_width;
    for (int32_t r = 0; r < rows; r++) {
        const place at = {(int64_t)line * patch_size, (int64_t)column * patch_size};
        if (patch_size != QUAD || at.y + QUAD > pixels->height || at.x + QUAD > pixels->width)
            put_patch(dst, type, pixels, patch_size, at);
        else if (pixels->planar_f32)
            put_quad_floats(dst, type, pixels, at);
        else
            put_quad_bytes(dst, type, pixels, at);
        dst = vf_at(dst, type, length);
        if (++column == grid_width) {
            column = 0;
            line++;
        }
    }
}

void sw_gather_patches(void *dst, sw_type type, const sw_pixels *pixels, int32_t patch_size, int32_t grid_width,
                       int32_t first, int32_t rows)
{
    if (type == SW_F32)
        put_patches(dst, SW_F32, pixels, patch_size, grid_width, first, rows);
    else
        put_patches(dst, SW_BF16, pixels, patch_size, grid_width, first, rows);
}
