/* SPDX-License-Identifier: MIT */
/*
 * value.h - numbers in option values. Strict: the whole text must be understood, or nothing is.
 */
#ifndef CLI_VALUE_H
#define CLI_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* "1,2,3": up to `most` whole numbers from `low` to `high`. Returns how many, 0 when the text is anything else. */
int value_integers(const char *text, int32_t *values, int most, int32_t low, int32_t high);

/* "1.5,2,3e-1": likewise, finite. */
int value_floats(const char *text, float *values, int most);

/* "7,8x12": rows x columns each; a single number stands for both. */
int value_sizes(const char *text, int32_t (*values)[2], int most, int32_t low, int32_t high);

/* "1000000", "256M", "1.5M": 1 to 2^31 - 1. */
bool value_pixels(const char *text, uint64_t *pixels);

#endif
