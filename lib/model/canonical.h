/* SPDX-License-Identifier: MIT */
/*
 * canonical.h - which tensors a configuration has in canonical form, and their shapes.
 */
#ifndef SW_MODEL_CANONICAL_H
#define SW_MODEL_CANONICAL_H

#include "model.h"

/* False, and 0 x 0, where a configuration has no such tensor. A vector has one column. */
bool sw_canonical_shape(const swin_config *config, sw_tensor_id id, int32_t *rows, int32_t *columns);

#endif
