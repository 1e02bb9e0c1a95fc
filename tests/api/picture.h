/* SPDX-License-Identifier: MIT */
/*
 * picture.h - images for tests, and room for the maps of them.
 */
#ifndef TESTS_API_PICTURE_H
#define TESTS_API_PICTURE_H

#include <swin/swin.h>

/* Normalised planes of pseudo-random numbers, about as a photo's: slopes and noise, mean 0, deviation 1, times `scale`.
 * Released with free(). */
float *picture_planes(int32_t height, int32_t width, uint64_t seed, float scale);

/* `count` pseudo-random bytes. Released with free(). */
uint8_t *picture_bytes(size_t count, uint64_t seed);

/* A dense planar image. */
swin_image picture_image(const float *planes, int32_t height, int32_t width);

/* Room for the chosen levels (bit s set: level s) of `count` images, every float NaN. Fails the test where the library
 * does. Released with picture_maps_release(). */
swin_maps picture_maps(const swin_model *model, int32_t height, int32_t width, size_t count, unsigned levels,
                       int32_t layout);
void picture_maps_release(swin_maps *maps);

/* Whether two maps hold the same bits. */
int picture_maps_equal(const swin_maps *a, const swin_maps *b);

#endif
