/* SPDX-License-Identifier: MIT */
/*
 * png_writer.c - pictures become PNG files. A heatmap has no more colours than its colour map, so it is stored indexed,
 * in a third of the bytes; the palette is sorted from dark to bright, so that smooth maps stay smooth as indices.
 */
#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "picture.h"

enum { MAX_COLOURS = 256, SLOTS = 1024, COMPRESSION_LEVEL = 3 };

struct palette {
    uint32_t colours[MAX_COLOURS]; /* 0xRRGGBB */
    int count;
    int16_t slots[SLOTS]; /* open addressing: index of a colour, or -1 */
};

struct writer {
    const struct picture *picture;
    const char *path;
    FILE *stream;
    png_structp png;
    png_infop info;
    struct palette *palette; /* NULL: 24 bit */
    png_bytep row;
    struct failure *failure;
};

static uint32_t colour_of(const uint8_t *pixel)
{
    return (uint32_t)pixel[0] << 16 | (uint32_t)pixel[1] << 8 | pixel[2];
}

static int16_t *slot_of(struct palette *palette, uint32_t colour)
{
    uint32_t slot = colour * 2654435761u >> 22;
    while (palette->slots[slot] >= 0 && palette->colours[palette->slots[slot]] != colour)
        slot = (slot + 1) % SLOTS;
    return &palette->slots[slot];
}

static void forget_slots(struct palette *palette)
{
    for (int i = 0; i < SLOTS; i++)
        palette->slots[i] = -1;
}

static int by_brightness(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    const uint32_t bright_a = 3 * (a >> 16) + 6 * (a >> 8 & 255) + (a & 255);
    const uint32_t bright_b = 3 * (b >> 16) + 6 * (b >> 8 & 255) + (b & 255);
    if (bright_a != bright_b)
        return bright_a < bright_b ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* False when there are more colours than a palette holds. */
static bool palette_find(struct palette *palette, const struct picture *picture)
{
    palette->count = 0;
    forget_slots(palette);
    const size_t count = (size_t)picture->width * (size_t)picture->height;
    for (size_t i = 0; i < count; i++) {
        const uint32_t colour = colour_of(picture->pixels + 3 * i);
        int16_t *slot = slot_of(palette, colour);
        if (*slot >= 0)
            continue;
        if (palette->count == MAX_COLOURS)
            return false;
        *slot = (int16_t)palette->count;
        palette->colours[palette->count++] = colour;
    }
    qsort(palette->colours, (size_t)palette->count, sizeof palette->colours[0], by_brightness);
    forget_slots(palette);
    for (int i = 0; i < palette->count; i++)
        *slot_of(palette, palette->colours[i]) = (int16_t)i;
    return true;
}

static void on_error(png_structp png, png_const_charp message)
{
    struct writer *writer = png_get_error_ptr(png);
    if (ferror(writer->stream))
        failure_set(writer->failure, "%s: cannot be written: %s", writer->path, failure_of_errno(errno));
    else
        failure_set(writer->failure, "%s: cannot be written: %s", writer->path, message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void write_bytes(png_structp png, png_bytep bytes, size_t count)
{
    struct writer *writer = png_get_io_ptr(png);
    if (fwrite(bytes, 1, count, writer->stream) != count)
        png_error(png, "write error");
}

static void flush_bytes(png_structp png)
{
    (void)png;
}

static void write_row(struct writer *writer, int32_t y)
{
    uint8_t *pixel = picture_at(writer->picture, 0, y);
    if (writer->palette == NULL) {
        png_write_row(writer->png, pixel);
        return;
    }
    for (int32_t x = 0; x < writer->picture->width; x++)
        writer->row[x] = (png_byte)*slot_of(writer->palette, colour_of(pixel + 3 * (size_t)x));
    png_write_row(writer->png, writer->row);
}

static bool encode(struct writer *writer)
{
    if (setjmp(png_jmpbuf(writer->png)) != 0)
        return false;
    png_set_write_fn(writer->png, writer, write_bytes, flush_bytes);
    png_set_IHDR(writer->png, writer->info, (png_uint_32)writer->picture->width, (png_uint_32)writer->picture->height,
                 8, writer->palette != NULL ? PNG_COLOR_TYPE_PALETTE : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (writer->palette != NULL) {
        png_color colours[MAX_COLOURS];
        for (int i = 0; i < writer->palette->count; i++) {
            const uint32_t colour = writer->palette->colours[i];
            colours[i] = (png_color){(png_byte)(colour >> 16), (png_byte)(colour >> 8), (png_byte)colour};
        }
        png_set_PLTE(writer->png, writer->info, colours, writer->palette->count);
    }
    /* Heatmaps repeat their colours: unfiltered rows are smaller and take a third of the time. */
    png_set_filter(writer->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_NONE);
    png_set_compression_level(writer->png, COMPRESSION_LEVEL);
    png_write_info(writer->png, writer->info);
    for (int32_t y = 0; y < writer->picture->height; y++)
        write_row(writer, y);
    png_write_end(writer->png, writer->info);
    return true;
}

bool picture_write_png(const struct picture *picture, FILE *stream, const char *path, struct failure *failure)
{
    struct palette palette;
    struct writer writer = {.picture = picture, .path = path, .stream = stream, .failure = failure};
    bool done = false;

    if (palette_find(&palette, picture)) {
        writer.palette = &palette;
        writer.row = malloc((size_t)picture->width);
        if (writer.row == NULL)
            return failure_no_memory(failure, (unsigned long long)picture->width, "a row of a picture");
    }
    writer.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &writer, on_error, on_warning);
    writer.info = writer.png != NULL ? png_create_info_struct(writer.png) : NULL;
    if (writer.info == NULL)
        failure_set(failure, "%s: libpng could not be started (no memory)", path);
    else
        done = encode(&writer);
    png_destroy_write_struct(&writer.png, &writer.info);
    free(writer.row);
    return done;
}
