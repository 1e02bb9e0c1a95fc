/* SPDX-License-Identifier: MIT */
/*
 * source.h - reading: how a canonical tensor is made of pieces of a file.
 */
#ifndef SW_MODEL_SOURCE_H
#define SW_MODEL_SOURCE_H

#include "recognition.h"

/* Rows first .. first + count - 1 of a canonical tensor of rows x columns. Norms of levels that the file does not have
 * are the identity; biases that it does not have are zero. */
swin_status sw_source_read(const sw_checkpoint *checkpoint, const sw_recognition *recognition, sw_tensor_id id,
                           int32_t columns, int32_t first, int32_t count, float *dst, swin_error *err);

/* The tensors that a canonical tensor is read from, at most three; entries may be NULL. Returns how many. */
int32_t sw_source_tensors(const sw_recognition *recognition, sw_tensor_id id, const sw_tensor *tensors[3]);

#endif
