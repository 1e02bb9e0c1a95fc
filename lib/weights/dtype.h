/* SPDX-License-Identifier: MIT */
/*
 * dtype.h - element types of safetensors files. All are known by size, so that any file can be listed and checked; the
 * floating-point ones that weights come in can be converted to float32.
 */
#ifndef SW_WEIGHTS_DTYPE_H
#define SW_WEIGHTS_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum sw_dtype {
    SW_DTYPE_F32,
    SW_DTYPE_F16,
    SW_DTYPE_BF16,
    SW_DTYPE_F64,
    /* From here on: not for weights. */
    SW_DTYPE_BOOL,
    SW_DTYPE_U8,
    SW_DTYPE_I8,
    SW_DTYPE_U16,
    SW_DTYPE_I16,
    SW_DTYPE_U32,
    SW_DTYPE_I32,
    SW_DTYPE_U64,
    SW_DTYPE_I64,
    SW_DTYPE_C64,
    SW_DTYPE_F8_E4M3,
    SW_DTYPE_F8_E5M2,
    SW_DTYPE_F8_E8M0,
    SW_DTYPE_F8_E4M3FNUZ,
    SW_DTYPE_F8_E5M2FNUZ,
    SW_DTYPE_F6_E2M3,
    SW_DTYPE_F6_E3M2,
    SW_DTYPE_F4,
    SW_DTYPE_COUNT
} sw_dtype;

/* The type that a file calls `name`; false where there is none. */
bool sw_dtype_find(const char *name, sw_dtype *dtype);
const char *sw_dtype_name(sw_dtype dtype);

/* Bits of an element; a multiple of 8 except for types narrower than a byte. */
unsigned sw_dtype_bits(sw_dtype dtype);

static inline bool sw_dtype_is_weight(sw_dtype dtype)
{
    return dtype <= SW_DTYPE_F64;
}

/* Converts elements of a weight type, stored little-endian and unaligned; float64 values round to nearest, those too
 * large become infinite. src may be the end of dst's own memory where its elements are not larger than float32. */
void sw_dtype_to_f32(sw_dtype dtype, const void *src, float *dst, size_t count);

/* How many values are infinite or not a number. */
size_t sw_count_nonfinite(const float *values, size_t count);

#endif
