/* SPDX-License-Identifier: MIT */
/*
 * vector.h - the few vector operations that the kernels are written in, for the instruction set that the file at hand
 * is compiled for.
 *
 * meson compiles every kernel once per instruction set and says which through SW_ISA (a value of sw_isa) and
 * SW_ISA_NAME. Each vector_*.h gives the same names:
 *
 *      vf, vi         VF_LANES float32 or int32 values
 *      vq             four float32 values, one for each row of a group; ordinary operators work on it
 *      vf_load        all lanes; vf_load_n: the first n (1 .. VF_LANES), the others zero, nothing beyond them touched
 *      vf_fma         a * b + c, and vf_fnma c - a * b: fused where the instruction set can
 *      vf_max         b where either is NaN, like vf_min
 *      *_bf16         16 bits in memory, float32 in the register, rounded to nearest even, NaN kept
 *      *_bf16_2       two vectors, one after the other in memory
 *      vf_sum         of all lanes, in an order that never changes; vf_peak: the largest
 *      vf_sum4        the sums of four vectors, each in the same order; vf_peak4: their largest
 *      vf_of          a vq in the first four lanes; vq_of: the first four lanes
 *      vf_first       the first n lanes of a, the other lanes of b
 *      vf_zero_below  a, but zero where x < least (and not where x is NaN)
 *      vf_power       a * 2^n where shifted = VF_SHIFT + n, n a whole number between -126 and 0; anything for other n
 *      vf_add_where_differ  a, and a + b where the integers x and y differ
 *      vf_transpose   column c of VF_LANES rows of VF_LANES elements each
 *      vf_pixels      R G B (or B G R) of four pixels in each of VF_LANES / 4 lines, 12 bytes every `stride`;
 *                     vf_quads the same of four float32 every `stride` bytes
 *      vf_stream      a store past the caches to an address that is a multiple of the vector, where VF_CAN_STREAM;
 *                     vf_stream_end after the last of them, before another thread may read
 */
#ifndef SW_KERNELS_VECTOR_H
#define SW_KERNELS_VECTOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../base/type.h"

#define SW_INLINE static inline __attribute__((always_inline, unused))

/* A float32 as bf16. */
SW_INLINE uint16_t sw_bf16_from(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

SW_INLINE float sw_bf16_to(uint16_t value)
{
    const uint32_t bits = (uint32_t)value << 16;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

typedef float vq __attribute__((vector_size(16)));

/* Adding it to a number of up to 22 bits leaves the nearest whole number, halves to even, in the last bits of the
 * sum. */
#define VF_SHIFT 0x1.8p23f

#if SW_ISA >= 2
#include "vector_avx512.h"
#elif SW_ISA == 1
#include "vector_avx2.h"
#else
#include "vector_plain.h"
#endif

/* Elements `at` and following of an array of either type. `type` is a constant wherever speed matters. */
SW_INLINE vf vf_get(const void *array, sw_type type, size_t at)
{
    return type == SW_BF16 ? vf_load_bf16((const uint16_t *)array + at) : vf_load((const float *)array + at);
}

SW_INLINE vf vf_get_n(const void *array, sw_type type, size_t at, int n)
{
    return type == SW_BF16 ? vf_load_bf16_n((const uint16_t *)array + at, n) : vf_load_n((const float *)array + at, n);
}

SW_INLINE void vf_put(void *array, sw_type type, size_t at, vf value)
{
    if (type == SW_BF16)
        vf_store_bf16((uint16_t *)array + at, value);
    else
        vf_store((float *)array + at, value);
}

SW_INLINE void vf_put_n(void *array, sw_type type, size_t at, vf value, int n)
{
    if (type == SW_BF16)
        vf_store_bf16_n((uint16_t *)array + at, value, n);
    else
        vf_store_n((float *)array + at, value, n);
}

SW_INLINE void vf_put_2(void *array, sw_type type, size_t at, vf first, vf second)
{
    if (type == SW_BF16) {
        vf_store_bf16_2((uint16_t *)array + at, first, second);
    } else {
        vf_store((float *)array + at, first);
        vf_store((float *)array + at + VF_LANES, second);
    }
}

SW_INLINE vq vq_set(float value)
{
    return (vq){value, value, value, value};
}

/* The address of element `at`. */
SW_INLINE void *vf_at(void *array, sw_type type, size_t at)
{
    return (char *)array + at * sw_type_size(type);
}

SW_INLINE const void *vf_at_const(const void *array, sw_type type, size_t at)
{
    return (const char *)array + at * sw_type_size(type);
}

#endif
