/* SPDX-License-Identifier: MIT */
/*
 * Between the residual stream x [tokens, C] and the tiles of a product: gather with LayerNorm, and the residual step.
 * Both collect the rows of a tile that are not padding into batches.
 */
#include "row.h"
#include "set.h"
#include "tile.h"

typedef struct batch {
    int32_t count;
    int32_t rows[BATCH];  /* of the tile                                                              */
    float *tokens[BATCH]; /* of the map; up to a multiple of GROUP the last one is repeated            */
    int32_t next;         /* the tile's row after this batch: whence the next one is asked for meanwhile */
} batch;

typedef struct tile {
    float *x;
    const int32_t *index;
    int32_t rows, channels;
} tile;

SW_INLINE const float *tile_token(const tile *t, int32_t row)
{
    const int32_t token = row >= t->rows ? -1 : t->index == NULL ? row : t->index[row];
    return token < 0 ? NULL : t->x + (size_t)token * (size_t)t->channels;
}

/* The rows from `row` on; those without a token become zero in dst. */
static void collect(batch *b, const tile *t, int32_t row, const sw_panels *dst)
{
    const int32_t most = batch_rows(t->channels);
    b->count = 0;
    for (; row < t->rows && b->count < most; row++) {
        const float *token = tile_token(t, row);
        if (token != NULL) {
            b->rows[b->count] = row;
            b->tokens[b->count++] = (float *)(uintptr_t)token;
        } else if (dst != NULL) {
            tile_zero(dst, row, t->channels);
        }
    }
    for (int32_t k = b->count; k > 0 && k % GROUP != 0; k++)
        b->tokens[k] = b->tokens[k - 1];
    b->next = row;
}

static void put_batch(const sw_panels *dst, const batch *b, const tile *t, const sw_norm *norm)
{
    moments m;
    if (norm != NULL)
        moments_of(&m, (const float *const *)b->tokens, b->count, t->channels, norm->eps);
    for (int32_t k = 0; k < b->count; k++) {
        const float *ahead = tile_token(t, b->next + k);
        tile_put(dst, b->rows[k], 0, b->tokens[k], t->channels, &m, k, norm, ahead != NULL ? ahead : b->tokens[k]);
    }
}

void sw_gather(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
               const sw_norm *norm)
{
    const tile t = {(float *)(uintptr_t)x, index, rows, channels};
    batch b = {.next = 0};
    while (b.next < rows) {
        collect(&b, &t, b.next, dst);
        put_batch(dst, &b, &t, norm);
    }
}

/* Rows of y go through the two passes of their moments in pieces: a panel each where sums come out the same as without
 * panels, which the order of the sums must not depend on. Otherwise PIECE elements, copied. */
#define PIECE 512

typedef struct pieces {
    const sw_panels *y;
    const batch *b;
    int32_t channels, size;
    bool in_place;
    float buffer[GROUP][PIECE];
} pieces;

static const float *piece_of(const sw_panels *y, int32_t row, int32_t at, int32_t n, float *buffer)
{
    int32_t panel = at / y->width, column = at % y->width;
    for (int32_t done = 0; done < n; panel++, column = 0) {
        const int32_t count = y->width - column < n - done ? y->width - column : n - done;
        const void *from = vf_at(tile_at(y, row, panel), y->type, (size_t)column);
        if (y->type == SW_F32)
            row_copy(buffer + done, SW_F32, from, SW_F32, count);
        else
            row_copy(buffer + done, SW_F32, from, SW_BF16, count);
        done += count;
    }
    return buffer;
}

/* Piece `number` of a group's rows, at .. at + GROUP - 1 in the batch. Returns its length. */
SW_INLINE int32_t load_pieces(pieces *p, int32_t at, int32_t number, const float *rows[GROUP])
{
    const int32_t column = number * p->size, rest = p->channels - column, n = rest < p->size ? rest : p->size;
    for (int k = 0; k < GROUP; k++) {
        if (k > 0 && at + k >= p->b->count) /* the first row is always there, which gcc 12 does not see */
            rows[k] = rows[k - 1];
        else if (p->in_place)
            rows[k] = tile_at(p->y, p->b->rows[at + k], number);
        else
            rows[k] = piece_of(p->y, p->b->rows[at + k], column, n, p->buffer[k]);
    }
    return n;
}

static void moments_of_y(moments *m, const sw_panels *y, const batch *b, int32_t channels, float eps)
{
    pieces p;
    p.y = y;
    p.b = b;
    p.channels = channels;
    p.in_place = y->type == SW_F32 && (y->width == channels || y->width % SUMS_STEP == 0);
    p.size = p.in_place ? y->width : PIECE;
    const float *rows[GROUP] = {NULL, NULL, NULL, NULL};
    const float inverse = 1 / (float)channels;
    const int32_t count = (channels + p.size - 1) / p.size;
    for (int32_t at = 0; at < b->count; at += GROUP) {
        sums s;
        sums_clear(&s);
        for (int32_t i = 0; i < count; i++) {
            const int32_t n = load_pieces(&p, at, i, rows);
            sums_add(&s, rows, n);
        }
        sums_finish(&s, inverse, m, at);
        deviations d;
        deviations_clear(&d);
        for (int32_t i = 0; i < count; i++) {
            const int32_t n = count > 1 ? load_pieces(&p, at, i, rows) : channels;
            deviations_add(&d, rows, n, m, at);
        }
        deviations_finish(&d, 0, inverse, eps, m, at);
    }
}

/* x += y, or the normalised y. */
SW_INLINE void add_typed(float *x, const void *y, sw_type type, int32_t n, const scaling *s, const float *weight,
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

SW_INLINE void add(float *x, const void *y, sw_type type, int32_t n, const scaling *s, const float *weight,
                   const float *bias)
{
    if (type == SW_F32)
        add_typed(x, y, SW_F32, n, s, weight, bias);
    else
        add_typed(x, y, SW_BF16, n, s, weight, bias);
}

static void add_batch(const batch *b, const tile *t, const sw_panels *y, const sw_norm *post, bool prefetch)
{
    moments m;
    if (post != NULL)
        moments_of_y(&m, y, b, t->channels, post->eps);
    for (int32_t k = 0; k < b->count; k++) {
        const scaling s = post != NULL ? scaling_of(&m, k) : scaling_none();
        const float *ahead = prefetch ? tile_token(t, b->next + k) : NULL;
        for (int32_t c = 0; ahead != NULL && c < t->channels; c += 16)
            __builtin_prefetch(ahead + c);
        for (int32_t p = 0, c = 0; c < t->channels; p++, c += y->width) {
            const void *from = tile_at(y, b->rows[k], p);
            if (post != NULL)
                add(b->tokens[k] + c, from, y->type, y->width, &s, post->weight + c, post->bias + c);
            else
                add(b->tokens[k] + c, from, y->type, y->width, &s, NULL, NULL);
        }
    }
}

void sw_residual(float *x, const int32_t *index, const sw_panels *y, const sw_norm *post, int32_t rows,
                 int32_t channels, const sw_panels *dst, const sw_norm *pre)
{
    const tile t = {x, index, rows, channels};
    batch b = {.next = 0};
    while (b.next < rows) {
        collect(&b, &t, b.next, dst);
        add_batch(&b, &t, y, post, dst == NULL || pre == NULL);
        if (dst != NULL)
            put_batch(dst, &b, &t, pre);
    }
}
