/* SPDX-License-Identifier: MIT */
/*
 * batch.h - all images of a run, by a few workers with a session each. What comes out does not depend on how many there
 * are.
 */
#ifndef CLI_BATCH_H
#define CLI_BATCH_H

#include "inputs.h"
#include "plan.h"

/* Reports each image as it is done. True when all went well; else what failed has been said on stderr. */
bool batch_run(const struct plan *plan, const struct inputs *inputs);

#endif
