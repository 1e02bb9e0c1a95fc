/* SPDX-License-Identifier: MIT */
/*
 * gelu(x) = x Phi(x) = max(x, 0) - t Phi(-t) with t = |x|: the second form loses nothing where x is negative.
 *
 * Phi(-t) = e^(-t^2/2) R(t), where R falls slowly from 1/2 and is a polynomial in q = 1 / (1 + a t), minimax over
 * 0 <= t <= 13 in relative error: of degree 8, a = 0.29 (4.8e-8), or where the result is rounded to bf16 of degree 4,
 * a = 0.45 (1.7e-4).
 */
#include "exponential.h"
#include "set.h"
#include "vector.h"

/* q, of a t that is not infinite: infinity times zero is no number. */
SW_INLINE vf reciprocal(vf t, float a)
{
    return vf_div(vf_set(1), vf_fma(vf_set(a), t, vf_set(1)));
}

SW_INLINE vf gelu_fine(vf x)
{
    const vf t = vf_min(vf_set(16), vf_abs(x)), q = reciprocal(t, 0.29f);
    vf r = vf_set(0.03919196128845215f);
    r = vf_fma(r, q, vf_set(-0.19266487658023834f));
    r = vf_fma(r, q, vf_set(0.30692732334136963f));
    r = vf_fma(r, q, vf_set(-0.15362772345542908f));
    r = vf_fma(r, q, vf_set(0.1885783076286316f));
    r = vf_fma(r, q, vf_set(0.07498780637979507f));
    r = vf_fma(r, q, vf_set(0.12149841338396072f));
    r = vf_fma(r, q, vf_set(0.11508102715015411f));
    r = vf_fma(r, q, vf_set(2.774660606519319e-05f));
    const vf tail = vf_exp(vf_mul(vf_mul(t, vf_set(-0.5f)), t));
    return vf_fnma(vf_mul(t, tail), r, vf_max(vf_set(0), x));
}

SW_INLINE vf gelu_coarse(vf x)
{
    const vf t = vf_min(vf_set(16), vf_abs(x)), q = reciprocal(t, 0.45f);
    vf r = vf_set(-0.11781902611255646f);
    r = vf_fma(r, q, vf_set(0.3116696774959564f));
    r = vf_fma(r, q, vf_set(0.11689484864473343f));
    r = vf_fma(r, q, vf_set(0.18997184932231903f));
    r = vf_fma(r, q, vf_set(-0.0006360516999848187f));
    const vf tail = vf_exp_coarse(vf_mul(vf_mul(t, vf_set(-0.5f)), t));
    return vf_fnma(vf_mul(t, tail), r, vf_max(vf_set(0), x));
}

SW_INLINE vf gelu(vf x, sw_type type)
{
    return type == SW_BF16 ? gelu_coarse(x) : gelu_fine(x);
}

SW_INLINE void gelu_typed(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t count)
{
    size_t i = 0;
    for (; i + VF_LANES <= count; i += VF_LANES)
        vf_put(dst, dst_type, i, gelu(vf_get(src, src_type, i), dst_type));
    if (i < count) {
        const int n = (int)(count - i);
        vf_put_n(dst, dst_type, i, gelu(vf_get_n(src, src_type, i, n), dst_type), n);
    }
}

void sw_gelu(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t count)
{
    if (dst_type == SW_F32 && src_type == SW_F32)
        gelu_typed(dst, SW_F32, src, SW_F32, count);
    else if (dst_type == SW_F32)
        gelu_typed(dst, SW_F32, src, SW_BF16, count);
    else if (src_type == SW_F32)
        gelu_typed(dst, SW_BF16, src, SW_F32, count);
    else
        gelu_typed(dst, SW_BF16, src, SW_BF16, count);
}
