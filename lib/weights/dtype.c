/* SPDX-License-Identifier: MIT */
#include "dtype.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libswin reads little-endian files as they are; a big-endian machine needs byte swaps here"
#endif

static const struct {
    const char *name;
    unsigned bits;
} dtypes[SW_DTYPE_COUNT] = {
    [SW_DTYPE_F32] = {"F32", 32},
    [SW_DTYPE_F16] = {"F16", 16},
    [SW_DTYPE_BF16] = {"BF16", 16},
    [SW_DTYPE_F64] = {"F64", 64},
    [SW_DTYPE_BOOL] = {"BOOL", 8},
    [SW_DTYPE_U8] = {"U8", 8},
    [SW_DTYPE_I8] = {"I8", 8},
    [SW_DTYPE_U16] = {"U16", 16},
    [SW_DTYPE_I16] = {"I16", 16},
    [SW_DTYPE_U32] = {"U32", 32},
    [SW_DTYPE_I32] = {"I32", 32},
    [SW_DTYPE_U64] = {"U64", 64},
    [SW_DTYPE_I64] = {"I64", 64},
    [SW_DTYPE_C64] = {"C64", 64},
    [SW_DTYPE_F8_E4M3] = {"F8_E4M3", 8},
    [SW_DTYPE_F8_E5M2] = {"F8_E5M2", 8},
    [SW_DTYPE_F8_E8M0] = {"F8_E8M0", 8},
    [SW_DTYPE_F8_E4M3FNUZ] = {"F8_E4M3FNUZ", 8},
    [SW_DTYPE_F8_E5M2FNUZ] = {"F8_E5M2FNUZ", 8},
    [SW_DTYPE_F6_E2M3] = {"F6_E2M3", 6},
    [SW_DTYPE_F6_E3M2] = {"F6_E3M2", 6},
    [SW_DTYPE_F4] = {"F4", 4},
};

bool sw_dtype_find(const char *name, sw_dtype *dtype)
{
    for (int i = 0; i < SW_DTYPE_COUNT; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = (sw_dtype)i;
            return true;
        }
    }
    return false;
}

const char *sw_dtype_name(sw_dtype dtype)
{
    return dtypes[dtype].name;
}

unsigned sw_dtype_bits(sw_dtype dtype)
{
    return dtypes[dtype].bits;
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float half_to_f32(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = half >> 10 & 31u, mantissa = half & 1023u;
    if (exponent == 31)
        return from_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) {
        const float magnitude = (float)mantissa * 0x1p-24f;
        return sign != 0 ? -magnitude : magnitude;
    }
    return from_bits(sign | (exponent + 112u) << 23 | mantissa << 13);
}

void sw_dtype_to_f32(sw_dtype dtype, const void *src, float *dst, size_t count)
{
    const unsigned char *p = src;
    switch (dtype) {
    case SW_DTYPE_F32:
        memmove(dst, p, count * sizeof *dst);
        break;
    case SW_DTYPE_F16:
        for (size_t i = 0; i < count; i++) {
            uint16_t half;
            memcpy(&half, p + 2 * i, sizeof half);
            dst[i] = half_to_f32(half);
        }
        break;
    case SW_DTYPE_BF16:
        for (size_t i = 0; i < count; i++) {
            uint16_t upper;
            memcpy(&upper, p + 2 * i, sizeof upper);
            dst[i] = from_bits((uint32_t)upper << 16);
        }
        break;
    case SW_DTYPE_F64:
        for (size_t i = 0; i < count; i++) {
            double value;
            memcpy(&value, p + 8 * i, sizeof value);
            dst[i] = (float)value;
        }
        break;
    default:
        break;
    }
}

size_t sw_count_nonfinite(const float *values, size_t count)
{
    size_t nonfinite = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        nonfinite += (bits & 0x7f800000u) == 0x7f800000u;
    }
    return nonfinite;
}
