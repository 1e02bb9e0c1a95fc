/* SPDX-License-Identifier: MIT */
/*
 * exponential.h - e^x for x <= 0.
 *
 * x = n ln 2 + r, |r| <= ln 2 / 2; e^x = 2^n e^r, e^r = 1 + r + r^2 P(r) with P of degree 4 (minimax, 3.3e-9). n ln 2 is
 * taken off in two steps of which the first is exact without fused arithmetic: its constant has 16 bits, n seven.
 * Below -80 the result is zero: neither it nor its product with 1/sum is ever denormal, which would cost hundreds of
 * cycles each, and beside a maximum of 1 nothing is lost. NaN stays NaN.
 */
#ifndef SW_KERNELS_EXPONENTIAL_H
#define SW_KERNELS_EXPONENTIAL_H

#include "vector.h"

#define VF_EXP_LEAST (-80.0f)

SW_INLINE vf vf_exp(vf x)
{
    const vf n = vf_round(vf_mul(x, vf_set(0x1.715476p+0f)));
    const vf r = vf_fnma(n, vf_set(0x1.7f7d1cp-20f), vf_fnma(n, vf_set(0x1.62e4p-1f), x));
    vf p = vf_set(0x1.6a1a72p-10f);
    p = vf_fma(p, r, vf_set(0x1.123fc6p-7f));
    p = vf_fma(p, r, vf_set(0x1.555916p-5f));
    p = vf_fma(p, r, vf_set(0x1.55548ap-3f));
    p = vf_fma(p, r, vf_set(0x1.fffffcp-2f));
    p = vf_fma(vf_mul(r, r), p, r);
    return vf_zero_below(vf_scale(vf_add(p, vf_set(1)), n), x, vf_set(VF_EXP_LEAST));
}

#endif
