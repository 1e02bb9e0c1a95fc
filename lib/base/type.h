/* SPDX-License-Identifier: MIT */
/*
 * type.h - element types of activations and packed weights.
 */
#ifndef SW_BASE_TYPE_H
#define SW_BASE_TYPE_H

#include <stddef.h>
#include <stdint.h>

typedef enum sw_type {
    SW_F32 = 0,
    SW_BF16 = 1 /* upper half of a float32, stored as uint16_t */
} sw_type;

static inline size_t sw_type_size(sw_type type)
{
    return type == SW_BF16 ? 2 : 4;
}

#endif
