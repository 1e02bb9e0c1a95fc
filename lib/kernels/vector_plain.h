/* SPDX-License-Identifier: MIT */
/*
 * vector_plain.h - vector.h's operations without any instruction set: four lanes through the compiler's own vectors,
 * which it maps to SSE2, NEON or plain registers. Multiplication and addition are never fused, so that every machine
 * computes the same.
 */
#ifndef SW_KERNELS_VECTOR_PLAIN_H
#define SW_KERNELS_VECTOR_PLAIN_H

#include <math.h>
#include <stdbool.h>

#define VF_LANES 4

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef uint16_t vh __attribute__((vector_size(8)));

SW_INLINE vf vf_set(float value)
{
    return (vf){value, value, value, value};
}

SW_INLINE vf vf_load(const float *from)
{
    vf value;
    memcpy(&value, from, sizeof value);
    return value;
}

SW_INLINE vf vf_load_n(const float *from, int n)
{
    vf value = {0};
    for (int i = 0; i < n; i++)
        value[i] = from[i];
    return value;
}

SW_INLINE void vf_store(float *to, vf value)
{
    memcpy(to, &value, sizeof value);
}

SW_INLINE void vf_store_n(float *to, vf value, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = value[i];
}

SW_INLINE vf vf_load_bf16(const uint16_t *from)
{
    vh half;
    memcpy(&half, from, sizeof half);
    return (vf)(__builtin_convertvector(half, vu) << 16);
}

SW_INLINE vf vf_load_bf16_n(const uint16_t *from, int n)
{
    vf value = {0};
    for (int i = 0; i < n; i++)
        value[i] = sw_bf16_to(from[i]);
    return value;
}

SW_INLINE void vf_store_bf16(uint16_t *to, vf value)
{
    const vu bits = (vu)value;
    const vu nan = (vu)(value != value); /* NOLINT(misc-redundant-expression) */
    const vu rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const vu kept = bits >> 16 | 0x40;
    const vh half = __builtin_convertvector((rounded & ~nan) | (kept & nan), vh);
    memcpy(to, &half, sizeof half);
}

SW_INLINE void vf_store_bf16_n(uint16_t *to, vf value, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = sw_bf16_from(value[i]);
}

SW_INLINE void vf_store_bf16_2(uint16_t *to, vf first, vf second)
{
    vf_store_bf16(to, first);
    vf_store_bf16(to + VF_LANES, second);
}

SW_INLINE vf vf_add(vf a, vf b)
{
    return a + b;
}

SW_INLINE vf vf_sub(vf a, vf b)
{
    return a - b;
}

SW_INLINE vf vf_mul(vf a, vf b)
{
    return a * b;
}

SW_INLINE vf vf_div(vf a, vf b)
{
    return a / b;
}

SW_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return a * b + c;
}

SW_INLINE vf vf_fnma(vf a, vf b, vf c)
{
    return c - a * b;
}

SW_INLINE vf vf_select(vi mask, vf yes, vf no)
{
    return (vf)(((vi)yes & mask) | ((vi)no & ~mask));
}

SW_INLINE vf vf_max(vf a, vf b)
{
    return vf_select(a > b, a, b);
}

SW_INLINE vf vf_min(vf a, vf b)
{
    return vf_select(a < b, a, b);
}

SW_INLINE vf vf_abs(vf a)
{
    return (vf)((vi)a & 0x7fffffff);
}

SW_INLINE float vf_sum(vf a)
{
    return (a[0] + a[2]) + (a[1] + a[3]);
}

SW_INLINE float vf_peak(vf a)
{
    const float x = a[0] > a[1] ? a[0] : a[1];
    const float y = a[2] > a[3] ? a[2] : a[3];
    return x > y ? x : y;
}

SW_INLINE vq vf_sum4(vf a, vf b, vf c, vf d)
{
    return (vq){vf_sum(a), vf_sum(b), vf_sum(c), vf_sum(d)};
}

SW_INLINE vq vf_peak4(vf a, vf b, vf c, vf d)
{
    return (vq){vf_peak(a), vf_peak(b), vf_peak(c), vf_peak(d)};
}

SW_INLINE vf vf_of(vq a)
{
    return a;
}

SW_INLINE vq vq_of(vf a)
{
    return a;
}

SW_INLINE vq vq_max(vq a, vq b)
{
    return vf_max(a, b);
}

SW_INLINE bool vq_has_infinity(vq a)
{
    return a[0] == INFINITY || a[1] == INFINITY || a[2] == INFINITY || a[3] == INFINITY;
}

SW_INLINE vq vq_sqrt(vq a)
{
    return (vq){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])};
}

SW_INLINE vf vf_zero_below(vf a, vf x, vf least)
{
    return (vf)((vi)a & ~(x < least));
}

SW_INLINE vf vf_first(vf a, int n, vf b)
{
    return vf_select((vi){0, 1, 2, 3} < n, a, b);
}

SW_INLINE vf vf_power(vf a, vf shifted)
{
    /* The last bits of the sum are n; its upper ones are shifted out. */
    return a * (vf)(((vu)shifted + 127) << 23);
}

SW_INLINE vi vi_set(int32_t value)
{
    return (vi){value, value, value, value};
}

SW_INLINE vi vi_load(const int32_t *from)
{
    vi value;
    memcpy(&value, from, sizeof value);
    return value;
}

SW_INLINE vi vi_load_n(const int32_t *from, int n)
{
    vi value = {0};
    for (int i = 0; i < n; i++)
        value[i] = from[i];
    return value;
}

SW_INLINE vf vf_add_where_differ(vf a, vf b, vi x, vi y)
{
    return vf_select(x == y, a, a + b);
}

SW_INLINE void vf_transpose(vf columns[VF_LANES], const float *const from[VF_LANES])
{
    for (int c = 0; c < VF_LANES; c++)
        columns[c] = (vf){from[0][c], from[1][c], from[2][c], from[3][c]};
}

SW_INLINE void vf_pixels(vf out[3], const uint8_t *from, ptrdiff_t stride)
{
    (void)stride;
    for (int c = 0; c < 3; c++)
        out[c] = (vf){from[c], from[3 + c], from[6 + c], from[9 + c]};
}

SW_INLINE vf vf_quads(const void *from, ptrdiff_t stride)
{
    (void)stride;
    vf value;
    memcpy(&value, from, sizeof value);
    return value;
}

#define VF_CAN_STREAM 0

SW_INLINE void vf_stream(float *to, vf value)
{
    vf_store(to, value);
}

SW_INLINE void vf_stream_end(void)
{
}

#endif
