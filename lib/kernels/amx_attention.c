/* SPDX-License-Identifier: MIT */
/*
 * Scores, bias, mask, softmax and context of one head of one window, without leaving the first-level cache: 16
 * queries at a time against all keys. Keys are transposed once, values interleaved once, into tiles.
 *
 * Probabilities are not divided by their sum before the second product but after it: 32 channels instead of T keys.
 */
#include <math.h>

#define SW_ISA 2 /* exponential.h */
#include "amx.h"
#include "amx_tiles.h"
#include "exponential.h"

#define TILE 512 /* elements */

/* 32 channels of one token, as one plane or three. */
SW_TILE_INLINE void load_token(__m512i plane[3], const void *tokens, sw_type type, int32_t token)
{
    if (type == SW_BF16) {
        plane[0] = _mm512_loadu_si512((const uint16_t *)tokens + 32 * token);
        return;
    }
    const float *from = (const float *)tokens + 32 * token;
    sw_split(plane, _mm512_loadu_ps(from), _mm512_loadu_ps(from + 16));
}

/* 16 keys from `first` on become a tile per plane; those beyond T are zero. */
SW_TILE_INLINE void transpose_keys(uint16_t *tiles, const sw_amx_attention *a, sw_type type, int32_t first)
{
    __m512i rows[3][16];
    for (int i = 0; i < 16; i++) {
        __m512i plane[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
        if (first + i < a->tokens)
            load_token(plane, a->k, type, first + i);
        for (int p = 0; p < sw_amx_planes(type); p++)
            rows[p][i] = plane[p];
    }
    for (int p = 0; p < sw_amx_planes(type); p++)
        sw_transpose(tiles + p * TILE, rows[p]);
}

/* 32 values from `first` on become two tiles per plane: row p holds values 2p and 2p + 1, channel by channel. */
SW_TILE_INLINE void interleave_values(uint16_t *tiles, const sw_amx_attention *a, sw_type type, int32_t first)
{
    static const uint16_t order[2][32] = {
        {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
         8,  40, 9,  41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47},
        {16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55,
         24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63},
    };
    const __m512i low = _mm512_loadu_si512(order[0]), high = _mm512_loadu_si512(order[1]),
                  zero = _mm512_setzero_si512();
    for (int pair = 0; pair < 16; pair++) {
        __m512i even[3] = {zero, zero, zero}, odd[3] = {zero, zero, zero};
        if (first + 2 * pair < a->tokens)
            load_token(even, a->v, type, first + 2 * pair);
        if (first + 2 * pair + 1 < a->tokens)
            load_token(odd, a->v, type, first + 2 * pair + 1);
        for (int p = 0; p < sw_amx_planes(type); p++) {
            _mm512_store_si512(tiles + 2 * p * TILE + 32 * pair, _mm512_permutex2var_epi16(even[p], low, odd[p]));
            _mm512_store_si512(tiles + (2 * p + 1) * TILE + 32 * pair,
                               _mm512_permutex2var_epi16(even[p], high, odd[p]));
        }
    }
}

SW_TILE_INLINE __m512 exponential(__m512 x, sw_type type)
{
    return type == SW_BF16 ? sw_exp_coarse(x) : vf_exp(x);
}

/* One row of scores becomes probabilities, not yet divided by their sum, which is returned. There are `vectors` of 16
 * keys, an even number. Planes of probabilities are `plane_size` elements apart. */
SW_TILE_INLINE float softmax_row(uint16_t *probabilities, size_t plane_size, float *scores, const float *bias,
                                 const int32_t *region, int32_t own_region, float mask, int32_t vectors, int32_t tokens,
                                 sw_type type)
{
    const __m512 minus_infinity = _mm512_set1_ps(-INFINITY);
    const __m512i own = _mm512_set1_epi32(own_region);
    __m512 peak = minus_infinity;
    for (int32_t i = 0; i < vectors; i++) {
        const int32_t left = tokens - 16 * i;
        const __mmask16 exist = (__mmask16)(left >= 16 ? 0xffff : left > 0 ? (1 << left) - 1 : 0);
        __m512 s = _mm512_add_ps(_mm512_load_ps(scores + 16 * i), _mm512_maskz_loadu_ps(exist, bias + 16 * i));
        if (region != NULL) {
            const __mmask16 apart = _mm512_cmpneq_epi32_mask(own, _mm512_maskz_loadu_epi32(exist, region + 16 * i));
            s = _mm512_mask_add_ps(s, apart, s, _mm512_set1_ps(mask));
        }
        s = _mm512_mask_mov_ps(minus_infinity, exist, s);
        peak = _mm512_max_ps(peak, s);
        _mm512_store_ps(scores + 16 * i, s);
    }
    const __m512 top = _mm512_set1_ps(_mm512_reduce_max_ps(peak));
    __m512 sum = _mm512_setzero_ps();
    for (int32_t i = 0; i < vectors; i += 2) {
        const __m512 low = exponential(_mm512_sub_ps(_mm512_load_ps(scores + 16 * i), top), type);
        const __m512 high = exponential(_mm512_sub_ps(_mm512_load_ps(scores + 16 * i + 16), top), type);
        sum = _mm512_add_ps(sum, _mm512_add_ps(low, high));
        __m512i plane[3];
        if (type == SW_BF16)
            plane[0] = sw_narrow(low, high);
        else
            sw_split(plane, low, high);
        for (int p = 0; p < sw_amx_planes(type); p++)
            _mm512_store_si512(probabilities + (size_t)p * plane_size + 16 * i, plane[p]);
    }
    return _mm512_reduce_add_ps(sum);
}

typedef struct memory {
    uint16_t *keys;          /* [padded / 16][planes] tiles         */
    uint16_t *values;        /* [padded / 32][planes][2] tiles      */
    uint16_t *probabilities; /* [planes][16, padded]                */
    uint16_t *queries;       /* [planes] tiles                      */
    float *scores, *context; /* [16, padded], [16, 32]              */
} memory;

static memory divide(const sw_amx_attention *a, sw_type type, int32_t padded)
{
    char *free = a->scratch;
    const size_t planes = (size_t)sw_amx_planes(type);
    memory m;
    m.keys = (uint16_t *)(void *)free;
    free += (size_t)padded * planes * 64;
    m.values = (uint16_t *)(void *)free;
    free += (size_t)padded * planes * 64;
    m.probabilities = (uint16_t *)(void *)free;
    free += (size_t)padded * planes * 32;
    m.scores = (float *)(void *)free;
    free += (size_t)padded * 64;
    m.queries = (uint16_t *)(void *)free;
    free += planes * 16 * 64;
    m.context = (float *)(void *)free;
    return m;
}

/* Sums 0 and 1 of 16 queries and 32 keys. */
SW_TILE_INLINE void multiply_keys(const sw_amx_attention *a, const memory *m, sw_type type, int32_t first, int32_t key)
{
    const uint16_t *keys = m->keys + (size_t)(key / 16 * sw_amx_planes(type)) * TILE;
    if (type == SW_F32) {
        sw_multiply_six(m->queries, TILE, 0, 64, keys, TILE, 3 * TILE, false);
        return;
    }
    _tile_loadd(4, (const uint16_t *)a->q + 32 * first, 64);
    _tile_loadd(6, keys, 64);
    _tile_loadd(7, keys + TILE, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
}

/* Sums 0 and 1: 16 queries' probabilities of 32 keys times their values. */
SW_TILE_INLINE void multiply_values(const memory *m, sw_type type, int32_t key, int32_t padded)
{
    const uint16_t *values = m->values + (size_t)(key / 32 * sw_amx_planes(type)) * 2 * TILE;
    const size_t row_bytes = (size_t)padded * sizeof(uint16_t);
    if (type == SW_F32) {
        sw_multiply_six(m->probabilities + key, 16 * (size_t)padded, 0, row_bytes, values, 2 * TILE, TILE, false);
        return;
    }
    _tile_loadd(4, m->probabilities + key, row_bytes);
    _tile_loadd(6, values, 64);
    _tile_loadd(7, values + TILE, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
}

SW_TILE_INLINE void store_context(void *context, sw_type type, const float *sums, float sum)
{
    const __m512 factor = _mm512_set1_ps(1.0f / sum);
    const __m512 low = _mm512_mul_ps(_mm512_load_ps(sums), factor),
                 high = _mm512_mul_ps(_mm512_load_ps(sums + 16), factor);
    if (type == SW_BF16) {
        _mm512_storeu_si512(context, sw_narrow(low, high));
    } else {
        _mm512_storeu_ps(context, low);
        _mm512_storeu_ps((float *)context + 16, high);
    }
}

/* Up to 16 queries; `padded` is T rounded up to 32. */
SW_TILE_INLINE void run_queries(const sw_amx_attention *a, const memory *m, sw_type type, int32_t first, int32_t rows,
                                const float *bias, int32_t padded)
{
    for (int32_t r = 0; r < rows && type == SW_F32; r++) {
        __m512i plane[3];
        load_token(plane, a->q, type, first + r);
        for (int p = 0; p < 3; p++)
            _mm512_store_si512(m->queries + p * TILE + 32 * r, plane[p]);
    }
    for (int32_t key = 0; key < padded; key += 32) {
        _tile_zero(0);
        _tile_zero(1);
        multiply_keys(a, m, type, first, key);
        _tile_stored(0, m->scores + key, (size_t)padded * sizeof(float));
        _tile_stored(1, m->scores + key + 16, (size_t)padded * sizeof(float));
    }
    float sums[16];
    for (int32_t r = 0; r < rows; r++)
        sums[r] = softmax_row(m->probabilities + (size_t)r * (size_t)padded, 16 * (size_t)padded,
                              m->scores + (size_t)r * (size_t)padded, bias + (size_t)r * (size_t)a->tokens, a->region,
                              a->region != NULL ? a->region[first + r] : 0, a->mask, padded / 16, a->tokens, type);
    _tile_zero(0);
    _tile_zero(1);
    for (int32_t key = 0; key < padded; key += 32)
        multiply_values(m, type, key, padded);
    _tile_stored(0, m->context, 128);
    _tile_stored(1, m->context + 16, 128);
    for (int32_t r = 0; r < rows; r++)
        store_context((char *)a->context + (size_t)(first + r) * 32 * sw_type_size(type), type, m->context + 32 * r,
                      sums[r]);
}

SW_TILE_INLINE void run_all(const sw_amx_attention *a, sw_type type, int32_t first, int32_t rows, const float *bias,
                            int32_t padded)
{
    const memory m = divide(a, type, padded);
    for (int32_t end = first + rows; first < end; first += 16, bias += 16 * (size_t)a->tokens)
        run_queries(a, &m, type, first, end - first < 16 ? end - first : 16, bias, padded);
}

SW_TILE_INLINE void load_all(const sw_amx_attention *a, sw_type type, int32_t padded)
{
    const memory m = divide(a, type, padded);
    const size_t planes = (size_t)sw_amx_planes(type);
    sw_tiles_configure();
    for (int32_t key = 0; key < padded; key += 16)
        transpose_keys(m.keys + (size_t)(key / 16) * planes * TILE, a, type, key);
    for (int32_t key = 0; key < padded; key += 32)
        interleave_values(m.values + (size_t)(key / 32) * planes * 2 * TILE, a, type, key);
}

static int32_t round_up(int32_t tokens)
{
    return (tokens + 31) / 32 * 32;
}

void sw_amx_attention_load(const sw_amx_attention *a)
{
    if (a->type == SW_BF16)
        load_all(a, SW_BF16, round_up(a->tokens));
    else
        load_all(a, SW_F32, round_up(a->tokens));
}

/* Windows of 7 x 7 and 8 x 8 have code of their own, everything unrolled. */
void sw_amx_attention_queries(const sw_amx_attention *a, int32_t first, int32_t rows, const float *bias)
{
    const int32_t padded = round_up(a->tokens);
    if (a->type == SW_BF16)
        padded == 64 ? run_all(a, SW_BF16, first, rows, bias, 64) : run_all(a, SW_BF16, first, rows, bias, padded);
    else
        padded == 64 ? run_all(a, SW_F32, first, rows, bias, 64) : run_all(a, SW_F32, first, rows, bias, padded);
}
