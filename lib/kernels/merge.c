/* SPDX-License-Identifier: MIT */
/*
 * The gather of patch merging: each row is four rows of the residual stream side by side, or zeros where the map has
 * ended.
 */
#include "set.h"
#include "tile.h"

/* NULL where the quarter reads as zeros. */
typedef struct merge_row {
    const float *quarters[4];
} merge_row;

typedef struct merge {
    merge_row rows[BATCH];
    int32_t count;
} merge;

/* Zeros for a quarter that is absent, in pieces. */
#define PIECE 512
static const float zeros[PIECE];

SW_INLINE bool merge_row_fill(merge_row *row, const float *x, const int32_t *tokens, int32_t channels)
{
    bool complete = true;
    for (int q = 0; q < 4; q++) {
        row->quarters[q] = tokens[q] < 0 ? NULL : x + (size_t)tokens[q] * (size_t)channels;
        complete = complete && tokens[q] >= 0;
    }
    return complete;
}

/* The rows from index on, at most `most`: complete ones, or one that is not, as there is at the map's edge. */
static void merge_collect(merge *m, const float *x, const int32_t *index, int32_t most, int32_t channels)
{
    m->count = 0;
    while (m->count < most) {
        const bool complete = merge_row_fill(m->rows + m->count, x, index + 4 * (size_t)m->count, channels);
        if (complete || m->count == 0)
            m->count++;
        if (!complete)
            break;
    }
}

/* Quarter q of a group's rows; those beyond the last repeat it. */
SW_INLINE void merge_quarter(const float *from[GROUP], const merge *m, int32_t at, int q)
{
    for (int k = 0; k < GROUP; k++)
        from[k] = m->rows[at + k < m->count ? at + k : m->count - 1].quarters[q];
}

static void merge_moments(moments *result, const merge *m, int32_t channels, float eps)
{
    const float inverse = 1 / (4 * (float)channels);
    const float *from[GROUP];
    float absent = 0;
    for (int32_t at = 0; at < m->count; at += GROUP) {
        sums s;
        sums_clear(&s);
        for (int q = 0; q < 4; q++) {
            merge_quarter(from, m, at, q);
            if (from[0] != NULL)
                sums_add(&s, from, channels);
            else
                absent += (float)channels;
        }
        sums_finish(&s, inverse, result, at);
    }
    for (int32_t at = 0; at < m->count; at += GROUP) {
        deviations d;
        deviations_clear(&d);
        for (int q = 0; q < 4; q++) {
            merge_quarter(from, m, at, q);
            if (from[0] != NULL)
                deviations_add(&d, from, channels, result, at);
        }
        deviations_finish(&d, absent, inverse, eps, result, at);
    }
}

static void merge_put(const sw_panels *dst, int32_t row, const merge *m, int32_t k, int32_t channels,
                      const moments *result, const sw_norm *norm)
{
    for (int q = 0; q < 4; q++) {
        const float *from = m->rows[k].quarters[q];
        const int32_t step = from != NULL ? channels : PIECE;
        for (int32_t c = 0; c < channels; c += step) {
            const float *piece = from != NULL ? from : zeros;
            const int32_t n = channels - c < step ? channels - c : step;
            tile_put(dst, row, q * channels + c, piece, n, result, k, norm, piece);
        }
    }
}

SW_INLINE void merge_prefetch(const float *x, const int32_t *tokens, int32_t channels)
{
    for (int q = 0; q < 4; q++) {
        for (int32_t c = 0; tokens[q] >= 0 && c < channels; c += 16)
            __builtin_prefetch(x + (size_t)tokens[q] * (size_t)channels + c);
    }
}

void sw_gather_merge(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
                     const sw_norm *norm)
{
    const int32_t step = channels > BATCH * 64 ? GROUP : batch_rows(4 * channels);
    for (int32_t r = 0; r < rows;) {
        merge m;
        moments result;
        merge_collect(&m, x, index + 4 * (size_t)r, rows - r < step ? rows - r : step, channels);
        if (norm != NULL)
            merge_moments(&result, &m, channels, norm->eps);
        for (int32_t k = 0; k < m.count; k++) {
            if (r + m.count + k < rows)
                merge_prefetch(x, index + 4 * (size_t)(r + m.count + k), channels);
            merge_put(dst, r + k, &m, k, channels, &result, norm);
        }
        r += m.count;
    }
}
