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
    {
        -7.94153308e-05f, 6.39597129e-05f, 1.42606799e-04f, 2.97093836e-04f, 5.77787166e-04f, 1.04774374e-03f,
        1.76886403e-03f, 2.77462454e-03f, 4.03246337e-03f, 5.40823860e-03f, 6.65346644e-03f, 7.43618333e-03f,
        7.42279439e-03f, 6.39308885e-03f, 4.34553128e-03f, 1.54174330e-03f, -1.54174330e-03f, -4.34553128e-03f,
        -6.39308885e-03f, -7.42279439e-03f, -7.43618333e-03f, -6.65346644e-03f, -5.40823860e-03f, -4.03246337e-03f,
        -2.77462454e-03f, -1.76886403e-03f, -1.04774374e-03f, -5.77787166e-04f, -2.97093836e-04f, -1.42606799e-04f,
        -6.39597129e-05f, -2.68232499e-05f,
    },
    {
        1.56941774e-04f, 7.91353060e-05f, 1.99501864e-04f, 4.71440583e-04f, 1.04448104e-03f, 2.16993316e-03f,
        4.22798315e-03f, 7.72719631e-03f, 1.32484852e-02f, 2.13114960e-02f, 3.21667997e-02f, 4.55602774e-02f,
        6.05597428e-02f, 7.55495861e-02f, 8.84624368e-02f, 9.72277470e-02f, 1.00311234e-01f, 9.71534994e-02f,
        8.83357638e-02f, 7.54053316e-02f, 6.04326441e-02f, 4.54737326e-02f, 3.21279732e-02f, 2.13134119e-02f,
        1.32764454e-02f, 7.76571121e-03f, 4.26542064e-03f, 2.20005537e-03f, 1.06562826e-03f, 4.84715461e-04f,
        2.07054732e-04f, 8.30631116e-05f,
    },
    {
        0.0f, 8.89231446e-05f, 2.33675823e-04f, 5.79031548e-04f, 1.35345018e-03f, 2.98554585e-03f,
        6.21826751e-03f, 1.22360522e-02f, 2.27640033e-02f, 4.00734718e-02f, 6.68189559e-02f, 1.05655333e-01f,
        1.58651383e-01f, 2.26612464e-01f, 3.08512632e-01f, 4.01262466e-01f, 4.99968044e-01f, 5.98679400e-01f,
        6.91444861e-01f, 7.73366080e-01f, 8.41348207e-01f, 8.94360778e-01f, 9.33206794e-01f, 9.59955048e-01f,
        9.77262127e-01f, 9.87784885e-01f, 9.93796777e-01f, 9.97024282e-01f, 9.98652434e-01f, 9.99424216e-01f,
        9.99767982e-01f, 9.99911862e-01f,
    },
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
 * `high`. */
SW_TILE_INLINE void multiply(const uint16_t *a, const uint16_t *b, bool high)
{
    _tile_loadd(6, b, 64);
    _tile_loadd(4, a, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + TILE, 64);
    _tile_dpbf16ps(1, 4, 7);
    if (high) {
        _tile_loadd(5, a + TILE, 64);
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
