/* SPDX-License-Identifier: MIT */
/*
 * Softmax of rows of scores with position bias and region mask: e^(v - max v) / sum, v = score + bias (+ mask). A row
 * with a NaN or +infinity, or of nothing but -infinity, becomes NaN, as the formula says.
 *
 * Maximum, exponentials and division wait for each other, so a block of rows goes through each step before the next,
 * and four rows through each together: their maxima and sums are gathered in one go. Windows of 7 x 7 tokens have one
 * column more than whole vectors; where that is so, the last elements of the rows are a vector of their own.
 */
#include <math.h>

#include "exponential.h"
#include "set.h"

#define GROUP 4

/* Tokens of a row that fit the buffer, GROUP rows of them; a block has more rows where they are shorter. */
#define LINE 1024
#define BLOCK 32

/* Tokens of a window of 7 x 7, so common that it has loops of its own, which the compiler unrolls. */
#define SEVEN 49

typedef struct job {
    void *dst;
    const float *scores, *bias;
    size_t stride, bias_stride;
    const int32_t *region; /* where there is a mask                 */
    const int32_t *own;    /* the regions of the rows, where likewise */
    float mask;
    int32_t tokens, rows;
} job;

/* Rows of a block: values, later exponentials, in the order vector, row of the group, lane; and single numbers. */
typedef struct block {
    _Alignas(64) float line[LINE * GROUP];
    float highest[BLOCK], column[BLOCK], sum[BLOCK];
} block;

/* Elements of `line` that a group takes up. */
SW_INLINE int32_t group_size(int32_t tokens)
{
    return (tokens + VF_LANES - 1) / VF_LANES * VF_LANES * GROUP;
}

/* A row's part in a job. */
typedef struct row {
    const float *scores, *bias;
    int32_t own;
} row;

SW_INLINE row row_of(const job *w, int32_t i, bool masked)
{
    return (row){w->scores + (size_t)i * w->stride, w->bias + (size_t)i * w->bias_stride, masked ? w->own[i] : 0};
}

SW_INLINE vf row_values(const job *w, const row *r, int32_t j, bool masked)
{
    const vf v = vf_add(vf_load(r->scores + j), vf_load(r->bias + j));
    return masked ? vf_add_where_differ(v, vf_set(w->mask), vi_load(w->region + j), vi_set(r->own)) : v;
}

/* The last n values, and -infinity after them: neither the maximum nor the sum notices. */
SW_INLINE vf row_last_values(const job *w, const row *r, int32_t j, int n, bool masked)
{
    vf v = vf_add(vf_load_n(r->scores + j, n), vf_load_n(r->bias + j, n));
    if (masked)
        v = vf_add_where_differ(v, vf_set(w->mask), vi_load_n(w->region + j, n), vi_set(r->own));
    return vf_first(v, n, vf_set(-INFINITY));
}

SW_INLINE float row_value(const job *w, const row *r, int32_t j, bool masked)
{
    const float v = r->scores[j] + r->bias[j];
    return masked && w->region[j] != r->own ? v + w->mask : v;
}

SW_INLINE vf exp_typed(vf x, sw_type type)
{
    return type == SW_BF16 ? vf_exp_coarse(x) : vf_exp(x);
}

/* Values and maximum of a group. Rows beyond the last repeat it. */
SW_INLINE void group_values(block *b, const job *w, int32_t tokens, int32_t first, int32_t at, bool masked)
{
    const int32_t whole = tokens - tokens % VF_LANES;
    const int rest = tokens % VF_LANES;
    float *line = b->line + at / GROUP * group_size(tokens);
    row rows[GROUP];
    vf peaks[GROUP];
    for (int k = 0; k < GROUP; k++) {
        rows[k] = row_of(w, first + at + k < w->rows ? first + at + k : w->rows - 1, masked);
        peaks[k] = vf_set(-INFINITY);
    }
    for (int32_t j = 0; j < whole; j += VF_LANES) {
        for (int k = 0; k < GROUP; k++) {
            const vf v = row_values(w, rows + k, j, masked);
            vf_store(line + j * GROUP + k * VF_LANES, v);
            peaks[k] = vf_max(v, peaks[k]);
        }
    }
    if (rest > 1) {
        for (int k = 0; k < GROUP; k++) {
            const vf v = row_last_values(w, rows + k, whole, rest, masked);
            vf_store(line + whole * GROUP + k * VF_LANES, v);
            peaks[k] = vf_max(v, peaks[k]);
        }
    }
    vq highest = vf_peak4(peaks[0], peaks[1], peaks[2], peaks[3]);
    if (rest == 1) {
        const vq column = {row_value(w, rows, whole, masked), row_value(w, rows + 1, whole, masked),
                           row_value(w, rows + 2, whole, masked), row_value(w, rows + 3, whole, masked)};
        memcpy(b->column + at, &column, sizeof column);
        highest = vq_max(column, highest);
    }
    memcpy(b->highest + at, &highest, sizeof highest);
}

/* Exponentials and their sum. */
SW_INLINE void group_exponentials(block *b, int32_t tokens, int32_t at, sw_type type)
{
    const int32_t end = tokens % VF_LANES == 1 ? tokens - 1 : tokens;
    float *line = b->line + at / GROUP * group_size(tokens);
    vf highest[GROUP], sums[GROUP];
    for (int k = 0; k < GROUP; k++) {
        highest[k] = vf_set(b->highest[at + k]);
        sums[k] = vf_set(0);
    }
    for (int32_t j = 0; j < end; j += VF_LANES) {
        for (int k = 0; k < GROUP; k++) {
            float *values = line + j * GROUP + k * VF_LANES;
            const vf e = exp_typed(vf_sub(vf_load(values), highest[k]), type);
            vf_store(values, e);
            sums[k] = vf_add(sums[k], e);
        }
    }
    const vq sum = vf_sum4(sums[0], sums[1], sums[2], sums[3]);
    memcpy(b->sum + at, &sum, sizeof sum);
}

/* The last column of all rows, and what each row is multiplied by instead of the sum. */
SW_INLINE void block_shares(block *b, int32_t tokens, int32_t rows, sw_type type)
{
    for (int32_t i = 0; i < rows; i += VF_LANES) {
        vf sum = vf_load(b->sum + i), column = vf_set(0);
        if (tokens % VF_LANES == 1) {
            column = exp_typed(vf_sub(vf_load(b->column + i), vf_load(b->highest + i)), type);
            sum = vf_add(sum, column);
        }
        const vf share = vf_div(vf_set(1), sum);
        vf_store(b->sum + i, share);
        vf_put(b->column, type, (size_t)i, vf_mul(column, share));
    }
}

SW_INLINE void store_row(void *dst, const block *b, int32_t tokens, int32_t at, sw_type type)
{
    const float *line = b->line + at / GROUP * group_size(tokens) + at % GROUP * VF_LANES;
    const int rest = tokens % VF_LANES;
    const vf share = vf_set(b->sum[at]);
    int32_t j = 0;
    for (; j + 2 * VF_LANES <= tokens; j += 2 * VF_LANES) {
        const vf first = vf_mul(vf_load(line + j * GROUP), share);
        const vf second = vf_mul(vf_load(line + (j + VF_LANES) * GROUP), share);
        vf_put_2(dst, type, (size_t)j, first, second);
    }
    if (j + VF_LANES <= tokens) {
        vf_put(dst, type, (size_t)j, vf_mul(vf_load(line + j * GROUP), share));
        j += VF_LANES;
    }
    if (rest > 1)
        vf_put_n(dst, type, (size_t)j, vf_mul(vf_load(line + j * GROUP), share), rest);
    else if (rest == 1)
        memcpy(vf_at(dst, type, (size_t)j), vf_at_const(b->column, type, (size_t)at), sw_type_size(type));
}

SW_INLINE void softmax_blocks(const job *w, sw_type type, bool masked, int32_t tokens)
{
    block b;
    memset(b.highest, 0, sizeof b - offsetof(block, highest));
    const int32_t fitting = LINE * GROUP / group_size(tokens) * GROUP;
    const int32_t step = fitting < BLOCK ? fitting : BLOCK;
    for (int32_t first = 0; first < w->rows; first += step) {
        const int32_t rows = w->rows - first < step ? w->rows - first : step;
        for (int32_t at = 0; at < rows; at += GROUP)
            group_values(&b, w, tokens, first, at, masked);
        for (int32_t at = 0; at < rows; at += GROUP)
            group_exponentials(&b, tokens, at, type);
        block_shares(&b, tokens, rows, type);
        for (int32_t at = 0; at < rows; at++)
            store_row(vf_at(w->dst, type, (size_t)(first + at) * w->stride), &b, tokens, at, type);
    }
}

/* Rows longer than the buffer compute their exponentials twice. */
SW_INLINE void softmax_long(const job *w, sw_type type, bool masked)
{
    const int32_t whole = w->tokens - w->tokens % VF_LANES;
    const int rest = w->tokens % VF_LANES;
    for (int32_t i = 0; i < w->rows; i++) {
        void *dst = vf_at(w->dst, type, (size_t)i * w->stride);
        const row r = row_of(w, i, masked);
        const vf last = rest > 0 ? row_last_values(w, &r, whole, rest, masked) : vf_set(-INFINITY);
        vf peak = last;
        for (int32_t j = 0; j < whole; j += VF_LANES)
            peak = vf_max(row_values(w, &r, j, masked), peak);
        const vf highest = vf_set(vf_peak(peak));
        const vf last_exp = exp_typed(vf_sub(last, highest), type);
        vf sum = last_exp;
        for (int32_t j = 0; j < whole; j += VF_LANES)
            sum = vf_add(sum, exp_typed(vf_sub(row_values(w, &r, j, masked), highest), type));
        const vf share = vf_set(1 / vf_sum(sum));
        for (int32_t j = 0; j < whole; j += VF_LANES)
            vf_put(dst, type, (size_t)j, vf_mul(exp_typed(vf_sub(row_values(w, &r, j, masked), highest), type), share));
        if (rest > 0)
            vf_put_n(dst, type, (size_t)whole, vf_mul(last_exp, share), rest);
    }
}

SW_INLINE void softmax_typed(const job *w, sw_type type, bool masked)
{
    if (w->tokens == SEVEN)
        softmax_blocks(w, type, masked, SEVEN);
    else if (w->tokens <= LINE)
        softmax_blocks(w, type, masked, w->tokens);
    else
        softmax_long(w, type, masked);
    const size_t padding = (w->stride - (size_t)w->tokens) * sw_type_size(type);
    for (int32_t i = 0; padding > 0 && i < w->rows; i++)
        memset(vf_at(w->dst, type, (size_t)i * w->stride + (size_t)w->tokens), 0, padding);
}

void sw_softmax(void *dst, sw_type type, const float *scores, const float *bias, size_t bias_stride,
                const int32_t *region, float mask, int32_t first, int32_t rows, int32_t tokens, size_t stride)
{
    const job w = {dst, scores, bias, stride, bias_stride, region, region == NULL ? NULL : region + first, mask, tokens,
                   rows};
    const exp_mode mode = exp_begin();
    if (type == SW_F32 && region == NULL)
        softmax_typed(&w, SW_F32, false);
    else if (type == SW_F32)
        softmax_typed(&w, SW_F32, true);
    else if (region == NULL)
        softmax_typed(&w, SW_BF16, false);
    else
        softmax_typed(&w, SW_BF16, true);
    exp_end(mode);
}
