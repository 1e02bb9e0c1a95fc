/* SPDX-License-Identifier: MIT */
/*
 * pattern.h - text with numbers in braces, as in "layers.{s}.blocks.{b}.": the letter is s or b, a factor may stand
 * before it and a summand after it. Numbers are written without leading zeros.
 */
#ifndef SW_MODEL_PATTERN_H
#define SW_MODEL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Larger numbers are no stages and blocks. */
#define SW_PATTERN_MAX_NUMBER 9999

/* Matches a pattern at the beginning of `text`. Returns what follows in the text, NULL where it does not match. A
 * letter's value must be >= 0; values that the pattern does not have are left alone. */
const char *sw_pattern_match(const char *pattern, const char *text, int32_t *stage, int32_t *block);

/* Appends the pattern's text to the string of length `used` in `buffer`, cut where it does not fit. Returns the length
 * that it would have had uncut. */
size_t sw_pattern_format(const char *pattern, int32_t stage, int32_t block, char *buffer, size_t size, size_t used);

#endif
