/* SPDX-License-Identifier: MIT */
/*
 * tensor_table.h - what tensors a checkpoint holds and where: sorted by name, looked up by name.
 */
#ifndef SW_WEIGHTS_TENSOR_TABLE_H
#define SW_WEIGHTS_TENSOR_TABLE_H

#include "../base/status.h"
#include "dtype.h"

#define SW_MAX_RANK 8

typedef struct sw_tensor {
    const char *name;           /* belongs to the table                 */
    uint64_t offset;            /* of its first byte in the file        */
    uint64_t bytes;
    uint64_t elements;
    uint64_t shape[SW_MAX_RANK];
    int32_t rank;
    sw_dtype dtype;
    size_t file;                /* which of the checkpoint's files      */
} sw_tensor;

typedef struct sw_tensor_table {
    sw_tensor *tensors;
    size_t count;
    size_t capacity;
    struct sw_names *names; /* memory behind the names */
} sw_tensor_table;

/* Makes room for `count` more tensors whose names take `name_bytes` bytes, terminators included. */
swin_status sw_tensor_table_reserve(sw_tensor_table *table, size_t count, size_t name_bytes, swin_error *err);

/* Adds a tensor within what was reserved; its name is copied. */
void sw_tensor_table_add(sw_tensor_table *table, const sw_tensor *tensor);

/* Sorts by name, once all are in. FORMAT where a name occurs twice. */
swin_status sw_tensor_table_sort(sw_tensor_table *table, swin_error *err);

/* NULL where there is none. */
const sw_tensor *sw_tensor_table_find(const sw_tensor_table *table, const char *name);

void sw_tensor_table_release(sw_tensor_table *table);

/* "[96, 3, 4, 4]" in `text`, cut where it does not fit. Returns text. */
const char *sw_tensor_shape_text(const sw_tensor *tensor, char *text, size_t size);

#endif
