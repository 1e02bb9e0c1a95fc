/* SPDX-License-Identifier: MIT */
#include "trial.h"

static uint64_t state = 1;

void trial_seed(uint64_t seed)
{
    state = seed * 0x9e3779b97f4a7c15u + 1;
}

/* SplitMix64. */
uint32_t trial_bits(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

float trial_uniform(float low, float high)
{
    return low + (high - low) * (float)(trial_bits() >> 8) * 0x1p-24f;
}

float trial_normal(float mean, float deviation)
{
    /* Four uniform numbers make a good bell; their sum varies by a third. */
    const uint32_t a = trial_bits(), b = trial_bits();
    const uint32_t sum = (a >> 16) + (a & 0xffff) + (b >> 16) + (b & 0xffff);
    return mean + deviation * 1.7320508f * ((float)sum * 0x1p-16f - 2);
}

void *trial_normals(size_t count, sw_type type, float mean, float deviation)
{
    void *array = guarded_alloc(count, sw_type_size(type));
    for (size_t i = 0; i < count; i++)
        trial_put(array, type, i, trial_normal(mean, deviation));
    return guarded_seal(array);
}

/* Rounding spelled out, independent of the code under test. */
uint16_t trial_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    const uint32_t dropped = bits & 0xffff, half = 0x8000;
    bits >>= 16;
    if (dropped > half || (dropped == half && bits % 2 == 1))
        bits++;
    return (uint16_t)bits;
}

float trial_get(const void *array, sw_type type, size_t at)
{
    uint32_t bits;
    if (type == SW_BF16)
        bits = (uint32_t)((const uint16_t *)array)[at] << 16;
    else
        return ((const float *)array)[at];
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void trial_put(void *array, sw_type type, size_t at, float value)
{
    if (type == SW_BF16)
        ((uint16_t *)array)[at] = trial_bf16(value);
    else
        ((float *)array)[at] = value;
}

double trial_bf16_ulp(double value)
{
    int exponent;
    frexp(value, &exponent);
    if (value == 0 || exponent < -125)
        exponent = -125;
    return ldexp(1, exponent - 8);
}

void trial_close(double got, double exact, double tolerance, sw_type type, const char *format, ...)
{
    if (isnan(exact) ? isnan(got) : got == exact)
        return;
    /* Half a step beyond the largest number. */
    if (type == SW_BF16 && fabs(exact) >= 0x1.ffp127 && isinf(got) && got * exact > 0)
        return;
    if (type == SW_BF16)
        tolerance += fabs(exact) < 0x1.01p-126 ? 0x1.01p-126 : 0.5 * trial_bf16_ulp(exact);
    if (fabs(got - exact) <= tolerance)
        return;
    char where[200];
    va_list list;
    va_start(list, format);
    vsnprintf(where, sizeof where, format, list);
    va_end(list);
    fail_msg("%s: got %.9g, expected %.17g within %.3g", where, got, exact, tolerance);
}

void trial_untouched(const void *from, size_t bytes, const char *where)
{
    const unsigned char *p = from;
    for (size_t i = 0; i < bytes; i++) {
        if (p[i] != GUARDED_FILL)
            fail_msg("%s: byte %zu written to", where, i);
    }
}

void trial_run(trial_body *body)
{
    for (int isa = 0; isa < SW_ISA_COUNT; isa++) {
        const sw_kernels *kernels = sw_kernels_for((sw_isa)isa);
        if (kernels == NULL)
            continue;
        for (int side = 0; side < GUARDED_SIDES; side++) {
            guarded_use_side((enum guarded_side)side);
            trial_seed(20261129);
            body(kernels);
            guarded_free_all();
        }
    }
}
