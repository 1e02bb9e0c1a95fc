/* SPDX-License-Identifier: MIT */
#include "set.h"
#include "vector.h"

void sw_to_bf16(uint16_t *dst, const float *src, size_t count)
{
    size_t i = 0;
    for (; i + VF_LANES <= count; i += VF_LANES)
        vf_store_bf16(dst + i, vf_load(src + i));
    if (i < count)
        vf_store_bf16_n(dst + i, vf_load_n(src + i, (int)(count - i)), (int)(count - i));
}

void sw_from_bf16(float *dst, const uint16_t *src, size_t count)
{
    size_t i = 0;
    for (; i + VF_LANES <= count; i += VF_LANES)
        vf_store(dst + i, vf_load_bf16(src + i));
    if (i < count)
        vf_store_n(dst + i, vf_load_bf16_n(src + i, (int)(count - i)), (int)(count - i));
}
