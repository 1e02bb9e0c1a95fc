/* SPDX-License-Identifier: MIT */
/*
 * set.h - the kernels of the instruction set that the file at hand is compiled for, under names that end in it
 * (sw_gelu is sw_gelu_avx2). See kernels.h for what each does; only set.c puts them into a table.
 */
#ifndef SW_KERNELS_SET_H
#define SW_KERNELS_SET_H

#include "kernels.h"

#define SW_JOIN_NAMES(name, isa) name##_##isa
#define SW_JOIN(name, isa) SW_JOIN_NAMES(name, isa)
#define SW_NAME(name) SW_JOIN(name, SW_ISA_NAME)

#define sw_gather SW_NAME(sw_gather)
#define sw_residual SW_NAME(sw_residual)
#define sw_gather_merge SW_NAME(sw_gather_merge)
#define sw_gather_patches SW_NAME(sw_gather_patches)
#define sw_store_map SW_NAME(sw_store_map)
#define sw_gather_head SW_NAME(sw_gather_head)
#define sw_scatter_head SW_NAME(sw_scatter_head)
#define sw_softmax SW_NAME(sw_softmax)
#define sw_gelu SW_NAME(sw_gelu)
#define sw_to_bf16 SW_NAME(sw_to_bf16)
#define sw_from_bf16 SW_NAME(sw_from_bf16)
#define sw_kernels_of_set SW_NAME(sw_kernels)

void sw_gather(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
               const sw_norm *norm);
void sw_residual(float *x, const int32_t *index, const sw_panels *y, const sw_norm *post, int32_t rows,
                 int32_t channels, const sw_panels *dst, const sw_norm *pre);
void sw_gather_merge(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
                     const sw_norm *norm);
void sw_gather_patches(void *dst, sw_type type, const sw_pixels *pixels, int32_t patch_size, int32_t grid_width,
                       int32_t first, int32_t rows);
void sw_store_map(float *map, bool nhwc, size_t plane, const float *x, int32_t first, int32_t rows, int32_t channels,
                  const sw_norm *norm);
void sw_gather_head(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t src_stride,
                    const int32_t *index, const float *pad, int32_t rows, int32_t d, bool normalise, float scale);
void sw_scatter_head(void *dst, sw_type type, size_t dst_stride, const void *src, const int32_t *index, int32_t rows,
                     int32_t d);
void sw_softmax(void *dst, sw_type type, const float *scores, const float *bias, size_t bias_stride,
                const int32_t *region, float mask, int32_t first, int32_t rows, int32_t tokens, size_t stride);
void sw_gelu(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t count);
void sw_to_bf16(uint16_t *dst, const float *src, size_t count);
void sw_from_bf16(float *dst, const uint16_t *src, size_t count);

extern const sw_kernels sw_kernels_of_set;

#endif
