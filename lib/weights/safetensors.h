/* SPDX-License-Identifier: MIT */
/*
 * safetensors.h - the header of a safetensors file, which is hostile until every number in it has been checked:
 *
 *      u64 little-endian: length of the header; the header, JSON; the data, to which offsets are relative
 *
 * Refused: a header that is too long, cut, nested, not UTF-8, or says a name twice; a type that nobody defined; offsets
 * that leave the file, run backwards, overlap another tensor's or do not agree with shape and type. Accepted beyond
 * what the reference reader accepts: data at any alignment, gaps, and bytes after the last tensor.
 */
#ifndef SW_WEIGHTS_SAFETENSORS_H
#define SW_WEIGHTS_SAFETENSORS_H

#include "file.h"
#include "tensor_table.h"

#define SW_DEFAULT_MAX_HEADER_BYTES (UINT64_C(100) << 20)

/* What else people call a checkpoint, by its first bytes: FORMAT with the command that converts it. OK for the rest. */
swin_status sw_safetensors_sniff(const sw_file *file, swin_error *err);

/* Adds the file's tensors to the table, as of file number `number` of a checkpoint. */
swin_status sw_safetensors_read_header(const sw_file *file, size_t number, uint64_t max_header_bytes,
                                       sw_tensor_table *table, swin_error *err);

#endif
