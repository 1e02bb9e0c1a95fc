/* SPDX-License-Identifier: MIT */
/*
 * shards.h - Hugging Face's *.safetensors.index.json: which tensor lies in which of the files beside it.
 */
#ifndef SW_WEIGHTS_SHARDS_H
#define SW_WEIGHTS_SHARDS_H

#include "checkpoint.h"

#define SW_MAX_SHARDS 1024

/* Opens every shard that the index names. The index and the shards must agree on every tensor. On failure the caller
 * closes the checkpoint. */
swin_status sw_shards_open(const char *index_path, uint64_t max_header_bytes, sw_checkpoint *checkpoint,
                           swin_error *err);

#endif
