/* SPDX-License-Identifier: MIT */
/*
 * png_reader.c - PNG files become pictures, through libpng.
 *
 * libpng reports errors by longjmp. Everything that outlives such a jump is in `struct reader`, never in a local
 * variable of the function that called setjmp.
 */
#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "picture.h"
#include "regular_file.h"

struct reader {
    const char *path;
    FILE *stream;
    png_structp png;
    png_infop info;
    png_bytep *rows;
    struct picture *picture;
    uint64_t max_pixels;
    bool header_only;
    struct failure *failure;
};

static void on_error(png_structp png, png_const_charp message)
{
    struct reader *reader = png_get_error_ptr(png);
    if (ferror(reader->stream))
        failure_set(reader->failure, "%s: cannot be read: %s", reader->path, failure_of_errno(errno));
    else if (feof(reader->stream))
        failure_set(reader->failure, "%s: ends in the middle of the picture (truncated); copy or download it again",
                    reader->path);
    else
        failure_set(reader->failure, "%s: broken PNG (%s); copy or download it again", reader->path, message);
    png_longjmp(png, 1);
}

/* Warnings are about chunks that do not matter here. */
static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void read_bytes(png_structp png, png_bytep bytes, size_t count)
{
    struct reader *reader = png_get_io_ptr(png);
    if (fread(bytes, 1, count, reader->stream) != count)
        png_error(png, "read error");
}

/* Only what pixels need is looked at: text and profiles can be huge when unpacked. */
static void ignore_other_chunks(png_structp png)
{
#ifdef PNG_HANDLE_AS_UNKNOWN_SUPPORTED
    static const png_byte ignored[] = "iCCP\0iTXt\0tEXt\0zTXt\0eXIf\0sPLT\0hIST\0tIME\0pHYs\0oFFs\0pCAL\0sCAL";
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, ignored, (int)(sizeof ignored / 5));
#endif
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
}

static bool check_size(const struct reader *reader, png_uint_32 width, png_uint_32 height)
{
    if ((uint64_t)width * height > reader->max_pixels)
        return failure_set(reader->failure, "%s: %u x %u pixels are over the limit of %llu; raise it with --max-pixels",
                           reader->path, (unsigned)width, (unsigned)height, (unsigned long long)reader->max_pixels);
    return true;
}

static bool decode(struct reader *reader)
{
    if (setjmp(png_jmpbuf(reader->png)) != 0)
        return false;
    png_set_read_fn(reader->png, reader, read_bytes);
    ignore_other_chunks(reader->png);
    png_read_info(reader->png, reader->info);

    const png_uint_32 width = png_get_image_width(reader->png, reader->info);
    const png_uint_32 height = png_get_image_height(reader->png, reader->info);
    if (!check_size(reader, width, height))
        return false;
    if (reader->header_only)
        return true;

    png_set_expand(reader->png);
    png_set_strip_16(reader->png);
    png_set_strip_alpha(reader->png);
    png_set_gray_to_rgb(reader->png);
    png_set_interlace_handling(reader->png);
    png_read_update_info(reader->png, reader->info);
    if (png_get_rowbytes(reader->png, reader->info) != 3 * (size_t)width)
        png_error(reader->png, "its pixels do not become RGB");

    if (!picture_create(reader->picture, (int32_t)width, (int32_t)height, reader->failure))
        return false;
    reader->rows = malloc(height * sizeof *reader->rows);
    if (reader->rows == NULL)
        return failure_no_memory(reader->failure, height * sizeof *reader->rows, "row pointers");
    for (png_uint_32 y = 0; y < height; y++)
        reader->rows[y] = picture_at(reader->picture, 0, (int32_t)y);
    png_read_image(reader->png, reader->rows);
    png_read_end(reader->png, NULL);
    return true;
}

static const char safetensors[] = "a safetensors checkpoint";

/* What the file is instead, where its first bytes say so. */
static const char *kind_of(const unsigned char *magic, size_t count)
{
    static const struct {
        const char *bytes;
        size_t offset, count;
        const char *kind;
    } known[] = {
        {"\xff\xd8\xff", 0, 3, "a JPEG"},
        {"GIF8", 0, 4, "a GIF"},
        {"WEBP", 8, 4, "a WebP"},
        {"BM", 0, 2, "a BMP"},
        {"II*\0", 0, 4, "a TIFF"},
        {"MM\0*", 0, 4, "a TIFF"},
        {"ftyp", 4, 4, "an AVIF, HEIC or MP4"},
        {"%PDF", 0, 4, "a PDF"},
        {"\x93NUMPY", 0, 6, "a NumPy array"},
        {"{\"", 8, 2, safetensors}, /* behind the length of its header */
        {"PK\3\4", 0, 4, "a zip file or a PyTorch checkpoint"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].offset + known[i].count <= count &&
            memcmp(magic + known[i].offset, known[i].bytes, known[i].count) == 0)
            return known[i].kind;
    }
    return NULL;
}

/* The signature, and that there are pixels: libpng's own words for a picture without any do not say so. */
static bool check_start(FILE *stream, const char *path, struct failure *failure)
{
    unsigned char magic[24];
    const size_t count = fread(magic, 1, sizeof magic, stream);
    if (ferror(stream))
        return failure_set(failure, "%s: cannot be read: %s", path, failure_of_errno(errno));
    if (count == 0)
        return failure_set(failure, "%s: the file is empty; copy or download it again", path);
    if (count < 8 || png_sig_cmp(magic, 0, 8) != 0) {
        const char *kind = kind_of(magic, count);
        if (kind == safetensors)
            return failure_set(failure, "%s: is %s, not a picture; give it with --weights", path, kind);
        if (kind == NULL)
            return failure_set(failure, "%s: is not a PNG, nor another kind of picture that is known here", path);
        return failure_set(failure,
                           "%s: is %s, not a PNG; convert it to PNG first, or give pictures to python3 -m libswin dump",
                           path, kind);
    }
    if (count == sizeof magic && memcmp(magic + 8, "\0\0\0\rIHDR", 8) == 0) {
        const png_uint_32 width = png_get_uint_32(magic + 16), height = png_get_uint_32(magic + 20);
        if (width == 0 || height == 0)
            return failure_set(failure, "%s: broken PNG (%u x %u pixels, expected at least 1 x 1); copy or "
                               "download it again", path, (unsigned)width, (unsigned)height);
    }
    rewind(stream);
    return true;
}

static bool read_file(struct reader *reader)
{
    bool done = false;
    reader->stream = regular_file_open(reader->path, reader->failure);
    if (reader->stream == NULL)
        return false;
    if (!check_start(reader->stream, reader->path, reader->failure))
        goto out;
    reader->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning);
    reader->info = reader->png != NULL ? png_create_info_struct(reader->png) : NULL;
    if (reader->info == NULL) {
        failure_set(reader->failure, "%s: libpng could not be started (no memory)", reader->path);
        goto out;
    }
    done = decode(reader);

out:
    png_destroy_read_struct(&reader->png, &reader->info, NULL);
    free(reader->rows);
    fclose(reader->stream);
    return done;
}

bool picture_read_png(struct picture *picture, const char *path, uint64_t max_pixels, struct failure *failure)
{
    struct reader reader = {.path = path, .picture = picture, .max_pixels = max_pixels, .failure = failure};
    *picture = (struct picture){0};
    if (read_file(&reader))
        return true;
    picture_destroy(picture);
    return false;
}

bool picture_probe_png(const char *path, uint64_t max_pixels, struct failure *failure)
{
    struct reader reader = {.path = path, .max_pixels = max_pixels, .header_only = true, .failure = failure};
    return read_file(&reader);
}
