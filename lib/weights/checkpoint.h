/* SPDX-License-Identifier: MIT */
/*
 * checkpoint.h - a checkpoint: one safetensors file, or the shards that a *.safetensors.index.json lists, behind one
 * table of tensors. Immutable once open; any thread may read.
 */
#ifndef SW_WEIGHTS_CHECKPOINT_H
#define SW_WEIGHTS_CHECKPOINT_H

#include "file.h"
#include "tensor_table.h"

typedef struct sw_checkpoint {
    sw_file *files;
    size_t file_count;
    sw_tensor_table table;
} sw_checkpoint;

/* On failure nothing stays open and *checkpoint is zero. */
swin_status sw_checkpoint_open(const char *path, uint64_t max_header_bytes, sw_checkpoint *checkpoint, swin_error *err);
void sw_checkpoint_close(sw_checkpoint *checkpoint);

/* Elements first .. first + count - 1 of a tensor of a weight type, as float32. */
swin_status sw_checkpoint_read(const sw_checkpoint *checkpoint, const sw_tensor *tensor, uint64_t first, size_t count,
                               float *dst, swin_error *err);

/* IO where the tensor's file has changed since it was opened. */
swin_status sw_checkpoint_check_unchanged(const sw_checkpoint *checkpoint, const sw_tensor *tensor, swin_error *err);

#endif
