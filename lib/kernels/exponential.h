/* SPDX-License-Identifier: MIT */
/*
 * exponential.h - e^x for x <= 0: vf_exp, and vf_exp_coarse for what is rounded to bf16 afterwards.
 *
 * The usual way, x = n ln 2 + r with |r| <= ln 2 / 2, e^x = 2^n e^r, e^r = 1 + r + r^2 P(r) with P minimax: of degree
 * 4 (3.3e-9) or 2 (5.6e-6). n ln 2 is taken off in two steps of which the first is exact without fused arithmetic:
 * its constant has 16 bits, n seven. Results below e^-80 are zero.
 *
 * AVX-512 has instructions for the fraction of a number and for scaling by 2^n with every special case in them, so
 * there e^x = 2^y, y = x / ln 2 rounded, 2^(y - floor y) = 1 + P: of degree 6 (2e-9) or 3 (8.6e-5). Rounding y costs
 * a relative 2^-24 |x|, as much as rounding x did. Results below 2^-126 are zero between exp_begin() and exp_end().
 *
 * Either way no result is denormal, nor its product with 1/sum: that would cost hundreds of cycles each, and beside a
 * maximum of 1 nothing is lost. NaN stays NaN, -infinity gives 0.
 */
#ifndef SW_KERNELS_EXPONENTIAL_H
#define SW_KERNELS_EXPONENTIAL_H

#include "vector.h"

#if SW_ISA >= 2

typedef unsigned exp_mode;

SW_INLINE exp_mode exp_begin(void)
{
    const exp_mode mode = _mm_getcsr();
    _mm_setcsr(mode | _MM_FLUSH_ZERO_ON);
    return mode;
}

SW_INLINE void exp_end(exp_mode mode)
{
    _mm_setcsr(mode);
}

SW_INLINE vf exp_fraction(vf y)
{
    return _mm512_reduce_ps(y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

SW_INLINE vf vf_exp(vf x)
{
    const vf y = vf_mul(x, vf_set(0x1.715476p+0f)), f = exp_fraction(y);
    vf p = vf_set(0x1.c5417ap-13f);
    p = vf_fma(p, f, vf_set(0x1.46d64ap-10f));
    p = vf_fma(p, f, vf_set(0x1.3d0b92p-7f));
    p = vf_fma(p, f, vf_set(0x1.c68912p-5f));
    p = vf_fma(p, f, vf_set(0x1.ebfd58p-3f));
    p = vf_fma(p, f, vf_set(0x1.62e42cp-1f));
    p = vf_fma(p, f, vf_set(1));
    return _mm512_scalef_ps(p, y);
}

SW_INLINE vf vf_exp_coarse(vf x)
{
    const vf y = vf_mul(x, vf_set(0x1.715476p+0f)), f = exp_fraction(y);
    vf p = vf_set(0x1.3baaa8p-4f);
    p = vf_fma(p, f, vf_set(0x1.d23788p-3f));
    p = vf_fma(p, f, vf_set(0x1.63e65ap-1f));
    p = vf_fma(p, f, vf_set(1));
    return _mm512_scalef_ps(p, y);
}

#else

typedef int exp_mode;

SW_INLINE exp_mode exp_begin(void)
{
    return 0;
}

SW_INLINE void exp_end(exp_mode mode)
{
    (void)mode;
}

SW_INLINE vf exp_shifted(vf x)
{
    return vf_fma(x, vf_set(0x1.715476p+0f), vf_set(VF_SHIFT));
}

SW_INLINE vf exp_rest(vf x, vf shifted)
{
    const vf n = vf_sub(shifted, vf_set(VF_SHIFT));
    return vf_fnma(n, vf_set(0x1.7f7d1cp-20f), vf_fnma(n, vf_set(0x1.62e4p-1f), x));
}

/* 2^n (1 + r + r^2 p). */
SW_INLINE vf exp_joined(vf x, vf shifted, vf r, vf p)
{
    const vf root = vf_fma(vf_mul(r, r), p, r);
    return vf_zero_below(vf_power(vf_add(root, vf_set(1)), shifted), x, vf_set(-80));
}

SW_INLINE vf vf_exp(vf x)
{
    const vf shifted = exp_shifted(x), r = exp_rest(x, shifted);
    vf p = vf_set(0x1.6a1a72p-10f);
    p = vf_fma(p, r, vf_set(0x1.123fc6p-7f));
    p = vf_fma(p, r, vf_set(0x1.555916p-5f));
    p = vf_fma(p, r, vf_set(0x1.55548ap-3f));
    p = vf_fma(p, r, vf_set(0x1.fffffcp-2f));
    return exp_joined(x, shifted, r, p);
}

SW_INLINE vf vf_exp_coarse(vf x)
{
    const vf shifted = exp_shifted(x), r = exp_rest(x, shifted);
    vf p = vf_set(0x1.5215bep-5f);
    p = vf_fma(p, r, vf_set(0x1.5725ccp-3f));
    p = vf_fma(p, r, vf_set(0x1.0006fap-1f));
    return exp_joined(x, shifted, r, p);
}

#endif

#endif
