/* SPDX-License-Identifier: MIT */
/*
 * row.h - mean and variance of a row, and the row normalised by them.
 *
 * Two passes. The first gives a centre, the mean but for rounding. The second sums deviations from the centre as well as
 * their squares, so that what the centre lacks is known and the result is good even where mean >> deviation:
 *
 *      mean = centre + delta      (x - mean) / sqrt(variance + eps) = (x - centre) * scale + shift
 */
#ifndef SW_KERNELS_ROW_H
#define SW_KERNELS_ROW_H

#include <math.h>

#include "kernels.h"
#include "vector.h"

/* Four accumulators each hide the latency of the addition. */
typedef struct sums {
    vf lane[4];
} sums;

typedef struct deviations {
    sums plain, squared;
} deviations;

typedef struct moments {
    float centre, scale, shift;
} moments;

SW_INLINE sums sums_zero(void)
{
    return (sums){{vf_set(0), vf_set(0), vf_set(0), vf_set(0)}};
}

SW_INLINE float sums_total(const sums *s)
{
    return vf_sum(vf_add(vf_add(s->lane[0], s->lane[1]), vf_add(s->lane[2], s->lane[3])));
}

/* A row may come in several calls; the order of the sum is that of one call where all but the last have a multiple of
 * SUMS_STEP elements. */
#define SUMS_STEP (4 * VF_LANES)

SW_INLINE void sums_add(sums *s, const void *x, sw_type type, int32_t n)
{
    int32_t i = 0;
    for (; i + SUMS_STEP <= n; i += SUMS_STEP) {
        for (int k = 0; k < 4; k++)
            s->lane[k] = vf_add(s->lane[k], vf_get(x, type, (size_t)(i + k * VF_LANES)));
    }
    for (; i + VF_LANES <= n; i += VF_LANES)
        s->lane[0] = vf_add(s->lane[0], vf_get(x, type, (size_t)i));
    if (i < n)
        s->lane[1] = vf_add(s->lane[1], vf_get_n(x, type, (size_t)i, n - i));
}

SW_INLINE void deviate(sums *plain, sums *squared, int k, vf deviation)
{
    plain->lane[k] = vf_add(plain->lane[k], deviation);
    squared->lane[k] = vf_fma(deviation, deviation, squared->lane[k]);
}

SW_INLINE void deviations_add(deviations *d, const void *x, sw_type type, int32_t n, float centre)
{
    const vf c = vf_set(centre);
    int32_t i = 0;
    for (; i + SUMS_STEP <= n; i += SUMS_STEP) {
        for (int k = 0; k < 4; k++)
            deviate(&d->plain, &d->squared, k, vf_sub(vf_get(x, type, (size_t)(i + k * VF_LANES)), c));
    }
    for (; i + VF_LANES <= n; i += VF_LANES)
        deviate(&d->plain, &d->squared, 0, vf_sub(vf_get(x, type, (size_t)i), c));
    if (i < n) {
        const vf last = vf_sub(vf_get_n(x, type, (size_t)i, n - i), c);
        deviate(&d->plain, &d->squared, 1, vf_first(last, n - i, vf_set(0)));
    }
}

/* From the sums of the deviations and of their squares; `inverse` is 1 / the number of elements. */
SW_INLINE moments moments_from(float plain, float squared, float centre, float inverse, float eps)
{
    const float delta = plain * inverse;
    float variance = squared * inverse - delta * delta;
    if (variance < 0)
        variance = 0;
    const float scale = 1 / sqrtf(variance + eps);
    return (moments){centre, scale, -delta * scale};
}

SW_INLINE moments deviations_moments(const deviations *d, float centre, float inverse, float eps)
{
    return moments_from(sums_total(&d->plain), sums_total(&d->squared), centre, inverse, eps);
}

SW_INLINE moments moments_of(const float *x, int32_t n, float inverse, float eps)
{
    sums s = sums_zero();
    sums_add(&s, x, SW_F32, n);
    const float centre = sums_total(&s) * inverse;
    deviations d = {sums_zero(), sums_zero()};
    deviations_add(&d, x, SW_F32, n, centre);
    return deviations_moments(&d, centre, inverse, eps);
}

typedef struct scaling {
    vf centre, scale, shift;
} scaling;

SW_INLINE scaling scaling_of(moments m)
{
    return (scaling){vf_set(m.centre), vf_set(m.scale), vf_set(m.shift)};
}

SW_INLINE vf scaling_apply(const scaling *s, vf x, vf weight, vf bias)
{
    return vf_fma(vf_fma(vf_sub(x, s->centre), s->scale, s->shift), weight, bias);
}

/* dst = the normalised x. */
SW_INLINE void row_normalise(void *dst, sw_type type, const float *x, int32_t n, moments m, const float *weight,
                             const float *bias)
{
    const scaling s = scaling_of(m);
    int32_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_put(dst, type, (size_t)i, scaling_apply(&s, vf_load(x + i), vf_load(weight + i), vf_load(bias + i)));
    if (i < n) {
        const vf value = scaling_apply(&s, vf_load_n(x + i, n - i), vf_load_n(weight + i, n - i),
                                       vf_load_n(bias + i, n - i));
        vf_put_n(dst, type, (size_t)i, value, n - i);
    }
}

SW_INLINE void row_copy(void *dst, sw_type type, const void *x, sw_type x_type, int32_t n)
{
    int32_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_put(dst, type, (size_t)i, vf_get(x, x_type, (size_t)i));
    if (i < n)
        vf_put_n(dst, type, (size_t)i, vf_get_n(x, x_type, (size_t)i, n - i), n - i);
}

SW_INLINE void row_zero(void *dst, sw_type type, int32_t n)
{
    memset(dst, 0, (size_t)n * sw_type_size(type));
}

/* Asks for the cache lines of a row that will be read soon. */
SW_INLINE void row_prefetch(const float *x, int32_t n)
{
    for (int32_t i = 0; i < n; i += 16)
        __builtin_prefetch(x + i);
}

#endif
