/* SPDX-License-Identifier: MIT */
/*
 * gelu(x) = x Phi(x) = max(x, 0) - t Phi(-t) with t = |x|: the second form loses nothing where x is negative.
 *
 * Phi(-t) = e^(-t^2/2) R(t), where R falls slowly from 1/2 and is a polynomial of degree 8 in q = 1 / (1 + 0.29 t)
 * (minimax over 0 <= t <= 13 in relative error: 4.8e-8).
 */
#include "exponential.h"
#include "set.h"
#include "vector.h"

SW_INLINE vf gelu(vf x)
{
    /* Not infinite: infinity times zero is no number. */
    const vf t = vf_min(vf_set(16), vf_abs(x));
    const vf q = vf_div(vf_set(1), vf_fma(vf_set(0.29f), t, vf_set(1)));
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

SW_INLINE void gelu_typed(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t count)
{
    size_t i = 0;
    for (; i + VF_LANES <= count; i += VF_LANES)
        vf_put(dst, dst_type, i, gelu(vf_get(src, src_type, i)));
    if (i < count)
        vf_put_n(dst, dst_type, i, gelu(vf_get_n(src, src_type, i, (int)(count - i))), (int)(count - i));
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
