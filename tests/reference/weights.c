/* SPDX-License-Identifier: MIT */
#include "weights.h"

#include <stdio.h>
#include <stdlib.h>

void *reference_alloc(size_t count, size_t size)
{
    void *block = calloc(count > 0 ? count : 1, size);
    if (block == NULL) {
        fprintf(stderr, "the reference is out of memory: %zu elements of %zu bytes\n", count, size);
        abort();
    }
    return block;
}

int32_t reference_channels(const swin_config *config, int32_t stage)
{
    return config->embed_dim << stage;
}

int32_t reference_hidden(const swin_config *config, int32_t stage)
{
    return (int32_t)(reference_channels(config, stage) * config->mlp_ratio);
}

int reference_has_norm3(const swin_config *config, int32_t stage, int32_t block)
{
    if (config->block_norm_period > 0 && (block + 1) % config->block_norm_period == 0)
        return 1;
    return block == config->depths[stage] - 1 && (config->block_norm_last >> stage & 1) != 0;
}

double *reference_vector_from(const float *values, size_t count)
{
    if (values == NULL)
        return NULL;
    double *copy = reference_alloc(count, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = values[i];
    return copy;
}

reference_linear reference_linear_from(int32_t out, int32_t in, const float *weight, const float *bias)
{
    reference_linear linear = {.in = in, .out = out, .bias = reference_vector_from(bias, (size_t)out)};
    linear.weight = reference_alloc((size_t)in * (size_t)out, sizeof *linear.weight);
    for (size_t o = 0; o < (size_t)out; o++)
        for (size_t i = 0; i < (size_t)in; i++)
            linear.weight[i * (size_t)out + o] = weight[o * (size_t)in + i];
    return linear;
}

static void release_norm(reference_norm *norm)
{
    free(norm->weight);
    free(norm->bias);
}

static void release_linear(reference_linear *linear)
{
    free(linear->weight);
    free(linear->bias);
}

void reference_weights_release(reference_weights *weights)
{
    for (int32_t s = 0; s < weights->config.stages; s++) {
        reference_stage *stage = &weights->stages[s];
        for (int32_t b = 0; stage->blocks != NULL && b < weights->config.depths[s]; b++) {
            reference_block *block = &stage->blocks[b];
            release_norm(&block->norm1);
            release_norm(&block->norm2);
            release_norm(&block->norm3);
            release_linear(&block->qkv);
            release_linear(&block->proj);
            release_linear(&block->fc1);
            release_linear(&block->fc2);
            free(block->logit_scale);
        }
        free(stage->blocks);
        release_norm(&stage->merge_norm);
        release_linear(&stage->merge);
        release_norm(&stage->out_norm);
    }
    release_linear(&weights->patch);
    release_norm(&weights->patch_norm);
    free(weights->position);
    *weights = (reference_weights){0};
}
