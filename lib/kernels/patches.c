/* SPDX-License-Identifier: MIT */
/*
 * Pixels of an image into rows of patches: [rows, 3 * P * P] in the order channel, row, column.
 */
#include "set.h"
#include "vector.h"

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

SW_INLINE void put_patch(void *dst, sw_type type, const sw_pixels *pixels, int32_t size, int64_t y, int64_t x)
{
    const int64_t width = pixels->width - x, height = pixels->height - y;
    const int32_t columns = width >= size ? size : width > 0 ? (int32_t)width : 0;
    const int32_t lines = columns == 0 ? 0 : height >= size ? size : height > 0 ? (int32_t)height : 0;
    for (int channel = 0; channel < 3; channel++) {
        for (int32_t i = 0; i < size; i++) {
            if (i < lines)
                put_line(dst, type, pixels, channel, y + i, x, columns, size);
            else
                memset(dst, 0, (size_t)size * sw_type_size(type));
            dst = vf_at(dst, type, (size_t)size);
        }
    }
}

void sw_gather_patches(void *dst, sw_type type, const sw_pixels *pixels, int32_t patch_size, int32_t grid_width,
                       int32_t first, int32_t rows)
{
    const size_t length = 3 * (size_t)patch_size * (size_t)patch_size;
    for (int32_t r = 0; r < rows; r++) {
        const int64_t y = (int64_t)((first + r) / grid_width) * patch_size;
        const int64_t x = (int64_t)((first + r) % grid_width) * patch_size;
        void *to = vf_at(dst, type, (size_t)r * length);
        if (type == SW_F32)
            put_patch(to, SW_F32, pixels, patch_size, y, x);
        else
            put_patch(to, SW_BF16, pixels, patch_size, y, x);
    }
}
