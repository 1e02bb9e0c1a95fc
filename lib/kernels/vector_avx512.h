/* SPDX-License-Identifier: MIT */
/*
 * vector_avx512.h - vector.h's operations with AVX-512 F, BW, DQ and VL: 16 lanes, tails through masks.
 */
#ifndef SW_KERNELS_VECTOR_AVX512_H
#define SW_KERNELS_VECTOR_AVX512_H

#include <immintrin.h>
#include <math.h>
#include <stdbool.h>

#define VF_LANES 16

typedef __m512 vf;
typedef __m512i vi;

/* The first n of 16 lanes, n from 0 to 16. */
SW_INLINE __mmask16 vf_mask(int n)
{
    return (__mmask16)((1u << n) - 1);
}

SW_INLINE vf vf_set(float value)
{
    return _mm512_set1_ps(value);
}

SW_INLINE vf vf_load(const float *from)
{
    return _mm512_loadu_ps(from);
}

SW_INLINE vf vf_load_n(const float *from, int n)
{
    return _mm512_maskz_loadu_ps(vf_mask(n), from);
}

SW_INLINE void vf_store(float *to, vf value)
{
    _mm512_storeu_ps(to, value);
}

SW_INLINE void vf_store_n(float *to, vf value, int n)
{
    _mm512_mask_storeu_ps(to, vf_mask(n), value);
}

SW_INLINE vf vf_widen(__m256i half)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

SW_INLINE vf vf_load_bf16(const uint16_t *from)
{
    return vf_widen(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

SW_INLINE vf vf_load_bf16_n(const uint16_t *from, int n)
{
    return vf_widen(_mm256_maskz_loadu_epi16(vf_mask(n), from));
}

#ifdef __AVX512BF16__

/* The instructions take denormal numbers for zero. */
SW_INLINE __m256i vf_narrow(vf value)
{
    return (__m256i)_mm512_cvtneps_pbh(value);
}

SW_INLINE __m512i vf_narrow_2(vf first, vf second)
{
    return (__m512i)_mm512_cvtne2ps_pbh(second, first);
}

#else

/* The bf16 numbers in the upper halves; the lower halves are rubbish. */
SW_INLINE __m512i vf_rounded(vf value)
{
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    /* A NaN must not be carried into a number. */
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
}

SW_INLINE __m256i vf_narrow(vf value)
{
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(vf_rounded(value), 16));
}

SW_INLINE __m512i vf_narrow_2(vf first, vf second)
{
    const __m512i lower = _mm512_srli_epi32(vf_rounded(first), 16);
    const __m512i both = _mm512_mask_blend_epi16(0xaaaaaaaa, lower, vf_rounded(second));
    const __m512i order = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1,
                                           30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    return _mm512_permutexvar_epi16(order, both);
}

#endif

SW_INLINE void vf_store_bf16(uint16_t *to, vf value)
{
    _mm256_storeu_si256((__m256i *)(void *)to, vf_narrow(value));
}

SW_INLINE void vf_store_bf16_n(uint16_t *to, vf value, int n)
{
    _mm256_mask_storeu_epi16(to, vf_mask(n), vf_narrow(value));
}

SW_INLINE void vf_store_bf16_2(uint16_t *to, vf first, vf second)
{
    _mm512_storeu_si512(to, vf_narrow_2(first, second));
}

SW_INLINE vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

SW_INLINE vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

SW_INLINE vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

SW_INLINE vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

SW_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

SW_INLINE vf vf_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

SW_INLINE vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

SW_INLINE vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

SW_INLINE vf vf_abs(vf a)
{
    return _mm512_abs_ps(a);
}

/* Steps that bring the parts of all four vectors side by side: the order is that of each alone. */
SW_INLINE vq vf_sum4(vf a, vf b, vf c, vf d)
{
    const vf ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    const vf cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    const vf low = _mm512_shuffle_ps(ab, cd, _MM_SHUFFLE(1, 0, 1, 0));
    const vf high = _mm512_shuffle_ps(ab, cd, _MM_SHUFFLE(3, 2, 3, 2));
    const vf abcd = _mm512_add_ps(low, high);
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(abcd), _mm512_extractf32x8_ps(abcd, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

SW_INLINE vq vf_peak4(vf a, vf b, vf c, vf d)
{
    const vf ab = _mm512_max_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    const vf cd = _mm512_max_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    const vf low = _mm512_shuffle_ps(ab, cd, _MM_SHUFFLE(1, 0, 1, 0));
    const vf high = _mm512_shuffle_ps(ab, cd, _MM_SHUFFLE(3, 2, 3, 2));
    const vf abcd = _mm512_max_ps(low, high);
    const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(abcd), _mm512_extractf32x8_ps(abcd, 1));
    return _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

SW_INLINE float vf_sum(vf a)
{
    return vf_sum4(a, a, a, a)[0];
}

SW_INLINE float vf_peak(vf a)
{
    return vf_peak4(a, a, a, a)[0];
}

SW_INLINE vf vf_of(vq a)
{
    return _mm512_zextps128_ps512(a);
}

SW_INLINE vq vq_of(vf a)
{
    return _mm512_castps512_ps128(a);
}

SW_INLINE vq vq_max(vq a, vq b)
{
    return _mm_max_ps(a, b);
}

SW_INLINE bool vq_has_infinity(vq a)
{
    return _mm_movemask_ps(_mm_cmpeq_ps(a, _mm_set1_ps(INFINITY))) != 0;
}

SW_INLINE vq vq_sqrt(vq a)
{
    return _mm_sqrt_ps(a);
}

SW_INLINE vf vf_first(vf a, int n, vf b)
{
    return _mm512_mask_blend_ps(vf_mask(n), b, a);
}

SW_INLINE vf vf_zero_below(vf a, vf x, vf least)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ), a);
}

SW_INLINE vf vf_power(vf a, vf shifted)
{
    return _mm512_scalef_ps(a, _mm512_sub_ps(shifted, _mm512_set1_ps(VF_SHIFT)));
}

SW_INLINE vi vi_set(int32_t value)
{
    return _mm512_set1_epi32(value);
}

SW_INLINE vi vi_load(const int32_t *from)
{
    return _mm512_loadu_si512(from);
}

SW_INLINE vi vi_load_n(const int32_t *from, int n)
{
    return _mm512_maskz_loadu_epi32(vf_mask(n), from);
}

SW_INLINE vf vf_add_where_differ(vf a, vf b, vi x, vi y)
{
    return _mm512_mask_add_ps(a, _mm512_cmpneq_epi32_mask(x, y), a, b);
}

SW_INLINE __m512 vf_four_quarters(const float *const from[VF_LANES], int first, int at)
{
    __m512 quarters = _mm512_castps128_ps512(_mm_loadu_ps(from[first] + at));
    quarters = _mm512_insertf32x4(quarters, _mm_loadu_ps(from[first + 4] + at), 1);
    quarters = _mm512_insertf32x4(quarters, _mm_loadu_ps(from[first + 8] + at), 2);
    return _mm512_insertf32x4(quarters, _mm_loadu_ps(from[first + 12] + at), 3);
}

/* Four columns of sixteen rows: the loads bring rows i, i + 4, i + 8, i + 12 into one register, so that the shuffles
 * stay within quarters. */
SW_INLINE void vf_transpose(vf columns[VF_LANES], const float *const from[VF_LANES])
{
    for (int c = 0; c < VF_LANES; c += 4) {
        const __m512 a = vf_four_quarters(from, 0, c), b = vf_four_quarters(from, 1, c);
        const __m512 d = vf_four_quarters(from, 2, c), e = vf_four_quarters(from, 3, c);
        const __m512d ab_low = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
        const __m512d ab_high = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
        const __m512d de_low = _mm512_castps_pd(_mm512_unpacklo_ps(d, e));
        const __m512d de_high = _mm512_castps_pd(_mm512_unpackhi_ps(d, e));
        columns[c] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_low, de_low));
        columns[c + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_low, de_low));
        columns[c + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, de_high));
        columns[c + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, de_high));
    }
}

/* Masks keep the loads to the 12 bytes of each line. */
SW_INLINE void vf_pixels(vf out[3], const uint8_t *from, ptrdiff_t stride)
{
    __m512i lines = _mm512_setzero_si512();
    lines = _mm512_mask_broadcast_i32x4(lines, 0x0007, _mm_maskz_loadu_epi8(0x0fff, from));
    lines = _mm512_mask_broadcast_i32x4(lines, 0x0070, _mm_maskz_loadu_epi8(0x0fff, from + stride));
    lines = _mm512_mask_broadcast_i32x4(lines, 0x0700, _mm_maskz_loadu_epi8(0x0fff, from + 2 * stride));
    lines = _mm512_mask_broadcast_i32x4(lines, 0x7000, _mm_maskz_loadu_epi8(0x0fff, from + 3 * stride));
    for (int c = 0; c < 3; c++) {
        /* Every third byte, each as an integer of its own. */
        const int zero = (int)0x80808000u;
        const __m128i order = _mm_setr_epi32(zero | c, zero | (3 + c), zero | (6 + c), zero | (9 + c));
        out[c] = _mm512_cvtepi32_ps(_mm512_shuffle_epi8(lines, _mm512_broadcast_i32x4(order)));
    }
}

SW_INLINE vf vf_quads(const void *from, ptrdiff_t stride)
{
    const char *line = from;
    __m512 quads = _mm512_castps128_ps512(_mm_loadu_ps((const float *)(const void *)line));
    for (int i = 1; i < 4; i++) {
        const __m128 quad = _mm_loadu_ps((const float *)(const void *)(line + i * stride));
        quads = i == 1 ? _mm512_insertf32x4(quads, quad, 1)
                : i == 2 ? _mm512_insertf32x4(quads, quad, 2) : _mm512_insertf32x4(quads, quad, 3);
    }
    return quads;
}

#define VF_CAN_STREAM 1

SW_INLINE void vf_stream(float *to, vf value)
{
    _mm512_stream_ps(to, value);
}

SW_INLINE void vf_stream_end(void)
{
    _mm_sfence();
}

#endif
