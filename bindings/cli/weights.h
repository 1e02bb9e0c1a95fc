/* SPDX-License-Identifier: MIT */
/*
 * weights.h - the model of a run: a checkpoint, or without one a demonstration model of random weights.
 */
#ifndef CLI_WEIGHTS_H
#define CLI_WEIGHTS_H

#include "options.h"

#define WEIGHTS_DEMO_PRESET "swin_tiny_patch4_window7_224"

enum { WEIGHTS_DEMO_SEED = 1 };

bool weights_open(const struct options *options, swin_model **model, struct failure *failure);

/* "swin_tiny.safetensors", or what the demonstration model is. */
const char *weights_label(const struct options *options);

#endif
