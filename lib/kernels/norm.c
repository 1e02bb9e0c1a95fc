/* SPDX-License-Identifier: MIT */
/*
 * Between the residual stream x [tokens, C] and the tiles of a product: gather with LayerNorm, the residual step, and the
 * gather of patch merging. Each collects the rows of its tile that are not padding into groups of four.
 */
#include "row.h"
#include "set.h"

/* How many rows ahead of the one at work the map is asked for: it comes from memory, in an order that no hardware
 * prefetcher guesses. */
#define AHEAD 8

typedef struct group {
    int32_t count;
    int32_t rows[GROUP];  /* of the tile                                       */
    float *tokens[GROUP]; /* of the map; beyond count they repeat the one before */
} group;

SW_INLINE void *panels_at(const sw_panels *panels, int32_t row, int32_t panel)
{
    const size_t at = (size_t)panel * panels->stride + (size_t)row * (size_t)panels->width;
    return vf_at(panels->data, panels->type, at);
}

static void panels_zero(const sw_panels *dst, int32_t row, int32_t channels)
{
    for (int32_t p = 0; p < channels / dst->width; p++)
        row_zero(panels_at(dst, row, p), dst->type, dst->width);
}

SW_INLINE void group_fill(group *g)
{
    for (int k = g->count; k < GROUP; k++)
        g->tokens[k] = g->tokens[k - 1];
}

SW_INLINE void prefetch(const float *x, int32_t channels)
{
    for (int32_t c = 0; c < channels; c += 16)
        __builtin_prefetch(x + c);
}

SW_INLINE void prefetch_ahead(const float *x, const int32_t *index, int32_t row, int32_t rows, int32_t channels)
{
    if (index != NULL && row + AHEAD < rows && index[row + AHEAD] >= 0)
        prefetch(x + (size_t)index[row + AHEAD] * (size_t)channels, channels);
}

/* Columns at .. at + n - 1 of a row of dst, from x. Columns may lie in several panels. */
SW_INLINE void put_typed(const sw_panels *dst, sw_type type, int32_t row, int32_t at, const float *x, int32_t n,
                         const scaling *s, const sw_norm *norm)
{
    int32_t panel = at / dst->width, column = at % dst->width;
    while (n > 0) {
        const int32_t count = dst->width - column < n ? dst->width - column : n;
        void *to = vf_at(panels_at(dst, row, panel), type, (size_t)column);
        if (norm != NULL)
            row_normalise(to, type, x, count, *s, norm->weight + at, norm->bias + at);
        else
            row_copy(to, type, x, SW_F32, count);
        at += count;
        x += count;
        n -= count;
        panel++;
        column = 0;
    }
}

SW_INLINE void put(const sw_panels *dst, int32_t row, int32_t at, const float *x, int32_t n, const scaling *s,
                   const sw_norm *norm)
{
    if (dst->type == SW_F32)
        put_typed(dst, SW_F32, row, at, x, n, s, norm);
    else
        put_typed(dst, SW_BF16, row, at, x, n, s, norm);
}

static void group_put(const sw_panels *dst, const group *g, int32_t channels, const moments *m, const sw_norm *norm)
{
    for (int k = 0; k < g->count; k++) {
        const scaling s = norm != NULL ? scaling_of(m, k) : (scaling){vf_set(0), vf_set(1), vf_set(0)};
        put(dst, g->rows[k], 0, g->tokens[k], channels, &s, norm);
    }
}

static void gather_group(const sw_panels *dst, group *g, int32_t channels, const sw_norm *norm)
{
    moments m;
    group_fill(g);
    if (norm != NULL)
        m = moments_of((const float *const *)g->tokens, channels, 1 / (float)channels, norm->eps);
    group_put(dst, g, channels, &m, norm);
    g->count = 0;
}

void sw_gather(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
               const sw_norm *norm)
{
    group g = {0};
    for (int32_t r = 0; r < rows; r++) {
        prefetch_ahead(x, index, r, rows, channels);
        const int32_t token = index == NULL ? r : index[r];
        if (token < 0) {
            panels_zero(dst, r, channels);
            continue;
        }
        g.rows[g.count] = r;
        g.tokens[g.count++] = (float *)(uintptr_t)(x + (size_t)token * (size_t)channels);
        if (g.count == GROUP)
            gather_group(dst, &g, channels, norm);
    }
    if (g.count > 0)
        gather_group(dst, &g, channels, norm);
}

/* Rows of y go through the two passes of their moments in pieces of at most PIECE elements, a multiple of SUMS_STEP: the
 * order of the sums does not depend on the panels. What is not contiguous float32 is copied. */
#define PIECE 512

static const float *piece_of(const sw_panels *y, int32_t row, int32_t at, int32_t n, float *buffer)
{
    int32_t panel = at / y->width, column = at % y->width;
    if (y->type == SW_F32 && column + n <= y->width)
        return (const float *)panels_at(y, row, panel) + column;
    for (int32_t done = 0; done < n; panel++, column = 0) {
        const int32_t count = y->width - column < n - done ? y->width - column : n - done;
        const void *from = vf_at(panels_at(y, row, panel), y->type, (size_t)column);
        if (y->type == SW_F32)
            row_copy(buffer + done, SW_F32, from, SW_F32, count);
        else
            row_copy(buffer + done, SW_F32, from, SW_BF16, count);
        done += count;
    }
    return buffer;
}

static void pieces_of(const sw_panels *y, const group *g, int32_t at, int32_t n, float buffer[GROUP][PIECE],
                      const float *pieces[GROUP])
{
    for (int k = 0; k < GROUP; k++)
        pieces[k] = k < g->count ? piece_of(y, g->rows[k], at, n, buffer[k]) : pieces[k - 1];
}

static moments moments_of_panels(const sw_panels *y, const group *g, int32_t channels, float eps)
{
    float buffer[GROUP][PIECE];
    const float *pieces[GROUP];
    const float inverse = 1 / (float)channels;
    sums s;
    sums_clear(&s);
    for (int32_t at = 0; at < channels; at += PIECE) {
        const int32_t n = channels - at < PIECE ? channels - at : PIECE;
        pieces_of(y, g, at, n, buffer, pieces);
        sums_add(&s, pieces, n);
    }
    const vq centre = sums_centre(&s, inverse);
    deviations d;
    deviations_clear(&d);
    for (int32_t at = 0; at < channels; at += PIECE) {
        const int32_t n = channels - at < PIECE ? channels - at : PIECE;
        if (channels > PIECE)
            pieces_of(y, g, at, n, buffer, pieces);
        deviations_add(&d, pieces, n, centre);
    }
    return deviations_moments(&d, centre, 0, inverse, eps);
}

/* x += y, or the normalised y. */
SW_INLINE void accumulate_typed(float *x, const void *y, sw_type type, int32_t n, const scaling *s, const float *weight,
                                const float *bias)
{
    int32_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf v = vf_get(y, type, (size_t)i);
        if (weight != NULL)
            v = scaling_apply(s, v, vf_load(weight + i), vf_load(bias + i));
        vf_store(x + i, vf_add(vf_load(x + i), v));
    }
    if (i < n) {
        vf v = vf_get_n(y, type, (size_t)i, n - i);
        if (weight != NULL)
            v = scaling_apply(s, v, vf_load_n(weight + i, n - i), vf_load_n(bias + i, n - i));
        vf_store_n(x + i, vf_add(vf_load_n(x + i, n - i), v), n - i);
    }
}

SW_INLINE void accumulate(float *x, const void *y, sw_type type, int32_t n, const scaling *s, const float *weight,
                          const float *bias)
{
    if (type == SW_F32)
        accumulate_typed(x, y, SW_F32, n, s, weight, bias);
    else
        accumulate_typed(x, y, SW_BF16, n, s, weight, bias);
}

static void accumulate_group(const group *g, const sw_panels *y, int32_t channels, const sw_norm *post)
{
    moments m;
    if (post != NULL)
        m = moments_of_panels(y, g, channels, post->eps);
    for (int k = 0; k < g->count; k++) {
        const scaling s = post != NULL ? scaling_of(&m, k) : (scaling){vf_set(0), vf_set(1), vf_set(0)};
        for (int32_t p = 0, c = 0; c < channels; p++, c += y->width) {
            const void *from = panels_at(y, g->rows[k], p);
            if (post != NULL)
                accumulate(g->tokens[k] + c, from, y->type, y->width, &s, post->weight + c, post->bias + c);
            else
                accumulate(g->tokens[k] + c, from, y->type, y->width, &s, NULL, NULL);
        }
    }
}

static void residual_group(group *g, const sw_panels *y, const sw_norm *post, int32_t channels, const sw_panels *dst,
                           const sw_norm *pre)
{
    accumulate_group(g, y, channels, post);
    if (dst != NULL)
        gather_group(dst, g, channels, pre);
    g->count = 0;
}

void sw_residual(float *x, const int32_t *index, const sw_panels *y, const sw_norm *post, int32_t rows,
                 int32_t channels, const sw_panels *dst, const sw_norm *pre)
{
    group g = {0};
    for (int32_t r = 0; r < rows; r++) {
        prefetch_ahead(x, index, r, rows, channels);
        const int32_t token = index == NULL ? r : index[r];
        if (token < 0) {
            if (dst != NULL)
                panels_zero(dst, r, channels);
            continue;
        }
        g.rows[g.count] = r;
        g.tokens[g.count++] = x + (size_t)token * (size_t)channels;
        if (g.count == GROUP)
            residual_group(&g, y, post, channels, dst, pre);
    }
    if (g.count > 0)
        residual_group(&g, y, post, channels, dst, pre);
}

/* A row of a merge is four rows of the map, NULL where it reads as zeros. */
typedef struct merge_row {
    const float *quarters[4];
} merge_row;

SW_INLINE merge_row merge_row_of(const float *x, const int32_t *tokens, int32_t channels)
{
    merge_row row;
    for (int q = 0; q < 4; q++)
        row.quarters[q] = tokens[q] < 0 ? NULL : x + (size_t)tokens[q] * (size_t)channels;
    return row;
}

/* Of rows that lack the same quarters as the first, which those beyond `count` repeat. */
static moments moments_of_merge(const merge_row *rows, int32_t count, int32_t channels, float eps)
{
    const float inverse = 1 / (4 * (float)channels);
    const float *from[GROUP];
    float zeros = 0;
    sums s;
    sums_clear(&s);
    for (int q = 0; q < 4; q++) {
        if (rows->quarters[q] == NULL) {
            zeros += (float)channels;
            continue;
        }
        for (int k = 0; k < GROUP; k++)
            from[k] = rows[k < count ? k : 0].quarters[q];
        sums_add(&s, from, channels);
    }
    const vq centre = sums_centre(&s, inverse);
    deviations d;
    deviations_clear(&d);
    for (int q = 0; q < 4; q++) {
        if (rows->quarters[q] == NULL)
            continue;
        for (int k = 0; k < GROUP; k++)
            from[k] = rows[k < count ? k : 0].quarters[q];
        deviations_add(&d, from, channels, centre);
    }
    return deviations_moments(&d, centre, zeros, inverse, eps);
}

static void put_merge_row(const sw_panels *dst, int32_t r, const merge_row *row, int32_t channels, const scaling *s,
                          const sw_norm *norm)
{
    static const float zeros[PIECE];
    for (int q = 0; q < 4; q++) {
        if (row->quarters[q] != NULL) {
            put(dst, r, q * channels, row->quarters[q], channels, s, norm);
            continue;
        }
        for (int32_t at = 0; at < channels; at += PIECE)
            put(dst, r, q * channels + at, zeros, channels - at < PIECE ? channels - at : PIECE, s, norm);
    }
}

static void put_merge_rows(const sw_panels *dst, int32_t first, const merge_row *rows, int32_t count, int32_t channels,
                           const sw_norm *norm)
{
    moments m;
    if (norm != NULL)
        m = moments_of_merge(rows, count, channels, norm->eps);
    for (int k = 0; k < count; k++) {
        const scaling s = norm != NULL ? scaling_of(&m, k) : (scaling){vf_set(0), vf_set(1), vf_set(0)};
        put_merge_row(dst, first + k, rows + k, channels, &s, norm);
    }
}

void sw_gather_merge(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
                     const sw_norm *norm)
{
    for (int32_t r = 0; r < rows;) {
        /* Rows with something missing, at the map's edge, go alone. */
        merge_row batch[GROUP];
        int32_t count = 0;
        bool complete = true;
        while (complete && count < GROUP && r + count < rows) {
            const int32_t *tokens = index + 4 * (size_t)(r + count);
            for (int32_t q = 0; q < 4; q++) {
                prefetch_ahead(x, tokens, q, 4 * (rows - r - count), channels);
                complete = complete && tokens[q] >= 0;
            }
            if (complete || count == 0)
                batch[count++] = merge_row_of(x, tokens, channels);
        }
        put_merge_rows(dst, r, batch, count, channels, norm);
        r += count;
    }
}
