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

/* The precision that this machine is fast in. */
swin_precision sw_shared_fast_precision(void);

/* Takes over `model`, also on failure. Builds the network of `precision` (a swin_precision) at once; AUTO is the fast
 * one. */
swin_status sw_shared_create(sw_model *model, int32_t precision, swin_model **shared, swin_error *err);

swin_model *sw_shared_ref(swin_model *shared);
/* NULL is fine. */
void sw_shared_unref(swin_model *shared);

const sw_model *sw_shared_model(const swin_model *shared);

/* The network of a precision, built when first asked for; AUTO is what the model was created with. */
swin_status sw_shared_network(swin_model *shared, int32_t precision, sw_network **network, swin_error *err);

#endif
