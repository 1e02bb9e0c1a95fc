/* SPDX-License-Identifier: MIT */
/*
 * caller.h - what a caller hands in, checked and turned into ours: structs of other versions of the header, pointers,
 * numbers, images, maps. The exported functions check with these, and nothing behind them checks again.
 */
#ifndef SW_CALLER_H
#define SW_CALLER_H

#include "base/status.h"
#include "kernels/kernels.h"

#define SW_TEXT_OF(value) #value
#define SW_TEXT(value) SW_TEXT_OF(value)
#define SW_VERSION_TEXT SW_TEXT(SWIN_VERSION_MAJOR) "." SW_TEXT(SWIN_VERSION_MINOR) "." SW_TEXT(SWIN_VERSION_PATCH)

/* A caller's struct of `struct_size` bytes, shorter or longer than ours, becomes ours: what it lacks is zero; what we
 * do not know must be zero. */
swin_status sw_take_struct(void *ours, size_t size, const void *theirs, size_t minimum, const char *name,
                           swin_error *err);

/* Fills a caller's struct of `struct_size` bytes from ours. */
swin_status sw_give_struct(void *theirs, size_t struct_size, const void *ours, size_t size, const char *name,
                           swin_error *err);

/* Fails where the pointer is NULL, or the number is outside. */
swin_status sw_require(const void *pointer, const char *name, swin_error *err);
swin_status sw_require_range(int32_t value, int32_t low, int32_t high, const char *name, swin_error *err);

/* One image of the caller's, checked, in the kernels' terms. Image 0 sets the canvas, the others must have the same. */
swin_status sw_take_image(sw_pixels *pixels, int32_t canvas[2], const swin_image *image, size_t index, swin_error *err);

/* Where the maps of `count` images of a canvas go, checked: levels that exist, rooms large enough, each by itself. */
swin_status sw_take_maps(swin_maps *ours, const swin_maps *theirs, const swin_config *config, const int32_t canvas[2],
                         size_t count, swin_error *err);

#endif
