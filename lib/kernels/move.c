/* SPDX-License-Identifier: MIT */
/*
 * Heads between the interleaved rows of a tile and dense operands: [T, d] out of rows of q, k or v, and the context
 * back.
 */
#include "row.h"
#include "set.h"

/* What |src| is at least, as PyTorch's normalize() has it. */
#define LEAST_LENGTH 1e-12f

/* Up to four rows go through together; those beyond `count` repeat one. No row notices. */
typedef struct heads {
    void *dst[GROUP];
    const void *src[GROUP];
    int32_t count;
} heads;

SW_INLINE vq lengths(const heads *h, sw_type type, int32_t d)
{
    vf squares[GROUP] = {vf_set(0), vf_set(0), vf_set(0), vf_set(0)};
    int32_t i = 0;
    for (; i + VF_LANES <= d; i += VF_LANES) {
        for (int k = 0; k < GROUP; k++) {
            const vf v = vf_get(h->src[k], type, (size_t)i);
            squares[k] = vf_fma(v, v, squares[k]);
        }
    }
    for (int k = 0; i < d && k < GROUP; k++) {
        const vf v = vf_get_n(h->src[k], type, (size_t)i, d - i);
        squares[k] = vf_fma(v, v, squares[k]);
    }
    return vq_sqrt(vf_sum4(squares[0], squares[1], squares[2], squares[3]));
}

SW_INLINE void scale_row(void *dst, sw_type dst_type, const void *src, sw_type src_type, int32_t d, float factor)
{
    const vf f = vf_set(factor);
    int32_t i = 0;
    for (; i + 2 * VF_LANES <= d; i += 2 * VF_LANES) {
        const vf first = vf_mul(vf_get(src, src_type, (size_t)i), f);
        const vf second = vf_mul(vf_get(src, src_type, (size_t)i + VF_LANES), f);
        vf_put_2(dst, dst_type, (size_t)i, first, second);
    }
    for (; i < d; i += VF_LANES) {
        const int n = d - i < VF_LANES ? d - i : VF_LANES;
        vf_put_n(dst, dst_type, (size_t)i, vf_mul(vf_get_n(src, src_type, (size_t)i, n), f), n);
    }
}

/* For a row whose squares overflow: those of much smaller numbers do not, nor do infinities go away. */
static void scale_large_row(void *dst, sw_type dst_type, const void *src, sw_type src_type, int32_t d, float scale)
{
    const float before = 0x1p-80f;
    float sum = 0;
    for (int32_t i = 0; i < d; i++) {
        const float v = vq_of(vf_get_n(src, src_type, (size_t)i, 1))[0] * before;
        sum += v * v;
    }
    const vf b = vf_set(before), after = vf_set(scale / sqrtf(sum));
    for (int32_t i = 0; i < d; i++)
        vf_put_n(dst, dst_type, (size_t)i, vf_mul(vf_mul(vf_get_n(src, src_type, (size_t)i, 1), b), after), 1);
}

/* dst = src / max(|src|, LEAST_LENGTH) * scale. */
SW_INLINE void normalise_heads(heads *h, sw_type dst_type, sw_type src_type, int32_t d, float scale)
{
    for (int k = h->count; k < GROUP; k++)
        h->src[k] = h->src[k - 1];
    const vq length = lengths(h, src_type, d);
    const vq factor = vq_set(scale) / vq_max(vq_set(LEAST_LENGTH), length);
    const bool large = vq_has_infinity(length);
    for (int32_t k = 0; k < h->count; k++) {
        if (large && length[k] == INFINITY)
            scale_large_row(h->dst[k], dst_type, h->src[k], src_type, d, scale);
        else
            scale_row(h->dst[k], dst_type, h->src[k], src_type, d, factor[k]);
    }
    h->count = 0;
}

SW_INLINE void gather_typed(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t src_stride,
                            const int32_t *index, const float *pad, int32_t rows, int32_t d, bool normalise,
                            float scale)
{
    heads present = {.count = 0};
    for (int32_t t = 0; t < rows; t++, dst = vf_at(dst, dst_type, (size_t)d)) {
        const int32_t token = index == NULL ? t : index[t];
        const void *from = token < 0 ? NULL : vf_at_const(src, src_type, (size_t)token * src_stride);
        if (token < 0 && pad == NULL) {
            row_zero(dst, dst_type, d);
        } else if (token < 0 && normalise) {
            heads absent = {.dst = {dst}, .src = {pad}, .count = 1};
            normalise_heads(&absent, dst_type, SW_F32, d, scale);
        } else if (token < 0) {
            row_copy(dst, dst_type, pad, SW_F32, d);
        } else if (!normalise) {
            row_copy(dst, dst_type, from, src_type, d);
        } else {
            present.dst[present.count] = dst;
            present.src[present.count++] = from;
            if (present.count == GROUP)
                normalise_heads(&present, dst_type, src_type, d, scale);
        }
    }
    if (present.count > 0)
        normalise_heads(&present, dst_type, src_type, d, scale);
}

/* Nearly every head has 32 channels, and loops that the compiler unrolls. */
#define USUAL 32

SW_INLINE void gather_sized(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t src_stride,
                            const int32_t *index, const float *pad, int32_t rows, int32_t d, bool normalise,
                            float scale)
{
    if (d == USUAL)
        gather_typed(dst, dst_type, src, src_type, src_stride, index, pad, rows, USUAL, normalise, scale);
    else
        gather_typed(dst, dst_type, src, src_type, src_stride, index, pad, rows, d, normalise, scale);
}

void sw_gather_head(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t src_stride,
                    const int32_t *index, const float *pad, int32_t rows, int32_t d, bool normalise, float scale)
{
    if (dst_type == SW_F32 && src_type == SW_F32)
        gather_sized(dst, SW_F32, src, SW_F32, src_stride, index, pad, rows, d, normalise, scale);
    else if (dst_type == SW_F32)
        gather_sized(dst, SW_F32, src, SW_BF16, src_stride, index, pad, rows, d, normalise, scale);
    else if (src_type == SW_F32)
        gather_sized(dst, SW_BF16, src, SW_F32, src_stride, index, pad, rows, d, normalise, scale);
    else
        gather_sized(dst, SW_BF16, src, SW_BF16, src_stride, index, pad, rows, d, normalise, scale);
}

SW_INLINE void scatter_typed(void *dst, sw_type type, size_t dst_stride, const void *src, const int32_t *index,
                             int32_t rows, int32_t d)
{
    for (int32_t t = 0; t < rows; t++) {
        const int32_t to = index == NULL ? t : index[t];
        if (to >= 0)
            row_copy(vf_at(dst, type, (size_t)to * dst_stride), type,
                     vf_at_const(src, type, (size_t)t * (size_t)d), type, d);
    }
}

void sw_scatter_head(void *dst, sw_type type, size_t dst_stride, const void *src, const int32_t *index, int32_t rows,
                     int32_t d)
{
    if (type == SW_F32)
        scatter_typed(dst, SW_F32, dst_stride, src, index, rows, d);
    else if (d == USUAL)
        scatter_typed(dst, SW_BF16, dst_stride, src, index, rows, USUAL);
    else
        scatter_typed(dst, SW_BF16, dst_stride, src, index, rows, d);
}
