/* SPDX-License-Identifier: MIT */
/*
 * verify.h - maps against reference maps in .npy files, within the tolerances that libswin promises:
 *
 *   float32  relative L2 error <= 1e-5   and max|d| <= 1e-4 * max|reference|
 *   bf16     relative L2 error <= 1.5e-2 and cosine >= 0.9998
 *
 * relative L2 error = ||d|| / ||reference||, all in double precision over the whole map.
 */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include <jansson.h>
#include <stdio.h>

#include "image_run.h"

struct comparison {
    int32_t level;
    double max_difference, max_reference;
    double relative_l2, cosine;
    bool within;
};

struct verification {
    struct comparison levels[SWIN_MAX_STAGES];
    int count;
    bool bf16;
};

/* Two arrays of `count` values. */
struct comparison verify_compare(const float *values, const double *reference, size_t count, bool bf16);

/* Whether there is anything to compare with, looked at before the work; `single`: one image, whose references lie in
 * --verify's directory itself. */
bool verify_probe(const struct options *options, bool single, struct failure *failure);

/* Whether the references of the run's levels are there and have the shapes of its maps, before it is computed. */
bool verify_check(const struct image_run *run, const char *directory, struct failure *failure);

/* Against `directory`/c2.npy and so on. False when a file is missing or has another shape. */
bool verify_run(struct verification *verification, const struct image_run *run, const char *directory,
                struct failure *failure);

/* False with a failure that names the levels beyond the tolerance. */
bool verify_judge(const struct verification *verification, const struct image_run *run, const char *directory,
                  struct failure *failure);

void verify_print(const struct verification *verification, FILE *stream);
json_t *verify_json(const struct verification *verification);

#endif
