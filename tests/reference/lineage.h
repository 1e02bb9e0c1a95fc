/* SPDX-License-Identifier: MIT */
/*
 * lineage.h - where the published implementations differ, rule by rule, as the reference computes it. Written from
 * their documents alone: it shares nothing with the library.
 */
#ifndef TESTS_REFERENCE_LINEAGE_H
#define TESTS_REFERENCE_LINEAGE_H

#include <stdbool.h>

#include <swin/swin.h>

/* How a block attends on a map. Pairs are {rows, columns}. */
typedef struct reference_rule {
    int32_t window[2];
    int32_t shift[2];
    bool roll_before_padding;
    double mask; /* added to the logit of a pair from different regions */
} reference_rule;

/* The patch grid of an image of height x width pixels. */
void reference_grid(const swin_config *config, int32_t height, int32_t width, int32_t grid[2]);

/* The rule of a block whose stage has a map of rows x columns tokens, in an image of height x width pixels. */
reference_rule reference_rule_of(const swin_config *config, int32_t stage, int32_t block, int32_t rows, int32_t columns,
                                 int32_t height, int32_t width);

#endif
