/* SPDX-License-Identifier: MIT */
/*
 * fixture.h - the files of this directory as the tests read them. They are the project's own, so they are trusted:
 * whatever is wrong with one ends the test. Nothing here is shared with the library's own reader of safetensors.
 */
#ifndef TESTS_GOLDEN_FIXTURE_H
#define TESTS_GOLDEN_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIXTURE_MAX_RANK 4

typedef struct fixture fixture;

/* `name` is relative to this directory. */
fixture *fixture_open(const char *name);
void fixture_close(fixture *file);

/* The full path of a file of this directory, to be released with free(). */
char *fixture_path(const char *name);

bool fixture_has(const fixture *file, const char *tensor);

/* How many values a tensor has; its shape, with ones behind its own dimensions, where `shape` is not NULL. */
size_t fixture_shape(const fixture *file, const char *tensor, int64_t shape[FIXTURE_MAX_RANK]);

/* A tensor's values as doubles or floats, to be released with free(). */
double *fixture_doubles(const fixture *file, const char *tensor);
float *fixture_floats(const fixture *file, const char *tensor);

/* A string of the file's metadata, or NULL; lives as long as the fixture. */
const char *fixture_metadata(const fixture *file, const char *key);

/* ||values - expected|| / ||expected|| over `count` values. Any NaN or infinity makes it infinite. */
double fixture_distance(const double *values, const double *expected, size_t count);

#endif
