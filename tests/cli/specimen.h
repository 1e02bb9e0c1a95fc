/* SPDX-License-Identifier: MIT */
/*
 * specimen.h - images to give to swin-dump, and what it made of them, in the test's place.
 */
#ifndef TESTS_CLI_SPECIMEN_H
#define TESTS_CLI_SPECIMEN_H

#include <jansson.h>

#include "npy.h"
#include "picture.h"

void specimen_write(const char *name, const struct picture *picture);

/* The same for the same seed. */
struct picture specimen_noise(int32_t width, int32_t height, uint32_t seed);
void specimen_write_noise(const char *name, int32_t width, int32_t height, uint32_t seed);

/* set/: a.png, b.png, d.png, a broken c.png and a file that is no image. */
void specimen_write_set(void);

/* Fail the test where there is none. */
struct npy_array specimen_map(const char *name);
json_t *specimen_summary(const char *name);

void specimen_assert_same_maps(const char *one, const char *other);

#endif
