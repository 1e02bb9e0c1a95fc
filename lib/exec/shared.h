/* SPDX-License-Identifier: MIT */
/*
 * shared.h - the object behind a public swin_model: a model, and the networks built from it so far, one per precision.
 *
 * Immutable to its users; a network is added under a lock when a session first asks for its precision. Counted
 * references: the caller's, and one for each session.
 */
#ifndef SW_EXEC_SHARED_H
#define SW_EXEC_SHARED_H

#include "network.h"

/* Takes over `model`, also on failure. Builds the network of `precision` (a swin_precision) at once. */
swin_status sw_shared_create(sw_model *model, int32_t precision, swin_model **shared, swin_error *err);

swin_model *sw_shared_ref(swin_model *shared);
/* NULL is fine. */
void sw_shared_unref(swin_model *shared);

const sw_model *sw_shared_model(const swin_model *shared);

/* What AUTO means on this machine; F32 and BF16 as they are. */
swin_precision sw_shared_precision(int32_t precision);

/* The network of a precision other than AUTO, built when first asked for. */
swin_status sw_shared_network(swin_model *shared, swin_precision precision, sw_network **network, swin_error *err);

#endif
