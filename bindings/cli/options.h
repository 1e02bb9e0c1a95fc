/* SPDX-License-Identifier: MIT */
/*
 * options.h - the command line, understood and checked.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdint.h>

#include <swin/swin.h>

#include "failure.h"

enum options_task { OPTIONS_DUMP, OPTIONS_INFO, OPTIONS_SELFTEST, OPTIONS_HELP, OPTIONS_VERSION };

struct options {
    enum options_task task;
    const char *weights; /* NULL: the built-in demonstration model */
    const char *out;
    const char *verify; /* directory, or NULL */
    int32_t bench;      /* runs to time, 0: none */

    int32_t height, width; /* 0: as the image is */
    int32_t pad_divisor;
    uint64_t max_pixels;
    bool levels[SWIN_MAX_STAGES];
    bool levels_given; /* else all that the model has */
    bool nhwc;
    bool bgr;
    float mean[3], std[3]; /* R, G, B, in 0-255 units */

    bool attention;                      /* asked for: of this stage, block and head */
    int32_t attention_stage, attention_block;
    int32_t attention_head;              /* SWIN_HEAD_MEAN: the mean over all */
    bool query_given;                    /* else the middle of each image     */
    int32_t query[2];                    /* row, column of the image as in the file */

    int32_t precision; /* a swin_precision */
    int32_t threads;   /* 0: all CPUs */
    swin_model_params model;
    int window_count, pretrained_window_count; /* how many were given: 0, 1 for all stages, one for each */

    bool png, npy, json;
    bool quiet;

    char **inputs; /* into argv */
    int input_count;
};

/* False with a failure set for anything that is not understood: exit code 2. */
bool options_parse(struct options *options, int argc, char **argv, struct failure *failure);

/* Whether files are to be written. */
static inline bool options_write(const struct options *options)
{
    return options->png || options->npy || options->json || options->attention;
}

/* Whether the maps are of any use. */
static inline bool options_want_maps(const struct options *options)
{
    return options->png || options->npy || options->json || options->verify != NULL || options->bench > 0;
}

const char *options_help(void);

#endif
