/* SPDX-License-Identifier: MIT */
/*
 * absolute_position.h - the absolute position embedding, resized to the patch grid of the image as it is added.
 *
 * Detection code resizes it in every forward pass with PyTorch's bicubic interpolation, align_corners off
 * (Swin-Transformer-Object-Detection, swin_transformer.py, SwinTransformer.forward); no released model has one.
 */
#ifndef SW_EXEC_ABSOLUTE_POSITION_H
#define SW_EXEC_ABSOLUTE_POSITION_H

#include <stdint.h>

/* x [rows, channels] += the embedding of tokens first .. first + rows - 1 of `grid`; `embedding` is [table rows * table
 * columns, channels]. Pairs are {rows, columns}. */
void sw_absolute_position_add(float *x, const float *embedding, const int32_t table[2], const int32_t grid[2],
                              int32_t channels, int32_t first, int32_t rows);

#endif
