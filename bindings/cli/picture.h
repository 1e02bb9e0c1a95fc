/* SPDX-License-Identifier: MIT */
/*
 * picture.h - 8-bit RGB pixels in dense rows, from the top: what photos become when read, and what is drawn on.
 */
#ifndef CLI_PICTURE_H
#define CLI_PICTURE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "failure.h"

struct picture {
    int32_t width;
    int32_t height;
    uint8_t *pixels; /* R, G, B; height rows of width pixels */
};

struct colour {
    uint8_t red, green, blue;
};

struct rectangle {
    int32_t x, y, width, height;
};

/* Black. `width`, `height` >= 1. */
bool picture_create(struct picture *picture, int32_t width, int32_t height, struct failure *failure);

/* A picture that was only zeroed is fine. */
void picture_destroy(struct picture *picture);

static inline uint8_t *picture_at(const struct picture *picture, int32_t x, int32_t y)
{
    return picture->pixels + ((size_t)y * (size_t)picture->width + (size_t)x) * 3;
}

void picture_fill(struct picture *picture, struct rectangle area, struct colour colour);

/* Copies `source` to (x, y); it must fit. */
void picture_paste(struct picture *picture, const struct picture *source, int32_t x, int32_t y);

/* Reads a PNG file of any kind as PIL's convert("RGB") does: palettes and 1, 2 and 4 bit gray expanded, gray
 * replicated, 16 bits cut to their high byte, alpha and tRNS dropped (not composited), gAMA and colour profiles
 * ignored. More than `max_pixels` pixels are refused before anything of that size is allocated. */
bool picture_read_png(struct picture *picture, const char *path, uint64_t max_pixels, struct failure *failure);

/* Whether picture_read_png() would come as far as the pixels. */
bool picture_probe_png(const char *path, uint64_t max_pixels, struct failure *failure);

/* Writes a PNG: indexed when it has at most 256 colours, else 24 bit. `path` is for the message. */
bool picture_write_png(const struct picture *picture, FILE *stream, const char *path, struct failure *failure);

#endif
