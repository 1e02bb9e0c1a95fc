/* SPDX-License-Identifier: MIT */
/*
 * bench.h - where the time of a run goes, over several of them.
 */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <jansson.h>
#include <stdio.h>

#include "image_run.h"

/* The patch embedding, three parts of each stage, and the whole. */
enum {
    BENCH_PATCH_EMBEDDING,
    BENCH_STAGE,
    BENCH_STAGE_PARTS = 3,
    BENCH_TOTAL = BENCH_STAGE + SWIN_MAX_STAGES * BENCH_STAGE_PARTS,
    BENCH_PARTS
};

struct bench_part {
    double least, median; /* milliseconds */
};

struct bench {
    int32_t runs;
    struct bench_part parts[BENCH_PARTS];
    struct bench_part stages[SWIN_MAX_STAGES]; /* all parts of a stage together */
    double gflop[SWIN_MAX_STAGES + 1];         /* as in swin_profile */
    int stage_count;                           /* computed */
    uint64_t peak_bytes;                       /* of the whole process */
};

/* Times `runs` runs after the one that made `run`. The session must have been made with `profile`. */
bool bench_run(struct bench *bench, struct image_run *run, const struct plan *plan, swin_session *session, int32_t runs,
               struct failure *failure);

/* The smallest and the middle one of `count` samples, which are reordered. */
struct bench_part bench_summarise(double *samples, int32_t count);

void bench_print(const struct bench *bench, const struct image_run *run, FILE *stream);
json_t *bench_json(const struct bench *bench);

#endif
