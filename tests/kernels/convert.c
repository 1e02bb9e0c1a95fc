/* SPDX-License-Identifier: MIT */
#include "trial.h"

/* Every bf16 number becomes the float32 with the same upper half, bit for bit. */
static void widen(const sw_kernels *kernels)
{
    enum { ALL = 65536 };
    uint16_t *src = guarded_alloc(ALL, 2);
    for (int i = 0; i < ALL; i++)
        src[i] = (uint16_t)i;
    guarded_seal(src);
    float *dst = guarded_alloc(ALL, 4);
    kernels->from_bf16(dst, src, ALL);
    for (uint32_t i = 0; i < ALL; i++) {
        uint32_t bits;
        memcpy(&bits, dst + i, 4);
        if (bits != i << 16)
            fail_msg("%s: %04x became %08x", kernels->name, i, bits);
    }
}

static bool right(const sw_kernels *kernels, float value, uint16_t got)
{
    if (isnan(value))
        return isnan(trial_get(&got, SW_BF16, 0));
    /* This set's instructions know no denormal numbers. */
    if (strcmp(kernels->name, "avx512_bf16") == 0 && fabsf(value) < 0x1p-126f)
        return (got & 0x7fff) == 0;
    return got == trial_bf16(value);
}

/* Around every bf16 number: itself, just below, at and just above the tie, and the last before the next. */
static void narrow(const sw_kernels *kernels)
{
    static const uint16_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { ALL = 65536 * COUNT_OF(lower) };
    uint32_t *src = guarded_alloc(ALL, 4);
    for (uint32_t i = 0; i < ALL; i++)
        src[i] = i / COUNT_OF(lower) << 16 | lower[i % COUNT_OF(lower)];
    guarded_seal(src);
    uint16_t *dst = guarded_alloc(ALL, 2);
    kernels->to_bf16(dst, (const float *)(const void *)src, ALL);
    for (uint32_t i = 0; i < ALL; i++) {
        float value;
        memcpy(&value, src + i, 4);
        if (!right(kernels, value, dst[i]))
            fail_msg("%s: %08x became %04x", kernels->name, src[i], dst[i]);
    }
}

/* No element more, no element less. */
static void counts(const sw_kernels *kernels)
{
    for (size_t count = 0; count <= 70; count++) {
        float *wide = trial_normals(count, SW_F32, 0, 1);
        uint16_t *half = guarded_alloc(count, 2);
        float *back = guarded_alloc(count, 4);
        kernels->to_bf16(half, wide, count);
        kernels->from_bf16(back, half, count);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(half[i], trial_bf16(wide[i]));
            assert_true(back[i] == trial_get(half, SW_BF16, i));
        }
        guarded_free_all();
    }
}

static void test_widen(void **context)
{
    (void)context;
    trial_run(widen);
}

static void test_narrow(void **context)
{
    (void)context;
    trial_run(narrow);
}

static void test_counts(void **context)
{
    (void)context;
    trial_run(counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widen),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests_name("kernels-convert", tests, NULL, NULL);
}
