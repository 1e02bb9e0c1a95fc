/* SPDX-License-Identifier: MIT */
/*
 * Why not oneDNN for these: its bf16 kernels reach half of what the tiles can do at Swin's sizes, want a bias-only
 * product and then a pass each for GELU, for splitting heads and for normalising. bench/README.md has the figures.
 *
 * Sums of 32 x 32 stay in four tiles. A strip of W (24 KB for 384 columns) stays in the first-level cache while all
 * rows of A, from the second level, pass by; W itself is read once, the next strip being fetched meanwhile.
 */
#include "amx.h"
#include "amx_linear_f32.h"
#include "amx_tiles.h"

/* A strip's tiles of one step of 32 columns of W: columns 0 to 15, then 16 to 31. */
#define STEP 1024
#define TILE 512

const float sw_amx_gelu_pieces[3][32] = {
    {-0x1.936068p-6f, -0x1.1c4284p-4f, -0x1.a24462p-4f, -0x1.e5c21ep-4f, -0x1.e6cad4p-4f, -0x1.b3ba08p-4f,
     -0x1.6259d4p-4f, -0x1.085be2p-4f, -0x1.6c082ap-5f, -0x1.d07d62p-6f, -0x1.135a12p-6f, -0x1.2ff5a8p-7f,
     -0x1.38e40ep-8f, -0x1.2cb17cp-9f, -0x1.0e073ap-10f, -0x1.c58570p-12f, -0x1.000000p-13f, 0x1.0e073ap-10f,
     0x1.2cb17cp-9f, 0x1.38e40ep-8f, 0x1.2ff5a8p-7f, 0x1.135a12p-6f, 0x1.d07d62p-6f, 0x1.6c082ap-5f, 0x1.085be2p-4f,
     0x1.6259d4p-4f, 0x1.b3ba08p-4f, 0x1.e6cad4p-4f, 0x1.e5c21ep-4f, 0x1.a24462p-4f, 0x1.1c4284p-4f, 0x1.936068p-6f},
    {0x1.9adce6p-2f, 0x1.b170c2p-2f, 0x1.d25892p-2f, 0x1.eaf9f2p-2f, 0x1.eae4bep-2f, 0x1.ca91d4p-2f, 0x1.8d5a9cp-2f,
     0x1.3e9e80p-2f, 0x1.d8d090p-3f, 0x1.44eabcp-3f, 0x1.9e1e22p-4f, 0x1.ea19b6p-5f, 0x1.0da11cp-5f, 0x1.142168p-6f,
     0x1.07780cp-7f, 0x1.d4d5bcp-9f, -0x1.effffep-12f, 0x1.07780cp-7f, 0x1.142168p-6f, 0x1.0da11cp-5f, 0x1.ea19b6p-5f,
     0x1.9e1e22p-4f, 0x1.44eabcp-3f, 0x1.d8d090p-3f, 0x1.3e9e80p-2f, 0x1.8d5a9cp-2f, 0x1.ca91d4p-2f, 0x1.eae4bep-2f,
     0x1.eaf9f2p-2f, 0x1.d25892p-2f, 0x1.b170c2p-2f, 0x1.9adce6p-2f},
    {0x1.fff7b6p-2f, 0x1.fd2152p-2f, 0x1.f50276p-2f, 0x1.ec0174p-2f, 0x1.ec58a6p-2f, 0x1.0068eep-1f, 0x1.17729cp-1f,
     0x1.39e7b2p-1f, 0x1.62f56cp-1f, 0x1.8c76b0p-1f, 0x1.b13110p-1f, 0x1.ce284cp-1f, 0x1.e2c12ep-1f, 0x1.f01132p-1f,
     0x1.f7eef0p-1f, 0x1.fc3384p-1f, 0x1.fffffep-15f, 0x1.0221f0p-6f, 0x1.fdd9aap-6f, 0x1.d3ed2cp-5f, 0x1.8ebda8p-4f,
     0x1.3b3bbep-3f, 0x1.ce253ep-3f, 0x1.3a152ap-2f, 0x1.8c309cp-2f, 0x1.d11ac8p-2f, 0x1.ff2e24p-2f, 0x1.09d3aep-1f,
     0x1.09ff46p-1f, 0x1.057ec6p-1f, 0x1.016f58p-1f, 0x1.000426p-1f},
};

/* 32 rows of W: per step of 32 columns, rows 0 to 15 and 16 to 31 become the columns of a tile each. */
static void pack_strip(uint16_t *packed, const float *w, size_t k)
{
    for (size_t step = 0; step < k; step += 32) {
        for (size_t half = 0; half < 32; half += 16, packed += TILE) {
            __m512i rows[16];
            for (size_t row = 0; row < 16; row++) {
                const float *from = w + (half + row) * k + step;
                rows[row] = sw_narrow(_mm512_loadu_ps(from), _mm512_loadu_ps(from + 16));
            }
            sw_transpose(packed, rows);
        }
    }
}

void sw_amx_pack(void *packed, sw_type type, const float *w, int32_t n, int32_t width, int32_t chunks)
{
    if (type == SW_F32) {
        sw_amx_pack_f32(packed, w, n, width, chunks);
        return;
    }
    const size_t k = (size_t)width * (size_t)chunks;
    for (size_t strip = 0; strip < (size_t)n; strip += SW_AMX_WIDTH)
        pack_strip((uint16_t *)packed + strip * k, w + strip * k, k);
}

/* A step of 32 inner columns into the sums of 32 rows and one strip, in tiles 0 to 3; of 16 rows, in 0 and 1, unless
 * `high`. The first-level cache is for the strip: A streams past it, which is worth a fifth of the time. */
SW_TILE_INLINE void multiply(const uint16_t *a, const uint16_t *b, bool high)
{
    _tile_loadd(6, b, 64);
    _tile_stream_loadd(4, a, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + TILE, 64);
    _tile_dpbf16ps(1, 4, 7);
    if (high) {
        _tile_stream_loadd(5, a + TILE, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* Sums that wait to become bf16: [32 or 16 rows][32]. */
typedef struct pending {
    const float *sums; /* NULL: none */
    uint16_t *c;
    int32_t rows;
    float scale;
} pending;

SW_TILE_INLINE void finish_rows(const pending *p, sw_amx_finish finish, const sw_gelu_table *table, int32_t first,
                                int32_t end)
{
    for (int32_t r = first; r < end; r++) {
        __m512 low = _mm512_load_ps(p->sums + 32 * r), high = _mm512_load_ps(p->sums + 32 * r + 16);
        if (finish == SW_AMX_GELU) {
            low = sw_gelu(table, low);
            high = sw_gelu(table, high);
        } else if (finish == SW_AMX_NORMALISE) {
            const float square = _mm512_reduce_add_ps(_mm512_fmadd_ps(low, low, _mm512_mul_ps(high, high)));
            const __m128 length = _mm_max_ss(_mm_sqrt_ss(_mm_set_ss(square)), _mm_set_ss(1e-12f));
            const __m512 factor = _mm512_broadcastss_ps(_mm_div_ss(_mm_set_ss(p->scale), length));
            low = _mm512_mul_ps(low, factor);
            high = _mm512_mul_ps(high, factor);
        }
        _mm512_storeu_si512(p->c + 32 * r, sw_narrow(low, high));
    }
}

/* Columns 0-15 and 16-31 of 32 rows, from the tiles to [rows, 32]. */
SW_TILE_INLINE void store_sums(float *sums, bool high)
{
    _tile_stored(0, sums, 128);
    _tile_stored(1, sums + 16, 128);
    if (high) {
        _tile_stored(2, sums + 16 * 32, 128);
        _tile_stored(3, sums + 16 * 32 + 16, 128);
    }
}

/* Sums begin with what is there, [rows, 32]; or with the bias, two tiles of equal rows; or with zeros. */
SW_TILE_INLINE void start_sums(const float *there, const float *bias, bool high)
{
    if (there != NULL) {
        _tile_loadd(0, there, 128);
        _tile_loadd(1, there + 16, 128);
        if (high) {
            _tile_loadd(2, there + 16 * 32, 128);
            _tile_loadd(3, there + 16 * 32 + 16, 128);
        }
    } else if (bias != NULL) {
        _tile_loadd(0, bias, 0);
        _tile_loadd(1, bias + 16, 0);
        if (high) {
            _tile_loadd(2, bias, 0);
            _tile_loadd(3, bias + 16, 0);
        }
    } else {
        _tile_zero(0);
        _tile_zero(1);
        if (high) {
            _tile_zero(2);
            _tile_zero(3);
        }
    }
}

/* What a strip's blocks have in common. */
typedef struct strip {
    const uint16_t *b;
    const char *next; /* line of the next strip to be fetched */
    size_t fetch;     /* lines to be fetched with each step   */
    const float *bias;
    float *c;         /* STORE and ADD                        */
    uint16_t *narrow; /* the others                           */
    float scale;
} strip;

/* One strip for rows first .. first + 31, or 15 unless `high`. Sums that wait are finished while the tiles are at work
 * on the next ones, which go to `sums`. */
SW_TILE_INLINE void run_block(const sw_amx_linear *l, strip *t, sw_amx_finish finish, int32_t first, bool high,
                              float *sums, pending *last, const sw_gelu_table *table)
{
    const bool wide = finish == SW_AMX_STORE || finish == SW_AMX_ADD;
    const uint16_t *a = (const uint16_t *)l->a + (size_t)first * 32;
    float *c = wide ? t->c + (size_t)first * 32 : NULL;
    const int32_t share = (last->rows + l->k_count - 1) / l->k_count;
    int32_t finished = 0;
    start_sums(finish == SW_AMX_ADD ? c : NULL, t->bias, high);
    for (int32_t step = 0; step < l->k_count; step++) {
        for (size_t line = 0; line < t->fetch; line++, t->next += 64)
            _mm_prefetch(t->next, _MM_HINT_T1);
        multiply(a + (size_t)step * l->a_stride, t->b + (size_t)step * STEP, high);
        if (!wide && finished < last->rows) {
            const int32_t end = finished + share < last->rows ? finished + share : last->rows;
            finish_rows(last, finish, table, finished, end);
            finished = end;
        }
    }
    store_sums(wide ? c : sums, high);
    if (!wide)
        *last = (pending){sums, t->narrow + (size_t)first * 32, high ? 32 : 16, t->scale};
}

/* Rows in multiples of 16: the panels have room for them. */
SW_TILE_INLINE void run_all(const sw_amx_linear *l, sw_amx_finish finish)
{
    float sums[2][32 * 32] __attribute__((aligned(64)));
    const sw_gelu_table table = sw_gelu_table_load();
    const int32_t rows = (l->rows + SW_AMX_ROWS - 1) / SW_AMX_ROWS * SW_AMX_ROWS;
    const size_t blocks = ((size_t)rows + 31) / 32;
    pending last = {.rows = 0};
    int32_t turn = 0;
    sw_tiles_configure();
    for (int32_t i = 0; i < l->n_count; i++) {
        const char *b = (const char *)l->b + (size_t)i * l->b_stride + l->b_at;
        const size_t at = (size_t)i * l->c_stride;
        strip t = {
            .b = (const uint16_t *)(const void *)b,
            .next = b + l->b_stride,
            .fetch = (2 * STEP / 64 + blocks - 1) / blocks,
            .bias = l->bias != NULL ? l->bias + 32 * i : NULL,
            .c = (float *)l->c + at,
            .narrow = (uint16_t *)l->c + at,
            .scale = finish == SW_AMX_NORMALISE ? l->scale[i] : 0,
        };
        int32_t first = 0;
        for (; first + 32 <= rows; first += 32, turn = 1 - turn)
            run_block(l, &t, finish, first, true, sums[turn], &last, &table);
        if (first < rows) {
            run_block(l, &t, finish, first, false, sums[turn], &last, &table);
            turn = 1 - turn;
        }
    }
    if (last.rows > 0)
        finish_rows(&last, finish, &table, 0, last.rows);
}

/* One copy of the code for each way to finish. */
void sw_amx_linear_run(const sw_amx_linear *l)
{
    if (l->type == SW_F32) {
        sw_amx_linear_run_f32(l);
        return;
    }
    switch (l->finish) {
    case SW_AMX_STORE:
        run_all(l, SW_AMX_STORE);
        break;
    case SW_AMX_ADD:
        run_all(l, SW_AMX_ADD);
        break;
    case SW_AMX_NORMALISE:
        run_all(l, SW_AMX_NORMALISE);
        break;
    case SW_AMX_NARROW:
        run_all(l, SW_AMX_NARROW);
        break;
    case SW_AMX_GELU:
        run_all(l, SW_AMX_GELU);
        break;
    }
}

bool sw_amx_built(void)
{
    return true;
}

void sw_amx_release(void)
{
    _tile_release();
}
