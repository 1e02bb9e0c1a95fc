/* SPDX-License-Identifier: MIT */
#include "trial.h"

static double exact_gelu(double x)
{
    /* erfc keeps its digits in the left tail; infinity times zero has no business here. */
    return x == -INFINITY ? -0.0 : x * 0.5 * erfc(-x * 0.70710678118654752440);
}

/* 2e-7 * max(1, |x|), the error of a float32 erf times x. Around zero and in the left tail the result is small and its
 * relative error counts as well: RELATIVE down to TAIL, beyond which less than 6e-9 is left. */
static double tolerance(double x, double exact)
{
    static const double relative = 4e-5, tail = -6;
    const double absolute = 2e-7 * fmax(1, fabs(x));
    return x < tail ? 6e-9 : fmin(absolute, relative * fabs(exact) + 1e-45);
}

enum { CHUNK = 4096 };

static void check_values(const sw_kernels *kernels, const float *values, size_t count)
{
    for (int form = 0; form < 4; form++) {
        const sw_type dst_type = form & 1 ? SW_BF16 : SW_F32, src_type = form & 2 ? SW_BF16 : SW_F32;
        void *src = guarded_alloc(count, sw_type_size(src_type)), *dst = guarded_alloc(count, sw_type_size(dst_type));
        for (size_t i = 0; i < count; i++)
            trial_put(src, src_type, i, values[i]);
        kernels->gelu(dst, dst_type, guarded_seal(src), src_type, count);
        for (size_t i = 0; i < count; i++) {
            const double x = trial_get(src, src_type, i), exact = exact_gelu(x);
            /* A bf16 result within one unit of its last place: half for the rounding, half for what was rounded. */
            const double bf16 = dst_type == SW_BF16 ? 0.5 * trial_bf16_ulp(exact) : 0;
            trial_close(trial_get(dst, dst_type, i), exact, tolerance(x, exact) + bf16, dst_type, "%s, x = %.9g",
                        kernels->name, x);
        }
        guarded_free_all();
    }
}

/* Every 7001st float32 of all. */
static void all_magnitudes(const sw_kernels *kernels)
{
    static float values[CHUNK];
    size_t count = 0;
    for (uint64_t bits = 0; bits < UINT32_MAX; bits += 7001) {
        const uint32_t word = (uint32_t)bits;
        memcpy(values + count++, &word, 4);
        if (count == CHUNK) {
            check_values(kernels, values, count);
            count = 0;
        }
    }
    check_values(kernels, values, count);
}

/* Densely where the function bends. */
static void dense(const sw_kernels *kernels)
{
    static float values[CHUNK];
    for (int i = 0; i < 20; i++) {
        for (int j = 0; j < CHUNK; j++)
            values[j] = trial_uniform(-8, 8);
        check_values(kernels, values, CHUNK);
    }
}

static void special(const sw_kernels *kernels)
{
    static const float values[] = {0.0f,    -0.0f,    INFINITY, -INFINITY, NAN, -NAN, 3.4e38f,
                                   -3.4e38f, 1e-45f,  -1e-45f,  1.2e-38f,
                                   -1.2e-38f, 1e30f, -1e30f, 100, -100, 16, -16, 5.9f, -5.9f, 1, -1};
    check_values(kernels, values, COUNT_OF(values));
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        float result;
        kernels->gelu(&result, SW_F32, values + i, SW_F32, 1);
        if (values[i] == -INFINITY || values[i] == 0)
            assert_true(result == 0);
        if (values[i] == INFINITY)
            assert_true(result == INFINITY);
    }
}

/* Any count, in place, and the same bits whatever the position. */
static void counts(const sw_kernels *kernels)
{
    for (size_t count = 0; count <= 70; count++) {
        for (int type = 0; type < 2; type++) {
            const void *src = trial_normals(count, (sw_type)type, 0, 2);
            void *dst = guarded_alloc(count, sw_type_size((sw_type)type));
            kernels->gelu(dst, (sw_type)type, src, (sw_type)type, count);
            void *place = guarded_alloc(count, sw_type_size((sw_type)type));
            memcpy(place, src, count * sw_type_size((sw_type)type));
            kernels->gelu(place, (sw_type)type, place, (sw_type)type, count);
            assert_memory_equal(dst, place, count * sw_type_size((sw_type)type));
            for (size_t i = 0; i < count; i++) {
                float one[1];
                trial_put(one, (sw_type)type, 0, trial_get(src, (sw_type)type, i));
                kernels->gelu(one, (sw_type)type, one, (sw_type)type, 1);
                assert_true(trial_get(one, (sw_type)type, 0) == trial_get(dst, (sw_type)type, i));
            }
            guarded_free_all();
        }
    }
}

#define TEST(name)                          \
    static void test_##name(void **context) \
    {                                       \
        (void)context;                      \
        trial_run(name);                    \
    }
TEST(all_magnitudes)
TEST(dense)
TEST(special)
TEST(counts)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_magnitudes),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_special),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests_name("kernels-gelu", tests, NULL, NULL);
}
