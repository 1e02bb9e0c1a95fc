/* SPDX-License-Identifier: MIT */
/*
 * window.h - which token stands where once a map is padded, rolled and cut into windows, found by doing just that to a
 * map of token numbers.
 */
#ifndef TESTS_REFERENCE_WINDOW_H
#define TESTS_REFERENCE_WINDOW_H

#include "lineage.h"

typedef struct reference_layout {
    int32_t windows; /* numbered row by row */
    int32_t *token;  /* [windows][window rows * window columns]: row * columns + column of the map, or -1 for padding */
    int32_t *region; /* likewise: tokens of different regions are kept apart by the mask */
} reference_layout;

reference_layout reference_layout_new(const reference_rule *rule, int32_t rows, int32_t columns);
void reference_layout_release(reference_layout *layout);

#endif
