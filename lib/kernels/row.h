/* SPDX-License-Identifier: MIT */
/*
 * row.h - mean and variance of rows, and rows normalised by them.
 *
 * Two passes. The first gives a centre, the mean but for rounding. The second sums deviations from the centre as well
 * as their squares, so that what the centre lacks is known and the result is good even where mean >> deviation:
 *
 *      mean = centre + delta      (x - mean) / sqrt(variance + eps) = (x - centre) * scale + shift
 *
 * Four rows go through together: their chains of additions overlap and their sums are gathered in one go. Several
 * such groups make a batch, which goes through each pass before the next, so that no group waits for its own sums. No
 * row notices its company; a group of fewer repeats one of its rows.
 */
#ifndef SW_KERNELS_ROW_H
#define SW_KERNELS_ROW_H

#include <math.h>

#include "kernels.h"
#include "vector.h"

#define GROUP 4
#define BATCH 16

/* A sum in one call is the sum in several where all but the last have a multiple of SUMS_STEP elements. */
#define SUMS_STEP (2 * VF_LANES)

typedef struct sums {
    vf even[GROUP], odd[GROUP];
} sums;

typedef struct deviations {
    vf plain[GROUP], squared[GROUP];
} deviations;

/* Of each row of a batch. */
typedef struct moments {
    float centre[BATCH], scale[BATCH], shift[BATCH];
} moments;

/* How a row becomes its normalised self. */
typedef struct scaling {
    vf centre, scale, shift;
} scaling;

SW_INLINE void sums_clear(sums *s)
{
    for (int k = 0; k < GROUP; k++)
        s->even[k] = s->odd[k] = vf_set(0);
}

/* n more elements of each row. */
SW_INLINE void sums_add(sums *s, const float *const x[GROUP], int32_t n)
{
    int32_t i = 0;
    for (; i + SUMS_STEP <= n; i += SUMS_STEP) {
        for (int k = 0; k < GROUP; k++) {
            s->even[k] = vf_add(s->even[k], vf_load(x[k] + i));
            s->odd[k] = vf_add(s->odd[k], vf_load(x[k] + i + VF_LANES));
        }
    }
    if (i + VF_LANES <= n) {
        for (int k = 0; k < GROUP; k++)
            s->even[k] = vf_add(s->even[k], vf_load(x[k] + i));
        i += VF_LANES;
    }
    if (i < n) {
        for (int k = 0; k < GROUP; k++)
            s->odd[k] = vf_add(s->odd[k], vf_load_n(x[k] + i, n - i));
    }
}

/* The centres of rows at .. at + GROUP - 1; `inverse` is 1 / the number of elements. */
SW_INLINE void sums_finish(const sums *s, float inverse, moments *m, int32_t at)
{
    const vq centre = vf_sum4(vf_add(s->even[0], s->odd[0]), vf_add(s->even[1], s->odd[1]),
                              vf_add(s->even[2], s->odd[2]), vf_add(s->even[3], s->odd[3])) * vq_set(inverse);
    memcpy(m->centre + at, &centre, sizeof centre);
}

SW_INLINE void deviations_clear(deviations *d)
{
    for (int k = 0; k < GROUP; k++)
        d->plain[k] = d->squared[k] = vf_set(0);
}

SW_INLINE void deviations_add(deviations *d, const float *const x[GROUP], int32_t n, const moments *m, int32_t at)
{
    const vf c[GROUP] = {vf_set(m->centre[at]), vf_set(m->centre[at + 1]), vf_set(m->centre[at + 2]),
                         vf_set(m->centre[at + 3])};
    int32_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        for (int k = 0; k < GROUP; k++) {
            const vf deviation = vf_sub(vf_load(x[k] + i), c[k]);
            d->plain[k] = vf_add(d->plain[k], deviation);
            d->squared[k] = vf_fma(deviation, deviation, d->squared[k]);
        }
    }
    if (i < n) {
        for (int k = 0; k < GROUP; k++) {
            const vf deviation = vf_first(vf_sub(vf_load_n(x[k] + i, n - i), c[k]), n - i, vf_set(0));
            d->plain[k] = vf_add(d->plain[k], deviation);
            d->squared[k] = vf_fma(deviation, deviation, d->squared[k]);
        }
    }
}

/* Scales and shifts. `zeros` more elements of each row are zero: their deviations come in as one product, for equal
 * addends would all round the same way. */
SW_INLINE void deviations_finish(const deviations *d, float zeros, float inverse, float eps, moments *m, int32_t at)
{
    vq centre;
    memcpy(&centre, m->centre + at, sizeof centre);
    const vq z = vq_set(zeros), by = vq_set(inverse);
    const vq plain = vf_sum4(d->plain[0], d->plain[1], d->plain[2], d->plain[3]) - z * centre;
    const vq squared = vf_sum4(d->squared[0], d->squared[1], d->squared[2], d->squared[3]) + z * centre * centre;
    const vq delta = plain * by;
    /* Rounding may leave a constant row a negative variance; NaN is the second operand and stays. */
    const vq variance = vq_max(vq_set(0), squared * by - delta * delta);
    const vq scale = vq_set(1) / vq_sqrt(variance + vq_set(eps));
    const vq shift = -delta * scale;
    memcpy(m->scale + at, &scale, sizeof scale);
    memcpy(m->shift + at, &shift, sizeof shift);
}

/* Of `count` rows of n elements, a multiple of GROUP. */
SW_INLINE void moments_of(moments *m, const float *const *x, int32_t count, int32_t n, float eps)
{
    const float inverse = 1 / (float)n;
    for (int32_t at = 0; at < count; at += GROUP) {
        sums s;
        sums_clear(&s);
        sums_add(&s, x + at, n);
        sums_finish(&s, inverse, m, at);
    }
    for (int32_t at = 0; at < count; at += GROUP) {
        deviations d;
        deviations_clear(&d);
        deviations_add(&d, x + at, n, m, at);
        deviations_finish(&d, 0, inverse, eps, m, at);
    }
}

SW_INLINE scaling scaling_of(const moments *m, int k)
{
    return (scaling){vf_set(m->centre[k]), vf_set(m->scale[k]), vf_set(m->shift[k])};
}

/* Where it is named but not used. */
SW_INLINE scaling scaling_none(void)
{
    return (scaling){vf_set(0), vf_set(1), vf_set(0)};
}

SW_INLINE vf scaling_apply(const scaling *s, vf x, vf weight, vf bias)
{
    return vf_fma(vf_fma(vf_sub(x, s->centre), s->scale, s->shift), weight, bias);
}

/* dst = the normalised x. The cache lines of `ahead`, a row that comes later, are asked for meanwhile. */
SW_INLINE void row_normalise(void *dst, sw_type type, const float *x, int32_t n, scaling s, const float *weight,
                             const float *bias, const float *ahead)
{
    int32_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        const vf first = scaling_apply(&s, vf_load(x + i), vf_load(weight + i), vf_load(bias + i));
        const vf second = scaling_apply(&s, vf_load(x + i + VF_LANES), vf_load(weight + i + VF_LANES),
                                        vf_load(bias + i + VF_LANES));
        vf_put_2(dst, type, (size_t)i, first, second);
        __builtin_prefetch(ahead + i);
        if (VF_LANES == 16)
            __builtin_prefetch(ahead + i + VF_LANES);
    }
    if (i + VF_LANES <= n) {
        vf_put(dst, type, (size_t)i, scaling_apply(&s, vf_load(x + i), vf_load(weight + i), vf_load(bias + i)));
        i += VF_LANES;
    }
    if (i < n) {
        const vf value = scaling_apply(&s, vf_load_n(x + i, n - i), vf_load_n(weight + i, n - i),
                                       vf_load_n(bias + i, n - i));
        vf_put_n(dst, type, (size_t)i, value, n - i);
    }
}

/* Bytes as they are. The compiler makes each memcpy() a load and a store. */
SW_INLINE void row_move(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;
    for (; bytes >= 64; bytes -= 64, to += 64, from += 64)
        memcpy(to, from, 64);
    for (; bytes >= 16; bytes -= 16, to += 16, from += 16)
        memcpy(to, from, 16);
    for (; bytes >= 4; bytes -= 4, to += 4, from += 4)
        memcpy(to, from, 4);
    if (bytes > 0)
        memcpy(to, from, 2);
}

SW_INLINE void row_copy(void *dst, sw_type type, const void *x, sw_type x_type, int32_t n)
{
    if (type == x_type) {
        row_move(dst, x, (size_t)n * sw_type_size(type));
        return;
    }
    int32_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES)
        vf_put_2(dst, type, (size_t)i, vf_get(x, x_type, (size_t)i), vf_get(x, x_type, (size_t)i + VF_LANES));
    if (i + VF_LANES <= n) {
        vf_put(dst, type, (size_t)i, vf_get(x, x_type, (size_t)i));
        i += VF_LANES;
    }
    if (i < n)
        vf_put_n(dst, type, (size_t)i, vf_get_n(x, x_type, (size_t)i, n - i), n - i);
}

SW_INLINE void row_zero(void *dst, sw_type type, int32_t n)
{
    memset(dst, 0, (size_t)n * sw_type_size(type));
}

#endif
