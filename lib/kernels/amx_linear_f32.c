/* SPDX-License-Identifier: MIT */
/*
 * Linear layers of float32 operands as products of int8 digits; amx.h says how numbers are written.
 *
 * Products whose digits' places add up to the same power share a sum: four tiles of int32 for 16 x 16 numbers of C. A
 * sum of K products of two digits is below K 2^14, three of them per place: exact for K up to 43690.
 *
 * A strip of W (18 KB per 16 columns of 384) stays in the first-level cache while all rows of A pass by; W is read
 * once, the next strip being fetched meanwhile. Sums become float32 while the tiles are at work on the next ones: the
 * vector units have little else to do.
 */
#include "amx_linear_f32.h"

#include <math.h>

#define SW_ISA 2 /* vector.h */
#include "amx_tiles.h"
#include "gelu_fine.h"

/* A step's digits, 16 rows of 64 int8 each: of the highest place first. */
#define DIGIT 1024
#define STEP (3 * DIGIT)

/* The largest number in units of a row's factor: 127 2^16 + 127 2^8 + 127, less what rounding might add. */
#define LARGEST 8355000.0f
/* Rows whose numbers are all smaller are taken for rows of zeros: their factor has to be a normal number. */
#define SMALLEST 1e-30f

/* ------------------------------------------------------------------------------------------------------------------
 * Digits
 */

/* The factor of a row; NaN where a number of it is not finite, which makes every product NaN. */
SW_TILE_INLINE float factor_of(float largest)
{
    return isfinite(largest) ? (largest < SMALLEST ? SMALLEST : largest) / LARGEST : NAN;
}

SW_TILE_INLINE __m512 inverse_of(float factor)
{
    return _mm512_set1_ps(isfinite(factor) ? 1.0f / factor : 0.0f);
}

/* 64 numbers as three rows of digits. Adding 128 to each digit carries where a digit has to become negative; flipping
 * the top bits takes it away again. */
SW_TILE_INLINE void write_digits(int8_t *digits, const __m512 x[4], __m512 inverse)
{
    static const uint8_t by_place[64] __attribute__((aligned(64))) = {
        0, 4, 8,  12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 1, 5, 9,  13, 17, 21, 25, 29, 33, 37, 41, 45,
        49, 53, 57, 61, 2, 6, 10, 14, 18, 22, 26, 30, 34, 38, 42, 46, 50, 54, 58, 62, 3, 7, 11, 15, 19, 23, 27, 31,
        35, 39, 43, 47, 51, 55, 59, 63,
    };
    const __m512i carry = _mm512_set1_epi32(0x808080), order = _mm512_load_si512(by_place);
    __m512i sorted[4];
    for (int i = 0; i < 4; i++) {
        const __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(x[i], inverse));
        sorted[i] = _mm512_permutexvar_epi8(order, _mm512_xor_si512(_mm512_add_epi32(whole, carry), carry));
    }
    const __m512i low_a = _mm512_shuffle_i32x4(sorted[0], sorted[1], 0x44),
                  low_b = _mm512_shuffle_i32x4(sorted[2], sorted[3], 0x44),
                  high_a = _mm512_shuffle_i32x4(sorted[0], sorted[1], 0xee),
                  high_b = _mm512_shuffle_i32x4(sorted[2], sorted[3], 0xee);
    _mm512_store_si512(digits, _mm512_shuffle_i32x4(high_a, high_b, 0x88));
    _mm512_store_si512(digits + DIGIT, _mm512_shuffle_i32x4(low_a, low_b, 0xdd));
    _mm512_store_si512(digits + 2 * DIGIT, _mm512_shuffle_i32x4(low_a, low_b, 0x88));
}

/* The largest magnitude of a row in `panels` panels. As whole numbers, NaN is the largest of all. */
SW_TILE_INLINE float largest_of(const float *row, size_t stride, int32_t panels)
{
    const __m512i no_sign = _mm512_set1_epi32(0x7fffffff);
    __m512i low = _mm512_setzero_si512(), high = low;
    for (int32_t p = 0; p < panels; p++, row += stride) {
        low = _mm512_max_epu32(low, _mm512_and_si512(no_sign, _mm512_loadu_si512(row)));
        high = _mm512_max_epu32(high, _mm512_and_si512(no_sign, _mm512_loadu_si512(row + 16)));
    }
    const uint32_t bits = _mm512_reduce_max_epu32(_mm512_max_epu32(low, high));
    float largest;
    memcpy(&largest, &bits, sizeof largest);
    return largest;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Weights
 */

/* 16 rows of a chunk of W, [16][stride], become columns of its tiles: four inner columns side by side. */
static void pack_half(int8_t *chunk, const float *w, size_t stride, int32_t width, const float factors[16])
{
    int8_t digits[STEP] __attribute__((aligned(64)));
    for (int32_t first = 0; first < width; first += 64, chunk += STEP) {
        const bool whole = first + 32 < width;
        for (int row = 0; row < 16; row++) {
            const float *from = w + (size_t)row * stride + first;
            const __m512 x[4] = {
                _mm512_loadu_ps(from),
                _mm512_loadu_ps(from + 16),
                whole ? _mm512_loadu_ps(from + 32) : _mm512_setzero_ps(),
                whole ? _mm512_loadu_ps(from + 48) : _mm512_setzero_ps(),
            };
            write_digits(digits + 64 * row, x, inverse_of(factors[row]));
        }
        for (int place = 0; place < 3; place++) {
            __m512i rows[16];
            for (int row = 0; row < 16; row++)
                rows[row] = _mm512_load_si512(digits + place * DIGIT + 64 * row);
            sw_transpose(chunk + place * DIGIT, rows);
        }
    }
}

void sw_amx_pack_f32(void *packed, const float *w, int32_t n, int32_t width, int32_t chunks)
{
    const size_t k = (size_t)width * (size_t)chunks, half_bytes = sw_amx_chunk_bytes(SW_F32, width) / 2;
    for (int32_t half = 0; half < n / 16; half++, w += 16 * k) {
        char *strip = (char *)packed + (size_t)(half / 2) * sw_amx_strip_bytes(SW_F32, width, chunks);
        float factors[16];
        for (int row = 0; row < 16; row++) {
            factors[row] = factor_of(largest_of(w + (size_t)row * k, 32, (int32_t)(k / 32)));
            /* the places of the first sum, 2^16 each */
            ((float *)(void *)strip)[half % 2 * 16 + row] = factors[row] * 0x1p32f;
        }
        for (int32_t chunk = 0; chunk < chunks; chunk++)
            pack_half((int8_t *)strip + sw_amx_chunk_at(SW_F32, width, chunk) + (size_t)(half % 2) * half_bytes,
                      w + (size_t)chunk * (size_t)width, k, width, factors);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Activations
 */

/* Blocks of 16 rows, [block][step][digit][16][64], and each row's factor. */
static void split(int8_t *digits, float *factors, const sw_amx_linear *l, int32_t blocks, int32_t steps)
{
    for (int32_t r = 0; r < 16 * blocks; r++) {
        const float *row = (const float *)l->a + 32 * (size_t)r;
        factors[r] = factor_of(largest_of(row, l->a_stride, l->k_count));
        const __m512 inverse = inverse_of(factors[r]);
        int8_t *to = digits + (size_t)(r / 16 * steps) * STEP + r % 16 * 64;
        for (int32_t step = 0; step < steps; step++, row += 2 * l->a_stride, to += STEP) {
            const bool whole = 2 * step + 1 < l->k_count;
            const __m512 x[4] = {
                _mm512_loadu_ps(row),
                _mm512_loadu_ps(row + 16),
                whole ? _mm512_loadu_ps(row + l->a_stride) : _mm512_setzero_ps(),
                whole ? _mm512_loadu_ps(row + l->a_stride + 16) : _mm512_setzero_ps(),
            };
            write_digits(to, x, inverse);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Products
 */

/* One step into sums 0 to 3, of places 0 to 3 below the highest. The first-level cache is for B, A streams past it. */
SW_TILE_INLINE void multiply(const int8_t *a, const int8_t *b)
{
    _tile_stream_loadd(4, a, 64);
    _tile_loadd(7, b, 64);
    _tile_dpbssd(0, 4, 7);
    _tile_stream_loadd(5, a + DIGIT, 64);
    _tile_dpbssd(1, 5, 7);
    _tile_stream_loadd(6, a + 2 * DIGIT, 64);
    _tile_dpbssd(2, 6, 7);
    _tile_loadd(7, b + DIGIT, 64);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 7);
    _tile_dpbssd(3, 6, 7);
    _tile_loadd(7, b + 2 * DIGIT, 64);
    _tile_dpbssd(2, 4, 7);
    _tile_dpbssd(3, 5, 7);
}

/* Sums that wait to become a block of C. */
typedef struct pending {
    const int32_t *sums; /* [4][16][16]; NULL: none */
    float *c;
    const float *row_factors;
    __m512 column_factors, bias;
} pending;

SW_TILE_INLINE void finish_rows(const pending *p, sw_amx_finish finish, const fine_columns *gelu, int32_t first,
                                int32_t end)
{
    const __m512 place = _mm512_set1_ps(1.0f / 256);
    for (int32_t r = first; r < end; r++) {
        const int32_t *sums = p->sums + 16 * r;
        __m512 value = _mm512_cvtepi32_ps(_mm512_load_si512(sums + 3 * 256));
        for (int i = 2; i >= 0; i--)
            value = _mm512_fmadd_ps(value, place, _mm512_cvtepi32_ps(_mm512_load_si512(sums + i * 256)));
        float *c = p->c + 32 * r;
        const __m512 start = finish == SW_AMX_ADD ? _mm512_add_ps(_mm512_loadu_ps(c), p->bias) : p->bias;
        value = _mm512_fmadd_ps(_mm512_mul_ps(value, p->column_factors), _mm512_set1_ps(p->row_factors[r]), start);
        if (finish == SW_AMX_GELU)
            value = gelu_fine(value, gelu);
        _mm512_storeu_ps(c, value);
    }
}

/* Rows of a panel, each scaled to the length `scale`. */
static void normalise_panel(float *c, int32_t rows, float scale)
{
    for (int32_t r = 0; r < rows; r++, c += 32) {
        const __m512 low = _mm512_loadu_ps(c), high = _mm512_loadu_ps(c + 16);
        const float square = _mm512_reduce_add_ps(_mm512_fmadd_ps(low, low, _mm512_mul_ps(high, high)));
        const __m128 length = _mm_max_ss(_mm_sqrt_ss(_mm_set_ss(square)), _mm_set_ss(1e-12f));
        const __m512 factor = _mm512_broadcastss_ps(_mm_div_ss(_mm_set_ss(scale), length));
        _mm512_storeu_ps(c, _mm512_mul_ps(low, factor));
        _mm512_storeu_ps(c + 16, _mm512_mul_ps(high, factor));
    }
}

SW_TILE_INLINE void run_all(const sw_amx_linear *l, sw_amx_finish finish)
{
    const int32_t blocks = (l->rows + 15) / 16, steps = (l->k_count + 1) / 2;
    int8_t *digits = l->scratch;
    float *factors = (float *)(void *)(digits + (size_t)(blocks * steps) * STEP);
    split(digits, factors, l, blocks, steps);
    sw_tiles_configure();

    int32_t sums[2][4 * 256] __attribute__((aligned(64)));
    const fine_columns gelu = fine_table();
    const int32_t share = (16 + steps - 1) / steps; /* rows that are finished during a step */
    const size_t fetch = (size_t)(STEP / 64 + blocks - 1) / (size_t)blocks; /* lines of the next strip, likewise */
    pending last = {.sums = NULL};
    int32_t turn = 0;
    for (int32_t n = 0; n < 2 * l->n_count; n++) {
        const char *strip = (const char *)l->b + (size_t)(n / 2) * l->b_stride;
        const int8_t *b = (const int8_t *)strip + l->b_at + (size_t)(n % 2 * steps) * STEP;
        const char *next = (const char *)b + (n % 2 == 0 ? (size_t)steps * STEP : l->b_stride - (size_t)steps * STEP);
        const __m512 column_factors = _mm512_loadu_ps((const float *)(const void *)strip + n % 2 * 16);
        const __m512 bias = l->bias != NULL ? _mm512_loadu_ps(l->bias + 16 * n) : _mm512_setzero_ps();
        for (int32_t block = 0; block < blocks; block++) {
            const int8_t *a = digits + (size_t)(block * steps) * STEP;
            int32_t finished = last.sums == NULL ? 16 : 0;
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_zero(3);
            for (int32_t step = 0; step < steps; step++) {
                for (size_t line = 0; line < fetch; line++, next += 64)
                    _mm_prefetch(next, _MM_HINT_T1);
                multiply(a + step * STEP, b + step * STEP);
                if (finished < 16) {
                    const int32_t end = finished + share < 16 ? finished + share : 16;
                    finish_rows(&last, finish, &gelu, finished, end);
                    finished = end;
                }
            }
            int32_t *out = sums[turn];
            turn = 1 - turn;
            _tile_stored(0, out, 64);
            _tile_stored(1, out + 256, 64);
            _tile_stored(2, out + 2 * 256, 64);
            _tile_stored(3, out + 3 * 256, 64);
            last = (pending){.sums = out,
                             .c = (float *)l->c + (size_t)(n / 2) * l->c_stride + block * 16 * 32 + n % 2 * 16,
                             .row_factors = factors + 16 * block,
                             .column_factors = column_factors,
                             .bias = bias};
        }
    }
    if (last.sums != NULL)
        finish_rows(&last, finish, &gelu, 0, 16);
    for (int32_t panel = 0; panel < l->n_count && finish == SW_AMX_NORMALISE; panel++)
        normalise_panel((float *)l->c + (size_t)panel * l->c_stride, l->rows, l->scale[panel]);
}

void sw_amx_linear_run_f32(const sw_amx_linear *l)
{
    switch (l->finish) {
    case SW_AMX_STORE:
    case SW_AMX_NARROW:
        run_all(l, SW_AMX_STORE);
        break;
    case SW_AMX_ADD:
        run_all(l, SW_AMX_ADD);
        break;
    case SW_AMX_GELU:
        run_all(l, SW_AMX_GELU);
        break;
    case SW_AMX_NORMALISE:
        run_all(l, SW_AMX_NORMALISE);
        break;
    }
}
