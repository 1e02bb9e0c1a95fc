/* SPDX-License-Identifier: MIT */
/*
 * locate.h - where in a checkpoint the Swin Transformer is, and who named it.
 *
 * The prefix is what stands before the patch embedding's weight; the naming is the one whose table knows most of the
 * names behind that prefix. Names are compared whole, never by their ends. A file with several backbones is refused,
 * the prefixes named; so is one that fits no naming, the nearest ones named.
 */
#ifndef SW_MODEL_LOCATE_H
#define SW_MODEL_LOCATE_H

#include "../weights/tensor_table.h"
#include "naming.h"

typedef struct sw_location {
    const sw_naming *naming;
    const char *anchor; /* name of the tensor whose first prefix_length characters are the prefix */
    size_t prefix_length;
} sw_location;

/* `prefix` is the one to take, with or without its last dot; NULL where there is to be one only. */
swin_status sw_locate(const sw_tensor_table *table, const char *prefix, sw_location *location, swin_error *err);

/* The MISMATCH of a file that fits no naming. */
swin_status sw_fail_no_naming(const sw_tensor_table *table, swin_error *err);

#endif
