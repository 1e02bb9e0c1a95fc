/* SPDX-License-Identifier: MIT */
#include "png_kinds.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>

enum { GRAY = PNG_COLOR_TYPE_GRAY, RGB = PNG_COLOR_TYPE_RGB, PALETTE = PNG_COLOR_TYPE_PALETTE };
enum { GRAY_ALPHA = PNG_COLOR_TYPE_GRAY_ALPHA, RGBA = PNG_COLOR_TYPE_RGB_ALPHA };

const struct png_kind png_kinds[] = {
    {"gray 1", GRAY, 1, false, false, false},
    {"gray 2", GRAY, 2, false, false, false},
    {"gray 4", GRAY, 4, false, false, false},
    {"gray 8", GRAY, 8, false, false, false},
    {"gray 16", GRAY, 16, false, false, false},
    {"gray 1 interlaced", GRAY, 1, true, false, false},
    {"gray 2 with tRNS", GRAY, 2, false, true, false},
    {"gray 4 interlaced with tRNS", GRAY, 4, true, true, false},
    {"gray 8 with tRNS", GRAY, 8, false, true, false},
    {"gray 16 interlaced with tRNS", GRAY, 16, true, true, false},
    {"palette 1", PALETTE, 1, false, false, false},
    {"palette 2", PALETTE, 2, false, false, false},
    {"palette 4", PALETTE, 4, false, false, false},
    {"palette 8", PALETTE, 8, false, false, false},
    {"palette 1 with tRNS", PALETTE, 1, false, true, false},
    {"palette 4 interlaced", PALETTE, 4, true, false, false},
    {"palette 8 interlaced with tRNS", PALETTE, 8, true, true, true},
    {"rgb 8", RGB, 8, false, false, false},
    {"rgb 8 with extras", RGB, 8, false, false, true},
    {"rgb 8 interlaced", RGB, 8, true, false, false},
    {"rgb 8 with tRNS", RGB, 8, false, true, false},
    {"rgb 16", RGB, 16, false, false, true},
    {"rgb 16 interlaced with tRNS", RGB, 16, true, true, false},
    {"gray and alpha 8", GRAY_ALPHA, 8, false, false, false},
    {"gray and alpha 16 interlaced", GRAY_ALPHA, 16, true, false, true},
    {"rgba 8", RGBA, 8, false, false, false},
    {"rgba 8 interlaced", RGBA, 8, true, false, true},
    {"rgba 16", RGBA, 16, false, false, false},
    {"rgba 16 interlaced", RGBA, 16, true, false, true},
};
const int png_kind_count = sizeof png_kinds / sizeof png_kinds[0];

static int channels_of(int colour_type)
{
    return colour_type == RGBA ? 4 : colour_type == RGB ? 3 : colour_type == GRAY_ALPHA ? 2 : 1;
}

/* Some value of a sample, evenly spread. */
static unsigned sample_at(int32_t y, int32_t x, int channel, int bits)
{
    uint32_t mixed = (uint32_t)y * 2654435761u ^ (uint32_t)x * 2246822519u ^ (uint32_t)(channel + 1) * 3266489917u;
    mixed ^= mixed >> 15;
    mixed *= 2246822519u;
    mixed ^= mixed >> 13;
    return mixed >> (32 - bits);
}

static png_color palette_entry(unsigned index)
{
    return (png_color){(png_byte)(index * 37 + 11), (png_byte)(index * 101 + 7), (png_byte)(255 - index * 53)};
}

/* What a reader must make of a pixel: gray scaled to 8 bits and replicated, 16 bits cut to the high byte, alpha
 * dropped. */
static void expected_pixel(const struct png_kind *kind, int32_t y, int32_t x, uint8_t *rgb)
{
    const unsigned first = sample_at(y, x, 0, kind->bits);
    if (kind->colour_type == PALETTE) {
        const png_color colour = palette_entry(first);
        rgb[0] = colour.red;
        rgb[1] = colour.green;
        rgb[2] = colour.blue;
        return;
    }
    for (int channel = 0; channel < 3; channel++) {
        const unsigned sample =
            (kind->colour_type & PNG_COLOR_MASK_COLOR) != 0 ? sample_at(y, x, channel, kind->bits) : first;
        rgb[channel] = (uint8_t)(kind->bits == 16 ? sample >> 8 : sample * (255u / ((1u << kind->bits) - 1)));
    }
}

static void fill_row(const struct png_kind *kind, int32_t y, int32_t width, png_bytep row)
{
    const int channels = channels_of(kind->colour_type);
    size_t bit = 0;
    for (int32_t x = 0; x < width; x++) {
        for (int channel = 0; channel < channels; channel++, bit += (size_t)kind->bits) {
            const unsigned sample = sample_at(y, x, channel, kind->bits);
            if (kind->bits == 16) {
                row[bit / 8] = (png_byte)(sample >> 8);
                row[bit / 8 + 1] = (png_byte)sample;
            } else {
                row[bit / 8] = (png_byte)(row[bit / 8] | sample << (8 - kind->bits - (int)(bit % 8)));
            }
        }
    }
}

static void set_chunks(const struct png_kind *kind, png_structp png, png_infop info)
{
    png_color palette[256];
    png_byte alphas[256];
    const int colours = 1 << (kind->bits > 8 ? 8 : kind->bits);
    for (int i = 0; i < colours; i++) {
        palette[i] = palette_entry((unsigned)i);
        alphas[i] = (png_byte)(i * 91);
    }
    if (kind->colour_type == PALETTE)
        png_set_PLTE(png, info, palette, colours);
    if (kind->transparent) {
        png_color_16 key = {0};
        key.gray = key.red = key.green = key.blue = 1;
        png_set_tRNS(png, info, alphas, colours, &key);
    }
    if (kind->extras) {
        png_text text = {.compression = PNG_TEXT_COMPRESSION_zTXt, .key = (char *)"Comment", .text = (char *)"none"};
        png_set_gAMA(png, info, 0.3);
        png_set_pHYs(png, info, 100, 300, PNG_RESOLUTION_METER);
        png_set_text(png, info, &text, 1);
    }
}

void png_kind_write(const struct png_kind *kind, int32_t height, int32_t width, const char *path, uint8_t *rgb)
{
    FILE *stream = fopen(path, "wb");
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_bytepp rows = malloc((size_t)height * sizeof *rows);
    if (stream == NULL || info == NULL || rows == NULL)
        abort();
    png_init_io(png, stream);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, kind->bits, kind->colour_type,
                 kind->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    set_chunks(kind, png, info);
    png_write_info(png, info);
    for (int32_t y = 0; y < height; y++) {
        rows[y] = calloc((size_t)width * 8 + 1, 1);
        if (rows[y] == NULL)
            abort();
        fill_row(kind, y, width, rows[y]);
        for (int32_t x = 0; x < width; x++)
            expected_pixel(kind, y, x, rgb + ((size_t)y * (size_t)width + (size_t)x) * 3);
    }
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    for (int32_t y = 0; y < height; y++)
        free(rows[y]);
    free(rows);
    fclose(stream);
}
