/* SPDX-License-Identifier: MIT */
/*
 * widen.h - bf16 to float32 and back, for products that oneDNN cannot compute in bf16 on this CPU. Such CPUs gain
 * nothing from bf16; what counts here is that the results are those of bf16.
 */
#ifndef SW_DNN_WIDEN_H
#define SW_DNN_WIDEN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void sw_widen(float *dst, const uint16_t *src, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)src[i] << 16;
        memcpy(&dst[i], &bits, sizeof bits);
    }
}

/* To the nearest, ties to even; NaN stays NaN. */
static inline void sw_narrow(uint16_t *dst, const float *src, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &src[i], sizeof bits);
        const uint32_t nan = (bits & 0x7fffffff) > 0x7f800000 ? 0x40 : 0;
        dst[i] = (uint16_t)(nan != 0 ? bits >> 16 | nan : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}

#endif
