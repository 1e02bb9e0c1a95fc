/* SPDX-License-Identifier: MIT */
#include "backbone.h"

#include <string.h>

double *reference_pixels(const swin_image *image, int32_t *height, int32_t *width)
{
    *height = image->canvas_height > 0 ? image->canvas_height : image->height;
    *width = image->canvas_width > 0 ? image->canvas_width : image->width;
    const int planar = image->format == SWIN_PIXEL_F32_PLANAR;
    const ptrdiff_t row_stride =
        image->row_stride != 0 ? image->row_stride : image->width * (planar ? (ptrdiff_t)sizeof(float) : 3);
    const ptrdiff_t plane_stride = image->plane_stride != 0 ? image->plane_stride
                                   : image->height * (row_stride < 0 ? -row_stride : row_stride);
    const size_t plane = (size_t)*height * (size_t)*width;
    double *pixels = reference_alloc(3 * plane, sizeof *pixels);

    for (int32_t c = 0; c < 3; c++) {
        for (int32_t row = 0; row < image->height; row++) {
            const unsigned char *from = (const unsigned char *)image->data + row * row_stride;
            for (int32_t column = 0; column < image->width; column++) {
                double *to = &pixels[(size_t)c * plane + (size_t)row * (size_t)*width + (size_t)column];
                if (planar) {
                    float value;
                    memcpy(&value, from + c * plane_stride + column * (ptrdiff_t)sizeof value, sizeof value);
                    *to = value;
                } else {
                    const int32_t place = image->format == SWIN_PIXEL_BGR8 ? 2 - c : c;
                    *to = (from[3 * column + place] - (double)image->mean[c]) / (double)image->std[c];
                }
            }
        }
    }
    return pixels;
}
