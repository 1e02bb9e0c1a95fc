/* SPDX-License-Identifier: MIT */
/*
 * checked.h - arithmetic on sizes that come from outside. False means overflow, and the result is not to be used.
 */
#ifndef SW_BASE_CHECKED_H
#define SW_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool sw_add(size_t a, size_t b, size_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool sw_mul(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* ceil(value / divisor) for value >= 0 and divisor > 0, without overflow. */
static inline int32_t sw_ceil_div(int32_t value, int32_t divisor)
{
    return value / divisor + (value % divisor != 0);
}

#endif
