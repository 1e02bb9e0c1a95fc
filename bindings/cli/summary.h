/* SPDX-License-Identifier: MIT */
/*
 * summary.h - what was computed of an image: for programs in summary.json, for people in a few lines.
 */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include <stdio.h>

#include "attention.h"
#include "bench.h"
#include "image_run.h"
#include "output.h"
#include "verify.h"

/* `verification`, `bench` and `attention` may be NULL. `files` names what was written before. */
bool summary_write(const struct plan *plan, const struct image_run *run, const struct verification *verification,
                   const struct bench *bench, const struct attention *attention, struct output *output,
                   struct failure *failure);

void summary_print(const struct plan *plan, const struct image_run *run, FILE *stream);

/* "RGB, mean 123.675,116.28,103.53, std 58.395,57.12,57.375", in `text`. */
enum { SUMMARY_PREPROCESSING = 192 };
const char *summary_preprocessing(const struct options *options, char text[SUMMARY_PREPROCESSING]);

#endif
