/* SPDX-License-Identifier: MIT */
/*
 * Softmax of a row of scores with position bias and region mask: e^(v - max v) / sum, v = score + bias (+ mask).
 * A row with a NaN or +infinity, or of nothing but -infinity, becomes NaN, as the formula says.
 */
#include <math.h>

#include "exponential.h"
#include "set.h"

/* Rows up to this many tokens keep their exponentials in a buffer on the stack; longer ones compute them twice. */
#define LINE 1024

typedef struct row {
    const float *scores, *bias;
    const int32_t *region; /* NULL: no mask */
    int32_t own;
    float mask;
    int32_t tokens;
} row;

SW_INLINE vf row_values(const row *r, int32_t j)
{
    const vf v = vf_add(vf_load(r->scores + j), vf_load(r->bias + j));
    return r->region == NULL ? v : vf_add_where_differ(v, vf_set(r->mask), vi_load(r->region + j), vi_set(r->own));
}

/* The last n values, and -infinity after them: neither the maximum nor the sum notices. */
SW_INLINE vf row_last_values(const row *r, int32_t j, int n)
{
    const vf v = vf_add(vf_load_n(r->scores + j, n), vf_load_n(r->bias + j, n));
    const vf masked = r->region == NULL ? v : vf_add_where_differ(v, vf_set(r->mask), vi_load_n(r->region + j, n),
                                                                  vi_set(r->own));
    return vf_first(masked, n, vf_set(-INFINITY));
}

SW_INLINE void softmax_row(void *dst, sw_type type, const row *r)
{
    float line[LINE];
    const int32_t whole = r->tokens - r->tokens % VF_LANES;
    const int rest = r->tokens % VF_LANES;
    vf peak = vf_set(-INFINITY);
    for (int32_t j = 0; j < whole; j += VF_LANES) {
        const vf v = row_values(r, j);
        vf_store(line + j, v);
        peak = vf_max(v, peak);
    }
    vf last = vf_set(-INFINITY);
    if (rest > 0) {
        last = row_last_values(r, whole, rest);
        peak = vf_max(last, peak);
    }
    const vf highest = vf_set(vf_peak(peak));
    last = vf_exp(vf_sub(last, highest));
    vf sum = last;
    for (int32_t j = 0; j < whole; j += VF_LANES) {
        const vf e = vf_exp(vf_sub(vf_load(line + j), highest));
        vf_store(line + j, e);
        sum = vf_add(sum, e);
    }
    const vf share = vf_set(1 / vf_sum(sum));
    for (int32_t j = 0; j < whole; j += VF_LANES)
        vf_put(dst, type, (size_t)j, vf_mul(vf_load(line + j), share));
    if (rest > 0)
        vf_put_n(dst, type, (size_t)whole, vf_mul(last, share), rest);
}

SW_INLINE void softmax_long_row(void *dst, sw_type type, const row *r)
{
    const int32_t whole = r->tokens - r->tokens % VF_LANES;
    const int rest = r->tokens % VF_LANES;
    const vf last = rest > 0 ? row_last_values(r, whole, rest) : vf_set(-INFINITY);
    vf peak = last;
    for (int32_t j = 0; j < whole; j += VF_LANES)
        peak = vf_max(row_values(r, j), peak);
    const vf highest = vf_set(vf_peak(peak));
    const vf last_exp = vf_exp(vf_sub(last, highest));
    vf sum = last_exp;
    for (int32_t j = 0; j < whole; j += VF_LANES)
        sum = vf_add(sum, vf_exp(vf_sub(row_values(r, j), highest)));
    const vf share = vf_set(1 / vf_sum(sum));
    for (int32_t j = 0; j < whole; j += VF_LANES)
        vf_put(dst, type, (size_t)j, vf_mul(vf_exp(vf_sub(row_values(r, j), highest)), share));
    if (rest > 0)
        vf_put_n(dst, type, (size_t)whole, vf_mul(last_exp, share), rest);
}

SW_INLINE void softmax_rows(void *dst, sw_type type, const float *scores, const float *bias, size_t bias_stride,
                            const int32_t *region, float mask, int32_t first, int32_t rows, int32_t tokens,
                            size_t stride)
{
    for (int32_t i = 0; i < rows; i++) {
        const row r = {scores + (size_t)i * stride, bias + (size_t)i * bias_stride, region,
                       region == NULL ? 0 : region[first + i], mask, tokens};
        if (tokens <= LINE)
            softmax_row(dst, type, &r);
        else
            softmax_long_row(dst, type, &r);
        memset(vf_at(dst, type, (size_t)tokens), 0, (stride - (size_t)tokens) * sw_type_size(type));
        dst = vf_at(dst, type, stride);
    }
}

void sw_softmax(void *dst, sw_type type, const float *scores, const float *bias, size_t bias_stride,
                const int32_t *region, float mask, int32_t first, int32_t rows, int32_t tokens, size_t stride)
{
    if (type == SW_F32 && region == NULL)
        softmax_rows(dst, SW_F32, scores, bias, bias_stride, NULL, mask, first, rows, tokens, stride);
    else if (type == SW_F32)
        softmax_rows(dst, SW_F32, scores, bias, bias_stride, region, mask, first, rows, tokens, stride);
    else if (region == NULL)
        softmax_rows(dst, SW_BF16, scores, bias, bias_stride, NULL, mask, first, rows, tokens, stride);
    else
        softmax_rows(dst, SW_BF16, scores, bias, bias_stride, region, mask, first, rows, tokens, stride);
}
