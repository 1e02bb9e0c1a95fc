/* SPDX-License-Identifier: MIT */
/*
 * Between the residual stream x [tokens, C] and the tiles of a product: gather with LayerNorm, the residual step, and the
 * gather of patch merging.
 */
#include "row.h"
#include "set.h"

/* How many rows ahead of the one at work the map is asked for: it comes from memory, in an order that no hardware
 * prefetcher guesses. */
#define AHEAD 6

SW_INLINE void *panels_at(const sw_panels *panels, int32_t row, int32_t column)
{
    const int32_t panel = column / panels->width;
    const size_t at = (size_t)panel * panels->stride + (size_t)row * (size_t)panels->width +
                      (size_t)(column - panel * panels->width);
    return vf_at(panels->data, panels->type, at);
}

/* Row `row` of dst becomes columns at .. at + n - 1 of a row, normalised where norm is given. */
SW_INLINE void panels_put_typed(const sw_panels *dst, sw_type type, int32_t row, int32_t at, const float *x, int32_t n,
                                const moments *m, const sw_norm *norm)
{
    while (n > 0) {
        const int32_t left = dst->width - at % dst->width;
        const int32_t count = left < n ? left : n;
        void *to = panels_at(dst, row, at);
        if (norm != NULL)
            row_normalise(to, type, x, count, *m, norm->weight + at, norm->bias + at);
        else
            row_copy(to, type, x, SW_F32, count);
        at += count;
        x += count;
        n -= count;
    }
}

static void panels_put(const sw_panels *dst, int32_t row, int32_t at, const float *x, int32_t n, const moments *m,
                       const sw_norm *norm)
{
    if (dst->type == SW_F32)
        panels_put_typed(dst, SW_F32, row, at, x, n, m, norm);
    else
        panels_put_typed(dst, SW_BF16, row, at, x, n, m, norm);
}

static void panels_zero(const sw_panels *dst, int32_t row, int32_t channels)
{
    for (int32_t c = 0; c < channels; c += dst->width)
        row_zero(panels_at(dst, row, c), dst->type, dst->width);
}

SW_INLINE int32_t token_of(const int32_t *index, int32_t row)
{
    return index == NULL ? row : index[row];
}

SW_INLINE void prefetch_ahead(const float *x, const int32_t *index, int32_t row, int32_t rows, int32_t channels)
{
    if (index != NULL && row + AHEAD < rows && index[row + AHEAD] >= 0)
        row_prefetch(x + (size_t)index[row + AHEAD] * (size_t)channels, channels);
}

void sw_gather(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
               const sw_norm *norm)
{
    const float inverse = 1 / (float)channels;
    for (int32_t r = 0; r < rows; r++) {
        prefetch_ahead(x, index, r, rows, channels);
        const int32_t token = token_of(index, r);
        if (token < 0) {
            panels_zero(dst, r, channels);
            continue;
        }
        const float *from = x + (size_t)token * (size_t)channels;
        moments m = {0, 1, 0};
        if (norm != NULL)
            m = moments_of(from, channels, inverse, norm->eps);
        panels_put(dst, r, 0, from, channels, &m, norm);
    }
}

/* A row of y that is not contiguous float32, as it goes through the two passes of its moments: pieces of at most PIECE
 * elements, a multiple of SUMS_STEP, so that the order of the sums does not depend on the panels. */
#define PIECE 512

SW_INLINE const float *piece_of(const sw_panels *y, int32_t row, int32_t at, int32_t n, float *buffer)
{
    if (y->type == SW_F32 && at % y->width + n <= y->width)
        return panels_at(y, row, at);
    for (int32_t done = 0; done < n;) {
        const int32_t left = y->width - (at + done) % y->width;
        const int32_t count = left < n - done ? left : n - done;
        row_copy(buffer + done, SW_F32, panels_at(y, row, at + done), y->type, count);
        done += count;
    }
    return buffer;
}

static moments moments_of_panels(const sw_panels *y, int32_t row, int32_t channels, float inverse, float eps)
{
    float buffer[PIECE];
    sums s = sums_zero();
    for (int32_t at = 0; at < channels; at += PIECE) {
        const int32_t n = channels - at < PIECE ? channels - at : PIECE;
        sums_add(&s, piece_of(y, row, at, n, buffer), SW_F32, n);
    }
    const float centre = sums_total(&s) * inverse;
    deviations d = {sums_zero(), sums_zero()};
    for (int32_t at = 0; at < channels; at += PIECE) {
        const int32_t n = channels - at < PIECE ? channels - at : PIECE;
        deviations_add(&d, piece_of(y, row, at, n, buffer), SW_F32, n, centre);
    }
    return deviations_moments(&d, centre, inverse, eps);
}

/* x += y, or the normalised y. */
SW_INLINE void accumulate(float *x, const void *y, sw_type type, int32_t n, const moments *m, const float *weight,
                          const float *bias)
{
    const scaling s = scaling_of(*m);
    int32_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf v = vf_get(y, type, (size_t)i);
        if (weight != NULL)
            v = scaling_apply(&s, v, vf_load(weight + i), vf_load(bias + i));
        vf_store(x + i, vf_add(vf_load(x + i), v));
    }
    if (i < n) {
        vf v = vf_get_n(y, type, (size_t)i, n - i);
        if (weight != NULL)
            v = scaling_apply(&s, v, vf_load_n(weight + i, n - i), vf_load_n(bias + i, n - i));
        vf_store_n(x + i, vf_add(vf_load_n(x + i, n - i), v), n - i);
    }
}

static void accumulate_panels(float *x, const sw_panels *y, int32_t row, int32_t channels, float inverse,
                              const sw_norm *post)
{
    moments m = {0, 1, 0};
    if (post != NULL)
        m = moments_of_panels(y, row, channels, inverse, post->eps);
    for (int32_t c = 0; c < channels; c += y->width) {
        const void *from = panels_at(y, row, c);
        const float *weight = post == NULL ? NULL : post->weight + c;
        const float *bias = post == NULL ? NULL : post->bias + c;
        if (y->type == SW_F32)
            accumulate(x + c, from, SW_F32, y->width, &m, weight, bias);
        else
            accumulate(x + c, from, SW_BF16, y->width, &m, weight, bias);
    }
}

void sw_residual(float *x, const int32_t *index, const sw_panels *y, const sw_norm *post, int32_t rows,
                 int32_t channels, const sw_panels *dst, const sw_norm *pre)
{
    const float inverse = 1 / (float)channels;
    for (int32_t r = 0; r < rows; r++) {
        prefetch_ahead(x, index, r, rows, channels);
        const int32_t token = token_of(index, r);
        if (token < 0) {
            if (dst != NULL)
                panels_zero(dst, r, channels);
            continue;
        }
        float *to = x + (size_t)token * (size_t)channels;
        accumulate_panels(to, y, r, channels, inverse, post);
        if (dst != NULL) {
            moments m = {0, 1, 0};
            if (pre != NULL)
                m = moments_of(to, channels, inverse, pre->eps);
            panels_put(dst, r, 0, to, channels, &m, pre);
        }
    }
}

/* One of the four rows of a merge, or a piece of a row of zeros where the map ends. */
static const float zeros[PIECE];

SW_INLINE const float *quarter_piece(const float *x, int32_t token, int32_t at, int32_t channels, int32_t *n)
{
    if (token >= 0) {
        *n = channels;
        return x + (size_t)token * (size_t)channels;
    }
    *n = channels - at < PIECE ? channels - at : PIECE;
    return zeros;
}

static moments moments_of_merge(const float *x, const int32_t tokens[4], int32_t channels, float inverse, float eps)
{
    sums s = sums_zero();
    int absent = 0;
    for (int q = 0; q < 4; q++) {
        if (tokens[q] >= 0)
            sums_add(&s, x + (size_t)tokens[q] * (size_t)channels, SW_F32, channels);
        else
            absent++;
    }
    const float centre = sums_total(&s) * inverse;
    deviations d = {sums_zero(), sums_zero()};
    for (int q = 0; q < 4; q++) {
        if (tokens[q] >= 0)
            deviations_add(&d, x + (size_t)tokens[q] * (size_t)channels, SW_F32, channels, centre);
    }
    /* Equal addends would round the same way each time, so the zeros' deviations come in as one product. */
    const float zeros_count = (float)absent * (float)channels;
    return moments_from(sums_total(&d.plain) - zeros_count * centre,
                        sums_total(&d.squared) + zeros_count * centre * centre, centre, inverse, eps);
}

void sw_gather_merge(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
                     const sw_norm *norm)
{
    const float inverse = 1 / (4 * (float)channels);
    for (int32_t r = 0; r < rows; r++) {
        for (int32_t q = 0; q < 4; q++)
            prefetch_ahead(x, index, 4 * r + q, 4 * rows, channels);
        const int32_t *tokens = index + 4 * (size_t)r;
        moments m = {0, 1, 0};
        if (norm != NULL)
            m = moments_of_merge(x, tokens, channels, inverse, norm->eps);
        for (int q = 0; q < 4; q++) {
            int32_t n;
            for (int32_t at = 0; at < channels; at += n) {
                const float *from = quarter_piece(x, tokens[q], at, channels, &n);
                panels_put(dst, r, q * channels + at, from, n, &m, norm);
            }
        }
    }
}
