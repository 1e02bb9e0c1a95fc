/* SPDX-License-Identifier: MIT */
/*
 * weights.h - what the reference computes with: a configuration and every weight in double precision.
 *
 * Linear weights lie [in][out], so that the inner loop of a product runs over outputs. Nothing here uses the library's
 * allocator: tests that count its blocks may run the reference beside it. Running out of memory ends the test.
 */
#ifndef TESTS_REFERENCE_WEIGHTS_H
#define TESTS_REFERENCE_WEIGHTS_H

#include <swin/swin.h>

typedef struct reference_norm {
    double *weight, *bias; /* NULL: there is no such norm */
} reference_norm;

typedef struct reference_linear {
    int32_t in, out;
    double *weight; /* [in][out]                          */
    double *bias;   /* [out], or NULL where there is none */
} reference_linear;

typedef struct reference_block {
    reference_norm norm1, norm2, norm3; /* norm3 in the huge and giant V2 alone */
    reference_linear qkv, proj, fc1, fc2;
    double *logit_scale; /* V2: [heads], the factor itself: exp(min(stored, ln 100)) */
} reference_block;

typedef struct reference_stage {
    reference_block *blocks;
    reference_norm merge_norm; /* V1 over 4C, V2 over 2C channels */
    reference_linear merge;
    reference_norm out_norm;
} reference_stage;

typedef struct reference_weights {
    swin_config config;
    reference_linear patch; /* in: channel, row, column of a patch */
    reference_norm patch_norm;
    double *position; /* [rows][columns][channels] of config.absolute_position, or NULL */
    reference_stage stages[SWIN_MAX_STAGES];

    /* The position bias of a block for windows of rows x columns tokens, [head][2 * rows - 1][2 * columns - 1], entry
     * (dy + rows - 1, dx + columns - 1) for a query that stands dy rows below and dx columns right of the key. */
    void (*position_bias)(const void *source, int32_t stage, int32_t block, int32_t rows, int32_t columns,
                          double *bias);
    const void *source;
} reference_weights;

/* malloc() that never fails, zeroed. */
void *reference_alloc(size_t count, size_t size);

/* Channels and hidden width as the configuration says. */
int32_t reference_channels(const swin_config *config, int32_t stage);
int32_t reference_hidden(const swin_config *config, int32_t stage);

/* Whether a block of a V2 model ends in a norm. */
int reference_has_norm3(const swin_config *config, int32_t stage, int32_t block);

/* A linear map of a [out][in] matrix, and a vector, both copied; NULL stays NULL. */
reference_linear reference_linear_from(int32_t out, int32_t in, const float *weight, const float *bias);
double *reference_vector_from(const float *values, size_t count);

void reference_weights_release(reference_weights *weights);

#endif
