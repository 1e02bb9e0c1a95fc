/* SPDX-License-Identifier: MIT */
/*
 * amx_tiles.h - tile configuration, and the vector pieces that the AMX kernels share.
 */
#ifndef SW_KERNELS_AMX_TILES_H
#define SW_KERNELS_AMX_TILES_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SW_TILE_INLINE static inline __attribute__((always_inline, unused))

/* The operand of LDTILECFG: Intel's software developer's manual, volume 1, 18.3. */
typedef struct sw_tile_config {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} sw_tile_config;

_Static_assert(sizeof(sw_tile_config) == 64, "the layout is the processor's");

/* Tiles are used in one way everywhere, all of them whole: 0 to 3 sums, 4 and 5 rows of A, 6 and 7 columns of B. Sums
 * 0 and 1 belong to A in 4, sums 2 and 3 to A in 5. */
SW_TILE_INLINE void sw_tiles_configure(void)
{
    sw_tile_config config;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = 64;
        config.rows[i] = 16;
    }
    _tile_loadconfig(&config);
}

/* Phi(x), the normal distribution, in 32 quadratic pieces over [-4, 4), times x. Phi is off by at most 3.2e-5, far
 * below bf16's resolution; multiplying by x keeps that a relative error near zero. Beyond -4 it is zero. A piece's
 * number is what adding 1.5 * 2^23, rounding down, leaves in the lowest bits. tests/kernels/gelu_tables.py made the
 * pieces. */
typedef struct sw_gelu_table {
    __m512 a0, a1, b0, b1, c0, c1;
} sw_gelu_table;

extern const float sw_amx_gelu_pieces[3][32];

SW_TILE_INLINE sw_gelu_table sw_gelu_table_load(void)
{
    return (sw_gelu_table){
        _mm512_loadu_ps(sw_amx_gelu_pieces[0]), _mm512_loadu_ps(sw_amx_gelu_pieces[0] + 16),
        _mm512_loadu_ps(sw_amx_gelu_pieces[1]), _mm512_loadu_ps(sw_amx_gelu_pieces[1] + 16),
        _mm512_loadu_ps(sw_amx_gelu_pieces[2]), _mm512_loadu_ps(sw_amx_gelu_pieces[2] + 16),
    };
}

SW_TILE_INLINE __m512 sw_gelu(const sw_gelu_table *t, __m512 x)
{
    /* the smaller magnitude, the sign of x: the bounds are inside the first and last piece */
    const __m512 inside = _mm512_range_ps(x, _mm512_set1_ps(0x1.fffffep+1f), 2);
    const __m512i piece = _mm512_castps_si512(_mm512_fmadd_round_ps(
        inside, _mm512_set1_ps(4.0f), _mm512_set1_ps(0x1.8p+23f), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
    const __m512 a = _mm512_permutex2var_ps(t->a0, piece, t->a1);
    const __m512 b = _mm512_permutex2var_ps(t->b0, piece, t->b1);
    const __m512 c = _mm512_permutex2var_ps(t->c0, piece, t->c1);
    return _mm512_mul_ps(x, _mm512_fmadd_ps(_mm512_fmadd_ps(a, inside, b), inside, c));
}

/* 32 float32 numbers as bf16, rounded to nearest even. */
SW_TILE_INLINE __m512i sw_narrow(__m512 low, __m512 high)
{
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* 16 of 32 bf16 numbers as float32. */
SW_TILE_INLINE __m512 sw_widen(__m256i half)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* Rows of 16 groups of 4 bytes become columns: row g of the tile holds group g of each of the 16 rows. */
SW_TILE_INLINE void sw_transpose(void *tile, __m512i r[16])
{
    __m512i t[16], *to = tile;
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
    /* r[4g + c]: column c of every group of four columns, of rows 4g to 4g + 3 */
    for (int c = 0; c < 4; c++) {
        const __m512i low_even = _mm512_shuffle_i32x4(r[c], r[4 + c], 0x88);
        const __m512i low_odd = _mm512_shuffle_i32x4(r[c], r[4 + c], 0xdd);
        const __m512i high_even = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0x88);
        const __m512i high_odd = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0xdd);
        _mm512_store_si512(to + c, _mm512_shuffle_i32x4(low_even, high_even, 0x88));
        _mm512_store_si512(to + 8 + c, _mm512_shuffle_i32x4(low_even, high_even, 0xdd));
        _mm512_store_si512(to + 4 + c, _mm512_shuffle_i32x4(low_odd, high_odd, 0x88));
        _mm512_store_si512(to + 12 + c, _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd));
    }
}

/* 32 numbers as sums of three bf16 numbers each. What is left after rounding is exact. */
SW_TILE_INLINE void sw_split(__m512i plane[3], __m512 low, __m512 high)
{
    for (int i = 0; i < 3; i++) {
        plane[i] = sw_narrow(low, high);
        low = _mm512_sub_ps(low, sw_widen(_mm512_castsi512_si256(plane[i])));
        high = _mm512_sub_ps(high, sw_widen(_mm512_extracti64x4_epi64(plane[i], 1)));
    }
}

 /* The six products of a step of float32 operands into sums 0 to 3 (0 and 1 only, unless `high`). Planes of A are
  * a_plane elements apart, rows 16 to 31 a_high behind rows 0 to 15; planes of B b_plane, columns 16 to 31 b_high
  * behind 0 to 15. Each operand is loaded as seldom as two tiles for it allow. */
SW_TILE_INLINE void sw_multiply_six(const uint16_t *a, size_t a_plane, size_t a_high, size_t a_row_bytes,
                                    const uint16_t *b, size_t b_plane, size_t b_high, bool high)
{
#define SW_LOAD_A(plane)                                                     \
    do {                                                                     \
        _tile_loadd(4, a + (plane) * a_plane, a_row_bytes);                  \
        if (high)                                                            \
            _tile_loadd(5, a + (plane) * a_plane + a_high, a_row_bytes);     \
    } while (0)
#define SW_LOAD_B(plane)                                                     \
    do {                                                                     \
        _tile_loadd(6, b + (plane) * b_plane, 64);                           \
        _tile_loadd(7, b + (plane) * b_plane + b_high, 64);                  \
    } while (0)
#define SW_MULTIPLY()                                                        \
    do {                                                                     \
        _tile_dpbf16ps(0, 4, 6);                                             \
        _tile_dpbf16ps(1, 4, 7);                                             \
        if (high) {                                                          \
            _tile_dpbf16ps(2, 5, 6);                                         \
            _tile_dpbf16ps(3, 5, 7);                                         \
        }                                                                    \
    } while (0)
    SW_LOAD_B(2);
    SW_LOAD_A(0);
    SW_MULTIPLY();
    SW_LOAD_B(1);
    SW_MULTIPLY();
    SW_LOAD_A(1);
    SW_MULTIPLY();
    SW_LOAD_B(0);
    SW_MULTIPLY();
    SW_LOAD_A(2);
    SW_MULTIPLY();
    SW_LOAD_A(0);
    SW_MULTIPLY();
#undef SW_LOAD_A
#undef SW_LOAD_B
#undef SW_MULTIPLY
}

#endif
