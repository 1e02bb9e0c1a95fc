/* SPDX-License-Identifier: MIT */
/*
 * In place of the AMX kernels where the compiler or the processor family has none. sw_amx_built() says so, and
 * nothing else here is ever called.
 */
#include "amx.h"

bool sw_amx_built(void)
{
    return false;
}

void sw_amx_pack(void *packed, sw_type type, const float *w, int32_t n, int32_t width, int32_t chunks)
{
    (void)packed, (void)type, (void)w, (void)n, (void)width, (void)chunks;
}

void sw_amx_linear_run(const sw_amx_linear *linear)
{
    (void)linear;
}

void sw_amx_attention_load(const sw_amx_attention *attention)
{
    (void)attention;
}

void sw_amx_attention_queries(const sw_amx_attention *attention, int32_t first, int32_t rows, const float *bias)
{
    (void)attention, (void)first, (void)rows, (void)bias;
}

void sw_amx_release(void)
{
}
