/* SPDX-License-Identifier: MIT */
/*
 * Heads between the interleaved rows of a tile and dense operands: [T, d] out of rows of q, k or v, and the context back.
 */
#include "row.h"
#include "set.h"

/* What |src| is at least, as PyTorch's normalize() has it. */
#define LEAST_LENGTH 1e-12f

/* The sum of squares, in an order that depends on d alone. */
SW_INLINE float squares(const void *src, sw_type type, int32_t d, float factor)
{
    const vf f = vf_set(factor);
    vf sum = vf_set(0);
    int32_t i = 0;
    for (; i + VF_LANES <= d; i += VF_LANES) {
        const vf v = vf_mul(vf_get(src, type, (size_t)i), f);
        sum = vf_fma(v, v, sum);
    }
    if (i < d) {
        const vf v = vf_mul(vf_get_n(src, type, (size_t)i, d - i), f);
        sum = vf_fma(v, v, sum);
    }
    return vf_sum(sum);
}

/* dst = src / max(|src|, LEAST_LENGTH) * scale. */
SW_INLINE void head_normalise(void *dst, sw_type dst_type, const void *src, sw_type src_type, int32_t d, float scale)
{
    float length = sqrtf(squares(src, src_type, d, 1));
    float before = 1;
    if (length == INFINITY) {
        /* The squares have overflown; of much smaller numbers they do not, nor do infinities go away. */
        before = 0x1p-80f;
        length = sqrtf(squares(src, src_type, d, before));
    } else if (length < LEAST_LENGTH) {
        length = LEAST_LENGTH;
    }
    const vf b = vf_set(before), by = vf_set(length), s = vf_set(scale);
    int32_t i = 0;
    for (; i + VF_LANES <= d; i += VF_LANES) {
        const vf v = vf_mul(vf_get(src, src_type, (size_t)i), b);
        vf_put(dst, dst_type, (size_t)i, vf_mul(vf_div(v, by), s));
    }
    if (i < d) {
        const vf v = vf_mul(vf_get_n(src, src_type, (size_t)i, d - i), b);
        vf_put_n(dst, dst_type, (size_t)i, vf_mul(vf_div(v, by), s), d - i);
    }
}

SW_INLINE void head_row(void *dst, sw_type dst_type, const void *src, sw_type src_type, int32_t d, bool normalise,
                        float scale)
{
    if (normalise)
        head_normalise(dst, dst_type, src, src_type, d, scale);
    else
        row_copy(dst, dst_type, src, src_type, d);
}

SW_INLINE void gather_typed(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t src_stride,
                            const int32_t *index, const float *pad, int32_t rows, int32_t d, bool normalise,
                            float scale)
{
    for (int32_t t = 0; t < rows; t++) {
        void *to = vf_at(dst, dst_type, (size_t)t * (size_t)d);
        const int32_t from = index == NULL ? t : index[t];
        if (from >= 0)
            head_row(to, dst_type, vf_at_const(src, src_type, (size_t)from * src_stride), src_type, d, normalise, scale);
        else if (pad != NULL)
            head_row(to, dst_type, pad, SW_F32, d, normalise, scale);
        else
            row_zero(to, dst_type, d);
    }
}

void sw_gather_head(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t src_stride,
                    const int32_t *index, const float *pad, int32_t rows, int32_t d, bool normalise, float scale)
{
    if (dst_type == SW_F32 && src_type == SW_F32)
        gather_typed(dst, SW_F32, src, SW_F32, src_stride, index, pad, rows, d, normalise, scale);
    else if (dst_type == SW_F32)
        gather_typed(dst, SW_F32, src, SW_BF16, src_stride, index, pad, rows, d, normalise, scale);
    else if (src_type == SW_F32)
        gather_typed(dst, SW_BF16, src, SW_F32, src_stride, index, pad, rows, d, normalise, scale);
    else
        gather_typed(dst, SW_BF16, src, SW_BF16, src_stride, index, pad, rows, d, normalise, scale);
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
    else
        scatter_typed(dst, SW_BF16, dst_stride, src, index, rows, d);
}
