/* SPDX-License-Identifier: MIT */
/*
 * Scores, bias, mask, softmax and context of one head of one window, without leaving the first-level cache: 16 queries at a
 * time against all keys. Keys are transposed once, values interleaved once, into tiles.
 *
 * Probabilities are not divided by their sum before the second product but after it: 32 channels instead of T keys.
 */
#include <math.h>

#include "amx.h"
#include "amx_tiles.h"

#define TILE 512 /* elements */

/* 16 keys of 32 channels become a tile: row p holds channels 2p and 2p + 1 of each key. `keys` of them exist. */
SW_TILE_INLINE void transpose_keys(uint16_t *tile, const uint16_t *k, int32_t keys)
{
    __m512i r[16], t[16];
    for (int i = 0; i < 16; i++)
        r[i] = i < keys ? _mm512_loadu_si512(k + 32 * i) : _mm512_setzero_si512();
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    /* r[4g + c]: column c of every group of four columns, of keys 4g to 4g + 3 */
    for (int c = 0; c < 4; c++) {
        const __m512i low_even = _mm512_shuffle_i32x4(r[c], r[4 + c], 0x88), low_odd = _mm512_shuffle_i32x4(r[c], r[4 + c], 0xdd);
        const __m512i high_even = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0x88);
        const __m512i high_odd = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0xdd);
        _mm512_store_si512(tile + 32 * c, _mm512_shuffle_i32x4(low_even, high_even, 0x88));
        _mm512_store_si512(tile + 32 * (8 + c), _mm512_shuffle_i32x4(low_even, high_even, 0xdd));
        _mm512_store_si512(tile + 32 * (4 + c), _mm512_shuffle_i32x4(low_odd, high_odd, 0x88));
        _mm512_store_si512(tile + 32 * (12 + c), _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd));
    }
}

/* Up to 32 values of 32 channels become two tiles: row p holds values 2p and 2p + 1, channel by channel. */
SW_TILE_INLINE void interleave_values(uint16_t *tiles, const uint16_t *v, int32_t values)
{
    static const uint16_t order[2][32] = {
        {0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62,
         31, 63},
    };
    const __m512i low = _mm512_loadu_si512(order[0]), high = _mm512_loadu_si512(order[1]);
    for (int p = 0; p < 16; p++) {
        const __m512i a = 2 * p < values ? _mm512_loadu_si512(v + 64 * p) : _mm512_setzero_si512();
        const __m512i b = 2 * p + 1 < values ? _mm512_loadu_si512(v + 64 * p + 32) : _mm512_setzero_si512();
        _mm512_store_si512(tiles + 32 * p, _mm512_permutex2var_epi16(a, low, b));
        _mm512_store_si512(tiles + TILE + 32 * p, _mm512_permutex2var_epi16(a, high, b));
    }
}

/* One row of scores becomes probabilities, not yet divided by their sum, which is returned. `vectors` of 16 keys each, an even
 * number; in the last ones, keys beyond T have no bits in `last`. */
SW_TILE_INLINE float softmax_row(uint16_t *probabilities, float *scores, const float *bias, const int32_t *region,
                                 int32_t own_region, float mask, int32_t vectors, int32_t tokens)
{
    const __m512 minus_infinity = _mm512_set1_ps(-INFINITY);
    const __m512i own = _mm512_set1_epi32(own_region);
    __m512 peak = minus_infinity;
    for (int32_t i = 0; i < vectors; i++) {
        const int32_t left = tokens - 16 * i;
        const __mmask16 exist = left >= 16 ? 0xffff : left > 0 ? (__mmask16)((1u << left) - 1) : 0;
        __m512 s = _mm512_add_ps(_mm512_load_ps(scores + 16 * i), _mm512_maskz_loadu_ps(exist, bias + 16 * i));
        if (region != NULL) {
            const __mmask16 apart =
                _mm512_cmpneq_epi32_mask(own, _mm512_maskz_loadu_epi32(exist, region + 16 * i));
            s = _mm512_mask_add_ps(s, apart, s, _mm512_set1_ps(mask));
        }
        s = _mm512_mask_mov_ps(minus_infinity, exist, s);
        peak = _mm512_max_ps(peak, s);
        _mm512_store_ps(scores + 16 * i, s);
    }
    const __m512 top = _mm512_set1_ps(_mm512_reduce_max_ps(peak));
    __m512 sum = _mm512_setzero_ps();
    for (int32_t i = 0; i < vectors; i += 2) {
        const __m512 low = sw_exp_coarse(_mm512_sub_ps(_mm512_load_ps(scores + 16 * i), top));
        const __m512 high = sw_exp_coarse(_mm512_sub_ps(_mm512_load_ps(scores + 16 * i + 16), top));
        sum = _mm512_add_ps(sum, _mm512_add_ps(low, high));
        _mm512_store_si512(probabilities + 16 * i, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
    return _mm512_reduce_add_ps(sum);
}

typedef struct memory {
    uint16_t *keys, *values, *probabilities; /* [padded / 16] and [padded / 16] tiles, [16, padded] */
    float *scores, *context;                 /* [16, padded], [16, 32]                            */
} memory;

static memory divide(const sw_amx_attention *a, int32_t padded)
{
    char *free = a->scratch;
    memory m;
    m.keys = (uint16_t *)(void *)free;
    free += (size_t)padded * 64;
    m.values = (uint16_t *)(void *)free;
    free += (size_t)padded * 64;
    m.scores = (float *)(void *)free;
    free += (size_t)padded * 64;
    m.probabilities = (uint16_t *)(void *)free;
    free += (size_t)padded * 32;
    m.context = (float *)(void *)free;
    return m;
}

/* Up to 16 queries; `padded` is T rounded up to 32. */
SW_TILE_INLINE void run_queries(const sw_amx_attention *a, const memory *m, int32_t first, int32_t rows,
                                const float *bias, int32_t padded)
{
    const size_t row_bytes = (size_t)padded * sizeof(float);
    _tile_loadd(4, a->q + 32 * first, 64);
    for (int32_t key = 0; key < padded; key += 32) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_loadd(6, m->keys + (key / 16) * TILE, 64);
        _tile_loadd(7, m->keys + (key / 16 + 1) * TILE, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_stored(0, m->scores + key, row_bytes);
        _tile_stored(1, m->scores + key + 16, row_bytes);
    }
    float sums[16];
    for (int32_t r = 0; r < rows; r++)
        sums[r] = softmax_row(m->probabilities + (size_t)r * (size_t)padded, m->scores + (size_t)r * (size_t)padded,
                              bias + (size_t)r * (size_t)a->tokens, a->region,
                              a->region != NULL ? a->region[first + r] : 0, a->mask, padded / 16, a->tokens);
    _tile_zero(0);
    _tile_zero(1);
    for (int32_t key = 0; key < padded; key += 32) {
        _tile_loadd(4, m->probabilities + key, (size_t)padded * sizeof(uint16_t));
        _tile_loadd(6, m->values + (key / 16) * TILE, 64);
        _tile_loadd(7, m->values + (key / 16 + 1) * TILE, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
    }
    _tile_stored(0, m->context, 128);
    _tile_stored(1, m->context + 16, 128);
    for (int32_t r = 0; r < rows; r++) {
        const __m512 factor = _mm512_set1_ps(1.0f / sums[r]);
        const __m512 low = _mm512_mul_ps(_mm512_load_ps(m->context + 32 * r), factor);
        const __m512 high = _mm512_mul_ps(_mm512_load_ps(m->context + 32 * r + 16), factor);
        _mm512_storeu_si512(a->context + 32 * (first + r), (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

SW_TILE_INLINE void run_all(const sw_amx_attention *a, int32_t first, int32_t rows, const float *bias, int32_t padded)
{
    const memory m = divide(a, padded);
    for (int32_t end = first + rows; first < end; first += 16, bias += 16 * (size_t)a->tokens)
        run_queries(a, &m, first, end - first < 16 ? end - first : 16, bias, padded);
}

static int32_t round_up(int32_t tokens)
{
    return (tokens + 31) / 32 * 32;
}

void sw_amx_attention_load(const sw_amx_attention *a)
{
    const int32_t padded = round_up(a->tokens);
    const memory m = divide(a, padded);
    sw_tiles_configure(16, 16);
    for (int32_t key = 0; key < padded; key += 16)
        transpose_keys(m.keys + (key / 16) * TILE, a->k + 32 * key, a->tokens - key);
    for (int32_t key = 0; key < padded; key += 32)
        interleave_values(m.values + (key / 16) * TILE, a->v + 32 * key, a->tokens - key);
}

void sw_amx_attention_queries(const sw_amx_attention *a, int32_t first, int32_t rows, const float *bias)
{
    const int32_t padded = round_up(a->tokens);
    if (padded == 64) /* windows of 7 x 7 and 8 x 8: everything unrolled */
        run_all(a, first, rows, bias, 64);
    else
        run_all(a, first, rows, bias, padded);
}
