/* SPDX-License-Identifier: MIT */
/*
 * vector_avx2.h - vector.h's operations with AVX2 and FMA: 8 lanes.
 */
#ifndef SW_KERNELS_VECTOR_AVX2_H
#define SW_KERNELS_VECTOR_AVX2_H

#include <immintrin.h>
#include <math.h>
#include <stdbool.h>

#define VF_LANES 8

typedef __m256 vf;
typedef __m256i vi;

/* All bits set in the first n of 8 lanes, n from 0 to 8. */
SW_INLINE __m256i vf_mask(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

SW_INLINE vf vf_set(float value)
{
    return _mm256_set1_ps(value);
}

SW_INLINE vf vf_load(const float *from)
{
    return _mm256_loadu_ps(from);
}

SW_INLINE vf vf_load_n(const float *from, int n)
{
    return _mm256_maskload_ps(from, vf_mask(n));
}

SW_INLINE void vf_store(float *to, vf value)
{
    _mm256_storeu_ps(to, value);
}

SW_INLINE void vf_store_n(float *to, vf value, int n)
{
    _mm256_maskstore_ps(to, vf_mask(n), value);
}

SW_INLINE vf vf_widen(__m128i half)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

SW_INLINE vf vf_load_bf16(const uint16_t *from)
{
    return vf_widen(_mm_loadu_si128((const __m128i *)(const void *)from));
}

/* There are no masked 16-bit loads and stores. */
SW_INLINE vf vf_load_bf16_n(const uint16_t *from, int n)
{
    uint16_t buffer[VF_LANES] = {0};
    for (int i = 0; i < n; i++)
        buffer[i] = from[i];
    return vf_load_bf16(buffer);
}

SW_INLINE __m128i vf_narrow(vf value)
{
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    /* A NaN must not be carried into a number. */
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i kept = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i half = _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 16), kept, nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

SW_INLINE void vf_store_bf16(uint16_t *to, vf value)
{
    _mm_storeu_si128((__m128i *)(void *)to, vf_narrow(value));
}

SW_INLINE void vf_store_bf16_n(uint16_t *to, vf value, int n)
{
    uint16_t buffer[VF_LANES];
    vf_store_bf16(buffer, value);
    for (int i = 0; i < n; i++)
        to[i] = buffer[i];
}

SW_INLINE void vf_store_bf16_2(uint16_t *to, vf first, vf second)
{
    vf_store_bf16(to, first);
    vf_store_bf16(to + VF_LANES, second);
}

SW_INLINE vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

SW_INLINE vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}

SW_INLINE vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

SW_INLINE vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

SW_INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

SW_INLINE vf vf_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

SW_INLINE vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

SW_INLINE vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

SW_INLINE vf vf_abs(vf a)
{
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}

/* Steps that bring the parts of all four vectors side by side: the order is that of each alone. */
SW_INLINE vq vf_sum4(vf a, vf b, vf c, vf d)
{
    const vf ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const vf cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    const vf low = _mm256_shuffle_ps(ab, cd, _MM_SHUFFLE(1, 0, 1, 0));
    const vf high = _mm256_shuffle_ps(ab, cd, _MM_SHUFFLE(3, 2, 3, 2));
    const vf abcd = _mm256_add_ps(low, high);
    return _mm_add_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1));
}

SW_INLINE vq vf_peak4(vf a, vf b, vf c, vf d)
{
    const vf ab = _mm256_max_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
    const vf cd = _mm256_max_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
    const vf low = _mm256_shuffle_ps(ab, cd, _MM_SHUFFLE(1, 0, 1, 0));
    const vf high = _mm256_shuffle_ps(ab, cd, _MM_SHUFFLE(3, 2, 3, 2));
    const vf abcd = _mm256_max_ps(low, high);
    return _mm_max_ps(_mm256_castps256_ps128(abcd), _mm256_extractf128_ps(abcd, 1));
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
    return _mm256_zextps128_ps256(a);
}

SW_INLINE vq vq_of(vf a)
{
    return _mm256_castps256_ps128(a);
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
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(vf_mask(n)));
}

SW_INLINE vf vf_zero_below(vf a, vf x, vf least)
{
    return _mm256_and_ps(_mm256_cmp_ps(x, least, _CMP_NLT_UQ), a);
}

SW_INLINE vf vf_power(vf a, vf shifted)
{
    /* The last bits of the sum are n; its upper ones are shifted out. */
    const __m256i n = _mm256_castps_si256(shifted);
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23)));
}

SW_INLINE vi vi_set(int32_t value)
{
    return _mm256_set1_epi32(value);
}

SW_INLINE vi vi_load(const int32_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

SW_INLINE vi vi_load_n(const int32_t *from, int n)
{
    return _mm256_maskload_epi32(from, vf_mask(n));
}

SW_INLINE vf vf_add_where_differ(vf a, vf b, vi x, vi y)
{
    return _mm256_blendv_ps(_mm256_add_ps(a, b), a, _mm256_castsi256_ps(_mm256_cmpeq_epi32(x, y)));
}

SW_INLINE __m256 vf_two_halves(const float *const from[VF_LANES], int first, int at)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from[first] + at)),
                                _mm_loadu_ps(from[first + 4] + at), 1);
}

/* Four columns of eight rows: the loads bring rows i and i + 4 into one register, so that the shuffles stay within
 * halves. */
SW_INLINE void vf_transpose(vf columns[VF_LANES], const float *const from[VF_LANES])
{
    for (int c = 0; c < VF_LANES; c += 4) {
        const __m256 a = vf_two_halves(from, 0, c), b = vf_two_halves(from, 1, c);
        const __m256 d = vf_two_halves(from, 2, c), e = vf_two_halves(from, 3, c);
        const __m256d ab_low = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
        const __m256d ab_high = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
        const __m256d de_low = _mm256_castps_pd(_mm256_unpacklo_ps(d, e));
        const __m256d de_high = _mm256_castps_pd(_mm256_unpackhi_ps(d, e));
        columns[c] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab_low, de_low));
        columns[c + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab_low, de_low));
        columns[c + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab_high, de_high));
        columns[c + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab_high, de_high));
    }
}

SW_INLINE __m128i vf_twelve_bytes(const uint8_t *from)
{
    int32_t last;
    memcpy(&last, from + 8, sizeof last);
    return _mm_insert_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from), last, 2);
}

SW_INLINE void vf_pixels(vf out[3], const uint8_t *from, ptrdiff_t stride)
{
    const __m256i lines = _mm256_inserti128_si256(_mm256_castsi128_si256(vf_twelve_bytes(from)),
                                                  vf_twelve_bytes(from + stride), 1);
    for (int c = 0; c < 3; c++) {
        /* Every third byte, each as an integer of its own. */
        const int zero = (int)0x80808000u;
        const __m128i order = _mm_setr_epi32(zero | c, zero | (3 + c), zero | (6 + c), zero | (9 + c));
        out[c] = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(lines, _mm256_broadcastsi128_si256(order)));
    }
}

SW_INLINE vf vf_quads(const void *from, ptrdiff_t stride)
{
    const float *first = from, *second = (const float *)(const void *)((const char *)from + stride);
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(first)), _mm_loadu_ps(second), 1);
}

#define VF_CAN_STREAM 1

SW_INLINE void vf_stream(float *to, vf value)
{
    _mm256_stream_ps(to, value);
}

SW_INLINE void vf_stream_end(void)
{
    _mm_sfence();
}

#endif
