/* SPDX-License-Identifier: MIT */
/*
 * amx_linear_f32.h - the float32 half of amx.h's linear layers.
 */
#ifndef SW_KERNELS_AMX_LINEAR_F32_H
#define SW_KERNELS_AMX_LINEAR_F32_H

#include "amx.h"

void sw_amx_pack_f32(void *packed, const float *w, int32_t n, int32_t width, int32_t chunks);
void sw_amx_linear_run_f32(const sw_amx_linear *linear);

#endif
