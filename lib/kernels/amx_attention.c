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
    return type == SW_BF16 ? vf_exp_coarse(x) : vf_exp(x);
}

/* Element r: the largest element, or the sum of the elements, of row r. */
SW_TILE_INLINE __m512 combine(__m512 a, __m512 b, bool sum)
{
    return sum ? _mm512_add_ps(a, b) : _mm512_max_ps(a, b);
}

SW_TILE_INLINE __m512 reduce_rows(const __m512 row[16], bool sum)
{
    __m512 pairs[8], fours[4], eights[2];
    for (int i = 0; i < 8; i++)
        pairs[i] = combine(_mm512_unpacklo_ps(row[2 * i], row[2 * i + 1]),
                           _mm512_unpackhi_ps(row[2 * i], row[2 * i + 1]), sum);
    for (int i = 0; i < 4; i++) {
        const __m512d even = _mm512_castps_pd(pairs[2 * i]), odd = _mm512_castps_pd(pairs[2 * i + 1]);
        fours[i] = combine(_mm512_castpd_ps(_mm512_unpacklo_pd(even, odd)),
                           _mm512_castpd_ps(_mm512_unpackhi_pd(even, odd)), sum);
    }
    /* every group of four elements of fours[i] now stands for rows 4i to 4i + 3 */
    for (int i = 0; i < 2; i++)
        eights[i] = combine(_mm512_shuffle_f32x4(fours[2 * i], fours[2 * i + 1], 0x88),
                            _mm512_shuffle_f32x4(fours[2 * i], fours[2 * i + 1], 0xdd), sum);
    return combine(_mm512_shuffle_f32x4(eights[0], eights[1], 0x88),
                   _mm512_shuffle_f32x4(eights[0], eights[1], 0xdd), sum);
}

/* Scores of up to 16 queries, what becomes of them, and where. */
typedef struct softmax {
    float *scores;           /* [16][padded]                                */
    uint16_t *probabilities; /* [planes][16][padded]                        */
    const float *bias;       /* [rows][tokens]                              */
    const int32_t *region;   /* [tokens], or NULL                           */
    const int32_t *own;      /* regions of the queries                      */
    float mask;
    int32_t rows, tokens, padded;
} softmax;

/* 16 scores of query r, from key `key` on, with bias and mask; those beyond `exist` are minus infinity. */
SW_TILE_INLINE __m512 score_row(const softmax *s, int32_t r, int32_t key, __mmask16 exist)
{
    const __m512 bias = _mm512_maskz_loadu_ps(exist, s->bias + (size_t)r * (size_t)s->tokens + key);
    __m512 sum = _mm512_add_ps(_mm512_load_ps(s->scores + (size_t)r * (size_t)s->padded + key), bias);
    if (s->region != NULL) {
        const __mmask16 apart = _mm512_cmpneq_epi32_mask(_mm512_set1_epi32(s->own[r]),
                                                         _mm512_maskz_loadu_epi32(exist, s->region + key));
        sum = _mm512_mask_add_ps(sum, apart, sum, _mm512_set1_ps(s->mask));
    }
    return exist == 0xffff ? sum : _mm512_mask_mov_ps(_mm512_set1_ps(-INFINITY), exist, sum);
}

/* Scores of all queries with one key. */
SW_TILE_INLINE __m512 score_column(const softmax *s, int32_t key)
{
    const __mmask16 exist = (__mmask16)((1u << s->rows) - 1);
    const __m512i row = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i at = _mm512_mullo_epi32(row, _mm512_set1_epi32(s->padded));
    const __m512i bias_at = _mm512_mullo_epi32(row, _mm512_set1_epi32(s->tokens));
    const __m512 none = _mm512_setzero_ps();
    __m512 sum = _mm512_add_ps(_mm512_mask_i32gather_ps(none, exist, at, s->scores + key, 4),
                                 _mm512_mask_i32gather_ps(none, exist, bias_at, s->bias + key, 4));
    if (s->region != NULL) {
        const __mmask16 apart =
            _mm512_cmpneq_epi32_mask(_mm512_maskz_loadu_epi32(exist, s->own), _mm512_set1_epi32(s->region[key]));
        sum = _mm512_mask_add_ps(sum, apart, sum, _mm512_set1_ps(s->mask));
    }
    return sum;
}

/* 32 probabilities of query r from `key` on. */
SW_TILE_INLINE void store_probabilities(const softmax *s, sw_type type, int32_t r, int32_t key, __m512 low, __m512 high)
{
    __m512i plane[3];
    if (type == SW_BF16)
        plane[0] = sw_narrow(low, high);
    else
        sw_split(plane, low, high);
    for (int p = 0; p < sw_amx_planes(type); p++)
        _mm512_store_si512(s->probabilities + (size_t)((p * 16 + r) * s->padded + key), plane[p]);
}

/* Scores become probabilities, not yet divided by their sums, which are returned. Windows of 7 x 7 have one key more
 * than a multiple of 16: it is computed for all queries at once. */
SW_TILE_INLINE __m512 run_softmax(const softmax *s, sw_type type)
{
    const int32_t whole = s->tokens / 16, rest = s->tokens % 16, vectors = s->padded / 16;
    const __mmask16 tail = (__mmask16)((1u << rest) - 1);
    const __m512 nothing = _mm512_set1_ps(-INFINITY);
    __m512 row[16], last_key = nothing;
    for (int32_t r = 0; r < 16; r++)
        row[r] = nothing;
    for (int32_t r = 0; r < s->rows; r++) {
        float *scores = s->scores + (size_t)r * (size_t)s->padded;
        __m512 peak = nothing;
        for (int32_t i = 0; i < whole; i++) {
            const __m512 x = score_row(s, r, 16 * i, 0xffff);
            _mm512_store_ps(scores + 16 * i, x);
            peak = _mm512_max_ps(peak, x);
        }
        if (rest > 1) {
            const __m512 x = score_row(s, r, 16 * whole, tail);
            _mm512_store_ps(scores + 16 * whole, x);
            peak = _mm512_max_ps(peak, x);
        }
        row[r] = peak;
    }
    __m512 top = reduce_rows(row, false);
    if (rest == 1) {
        last_key = score_column(s, 16 * whole);
        top = _mm512_max_ps(top, last_key);
        last_key = exponential(_mm512_sub_ps(last_key, top), type);
    }
    float tops[16] __attribute__((aligned(64))), last_keys[16] __attribute__((aligned(64)));
    _mm512_store_ps(tops, top);
    _mm512_store_ps(last_keys, last_key);
    for (int32_t r = 0; r < s->rows; r++) {
        const float *scores = s->scores + (size_t)r * (size_t)s->padded;
        const __m512 own_top = _mm512_set1_ps(tops[r]);
        __m512 sum = _mm512_setzero_ps();
        for (int32_t i = 0; i < vectors; i += 2) {
            __m512 half[2];
            for (int h = 0; h < 2; h++) {
                if (i + h < whole || (i + h == whole && rest > 1)) {
                    half[h] = exponential(_mm512_sub_ps(_mm512_load_ps(scores + 16 * (i + h)), own_top), type);
                    sum = _mm512_add_ps(sum, half[h]);
                } else {
                    const bool is_last = i + h == whole && rest == 1;
                    half[h] = is_last ? _mm512_maskz_mov_ps(1, _mm512_set1_ps(last_keys[r])) : _mm512_setzero_ps();
                }
            }
            store_probabilities(s, type, r, 16 * i, half[0], half[1]);
        }
        row[r] = sum;
    }
    const __m512 sums = reduce_rows(row, true);
    return rest == 1 ? _mm512_add_ps(sums, last_key) : sums;
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

/* Up to 16 queries; T and T rounded up to 32 are constants to the compiler where it matters. */
SW_TILE_INLINE void run_queries(const sw_amx_attention *a, const memory *m, sw_type type, int32_t first, int32_t rows,
                                const float *bias, int32_t tokens, int32_t padded)
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
    const softmax soft = {
        .scores = m->scores,
        .probabilities = m->probabilities,
        .bias = bias,
        .region = a->region,
        .own = a->region != NULL ? a->region + first : NULL,
        .mask = a->mask,
        .rows = rows,
        .tokens = tokens,
        .padded = padded,
    };
    float sums[16] __attribute__((aligned(64)));
    _mm512_store_ps(sums, run_softmax(&soft, type));
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
                            int32_t tokens)
{
    const int32_t padded = (tokens + 31) / 32 * 32;
    const memory m = divide(a, type, padded);
    for (int32_t end = first + rows; first < end; first += 16, bias += 16 * (size_t)a->tokens)
        run_queries(a, &m, type, first, end - first < 16 ? end - first : 16, bias, tokens, padded);
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
SW_TILE_INLINE void run_size(const sw_amx_attention *a, sw_type type, int32_t first, int32_t rows, const float *bias)
{
    if (a->tokens == 49)
        run_all(a, type, first, rows, bias, 49);
    else if (a->tokens == 64)
        run_all(a, type, first, rows, bias, 64);
    else
        run_all(a, type, first, rows, bias, a->tokens);
}

void sw_amx_attention_queries(const sw_amx_attention *a, int32_t first, int32_t rows, const float *bias)
{
    const exp_mode mode = exp_begin();
    if (a->type == SW_BF16)
        run_size(a, SW_BF16, first, rows, bias);
    else
        run_size(a, SW_F32, first, rows, bias);
    exp_end(mode);
}
