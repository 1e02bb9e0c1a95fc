/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weights/dtype.h"

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* What a half means, by its definition. */
static double half_value(uint16_t half)
{
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    const double magnitude = exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

static void every_half_is_converted(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const uint16_t half = (uint16_t)h;
        float value;
        sw_dtype_to_f32(SW_DTYPE_F16, &half, &value, 1);
        if ((half & 0x7c00) != 0x7c00) {
            assert_true((double)value == half_value(half));
            assert_int_equal(signbit(value) != 0, half >> 15);
        } else if ((half & 0x3ff) == 0) {
            assert_true(isinf(value) && (signbit(value) != 0) == half >> 15);
        } else {
            assert_true(isnan(value));
        }
    }
}

static void every_bf16_is_converted(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const uint16_t upper = (uint16_t)h;
        float value;
        sw_dtype_to_f32(SW_DTYPE_BF16, &upper, &value, 1);
        assert_int_equal(bits_of(value), h << 16);
    }
}

static void doubles_are_rounded(void **state)
{
    (void)state;
    static const double values[] = {0.1, -1e300, 1e-60, 0x1.ffffffp127, 1.0};
    float converted[5];
    sw_dtype_to_f32(SW_DTYPE_F64, values, converted, 5);
    assert_true(converted[0] == 0.1f);
    assert_true(isinf(converted[1]) && converted[1] < 0.0f);
    assert_true(converted[2] == 0.0f);
    assert_true(isinf(converted[3]));
    assert_true(converted[4] == 1.0f);
}

/* Widening within one block, from its end to its beginning, for lengths around any vector's. */
static void narrow_values_are_widened_in_place(void **state)
{
    (void)state;
    for (size_t count = 1; count < 70; count++) {
        float block[70];
        uint16_t halves[70];
        for (size_t i = 0; i < count; i++)
            halves[i] = (uint16_t)(0x3c00 + 7 * i);
        char *raw = (char *)block + 2 * count;
        memcpy(raw, halves, 2 * count);
        sw_dtype_to_f32(SW_DTYPE_F16, raw, block, count);
        for (size_t i = 0; i < count; i++)
            assert_true((double)block[i] == half_value(halves[i]));
    }
}

static void floats_are_copied_and_integers_left_alone(void **state)
{
    (void)state;
    static const float values[3] = {1.5f, -0.0f, 3e38f};
    float read[3] = {0};
    sw_dtype_to_f32(SW_DTYPE_I32, values, read, 3);
    assert_true(read[0] == 0.0f && read[2] == 0.0f);
    sw_dtype_to_f32(SW_DTYPE_F32, values, read, 3);
    assert_memory_equal(read, values, sizeof values);
}

static void unaligned_values_are_read(void **state)
{
    (void)state;
    unsigned char bytes[1 + sizeof(double)];
    const double value = -2.5;
    float converted;
    memcpy(bytes + 1, &value, sizeof value);
    sw_dtype_to_f32(SW_DTYPE_F64, bytes + 1, &converted, 1);
    assert_true(converted == -2.5f);
}

static void nonfinite_values_are_counted(void **state)
{
    (void)state;
    const float values[] = {0.0f, NAN, 1.0f, INFINITY, -INFINITY, 3.4e38f, -NAN, 1e-40f};
    assert_int_equal(sw_count_nonfinite(values, 8), 4);
    assert_int_equal(sw_count_nonfinite(values, 0), 0);
}

static void names_and_sizes_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned bits;
        bool weight;
    } cases[] = {
        {"F32", 32, true},  {"F16", 16, true},  {"BF16", 16, true},  {"F64", 64, true},    {"I64", 64, false},
        {"BOOL", 8, false}, {"U8", 8, false},   {"I32", 32, false},  {"F8_E4M3", 8, false}, {"F8_E5M2", 8, false},
        {"C64", 64, false}, {"F4", 4, false},   {"U16", 16, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sw_dtype dtype;
        assert_true(sw_dtype_find(cases[i].name, &dtype));
        assert_int_equal(sw_dtype_bits(dtype), cases[i].bits);
        assert_int_equal(sw_dtype_is_weight(dtype), cases[i].weight);
        assert_string_equal(sw_dtype_name(dtype), cases[i].name);
    }
    sw_dtype dtype;
    assert_false(sw_dtype_find("f32", &dtype));
    assert_false(sw_dtype_find("", &dtype));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_is_converted),
        cmocka_unit_test(every_bf16_is_converted),
        cmocka_unit_test(doubles_are_rounded),
        cmocka_unit_test(narrow_values_are_widened_in_place),
        cmocka_unit_test(floats_are_copied_and_integers_left_alone),
        cmocka_unit_test(unaligned_values_are_read),
        cmocka_unit_test(nonfinite_values_are_counted),
        cmocka_unit_test(names_and_sizes_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
