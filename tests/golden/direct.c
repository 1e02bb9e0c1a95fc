/* SPDX-License-Identifier: MIT */
#include "direct.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *block_name(char name[128], int32_t stage, int32_t block, const char *rest)
{
    snprintf(name, 128, "layers.%d.blocks.%d.%s", (int)stage, (int)block, rest);
    return name;
}

static double *optional(const fixture *file, const char *name)
{
    return fixture_has(file, name) ? fixture_doubles(file, name) : NULL;
}

static reference_norm norm_of(const fixture *file, const char *name)
{
    char part[160];
    reference_norm norm;
    snprintf(part, sizeof part, "%s.weight", name);
    norm.weight = optional(file, part);
    snprintf(part, sizeof part, "%s.bias", name);
    norm.bias = optional(file, part);
    return norm;
}

static reference_linear linear_of(const fixture *file, const char *name)
{
    char part[160];
    int64_t shape[FIXTURE_MAX_RANK];
    snprintf(part, sizeof part, "%s.weight", name);
    const size_t count = fixture_shape(file, part, shape);
    float *weight = fixture_floats(file, part);
    snprintf(part, sizeof part, "%s.bias", name);
    float *bias = fixture_has(file, part) ? fixture_floats(file, part) : NULL;
    const reference_linear linear =
        reference_linear_from((int32_t)shape[0], (int32_t)(count / (size_t)shape[0]), weight, bias);
    free(weight);
    free(bias);
    return linear;
}

/* V1: the stored table [entry][head]. */
static void table_bias(const direct_origin *from, int32_t stage, int32_t block, int32_t entries, double *bias)
{
    char name[128];
    double *table = fixture_doubles(from->file, block_name(name, stage, block, "attn.relative_position_bias_table"));
    const int32_t heads = from->config.heads[stage];
    for (int32_t h = 0; h < heads; h++)
        for (int32_t i = 0; i < entries; i++)
            bias[h * entries + i] = table[i * heads + h];
    free(table);
}

/* V2: a distance in units of the window of training, on a scale of logarithms. */
static double log_distance(int32_t delta, int32_t window)
{
    const double scaled = window > 1 ? 8.0 * delta / (window - 1) : 0;
    return copysign(log2(fabs(scaled) + 1) / 3, scaled);
}

/* V2: 16 * sigmoid of a small network of the two distances. */
static void network_bias(const direct_origin *from, int32_t stage, int32_t block, int32_t rows, int32_t columns,
                         double *bias)
{
    char name[128];
    double *first = fixture_doubles(from->file, block_name(name, stage, block, "attn.cpb_mlp.0.weight"));
    double *first_bias = fixture_doubles(from->file, block_name(name, stage, block, "attn.cpb_mlp.0.bias"));
    double *second = fixture_doubles(from->file, block_name(name, stage, block, "attn.cpb_mlp.2.weight"));
    const int32_t *trained = from->config.pretrained_window[stage];
    for (int32_t h = 0; h < from->config.heads[stage]; h++) {
        for (int32_t dy = 1 - rows; dy < rows; dy++) {
            for (int32_t dx = 1 - columns; dx < columns; dx++) {
                const double y = log_distance(dy, trained[0] > 0 ? trained[0] : rows);
                const double x = log_distance(dx, trained[1] > 0 ? trained[1] : columns);
                double sum = 0;
                for (int32_t i = 0; i < 512; i++)
                    sum += second[h * 512 + i] * fmax(first[2 * i] * y + first[2 * i + 1] * x + first_bias[i], 0);
                *bias++ = 16 / (1 + exp(-sum));
            }
        }
    }
    free(first);
    free(first_bias);
    free(second);
}

static void position_bias(const void *source, int32_t stage, int32_t block, int32_t rows, int32_t columns, double *bias)
{
    const direct_origin *from = source;
    if (from->config.version == 1)
        table_bias(from, stage, block, (2 * rows - 1) * (2 * columns - 1), bias);
    else
        network_bias(from, stage, block, rows, columns, bias);
}

/* V2 stores the biases of query and value apart; the key has none. */
static void complete_v2(const fixture *file, int32_t stage, int32_t index, reference_block *block, int32_t channels,
                        int32_t heads)
{
    char name[128];
    double *query = fixture_doubles(file, block_name(name, stage, index, "attn.q_bias"));
    double *value = fixture_doubles(file, block_name(name, stage, index, "attn.v_bias"));
    block->qkv.bias = reference_alloc(3 * (size_t)channels, sizeof *block->qkv.bias);
    memcpy(block->qkv.bias, query, (size_t)channels * sizeof *query);
    memcpy(block->qkv.bias + 2 * channels, value, (size_t)channels * sizeof *value);
    free(query);
    free(value);
    block->logit_scale = fixture_doubles(file, block_name(name, stage, index, "attn.logit_scale"));
    for (int32_t h = 0; h < heads; h++)
        block->logit_scale[h] = exp(fmin(block->logit_scale[h], log(100)));
}

reference_weights direct_weights(const direct_origin *origin)
{
    const fixture *file = origin->file;
    const swin_config *config = &origin->config;
    reference_weights weights = {.config = *config, .position_bias = position_bias, .source = origin};
    weights.patch = linear_of(file, "patch_embed.proj");
    weights.patch_norm = norm_of(file, "patch_embed.norm");
    for (int32_t s = 0; s < config->stages; s++) {
        char name[128];
        reference_stage *stage = &weights.stages[s];
        stage->blocks = reference_alloc((size_t)config->depths[s], sizeof *stage->blocks);
        for (int32_t b = 0; b < config->depths[s]; b++) {
            reference_block *block = &stage->blocks[b];
            block->norm1 = norm_of(file, block_name(name, s, b, "norm1"));
            block->norm2 = norm_of(file, block_name(name, s, b, "norm2"));
            block->qkv = linear_of(file, block_name(name, s, b, "attn.qkv"));
            block->proj = linear_of(file, block_name(name, s, b, "attn.proj"));
            block->fc1 = linear_of(file, block_name(name, s, b, "mlp.fc1"));
            block->fc2 = linear_of(file, block_name(name, s, b, "mlp.fc2"));
            if (config->version == 2)
                complete_v2(file, s, b, block, reference_channels(config, s), config->heads[s]);
        }
        if (s + 1 < config->stages) {
            snprintf(name, sizeof name, "layers.%d.downsample.norm", (int)s);
            stage->merge_norm = norm_of(file, name);
            snprintf(name, sizeof name, "layers.%d.downsample.reduction", (int)s);
            stage->merge = linear_of(file, name);
        }
        if (config->out_norm >> s & 1) {
            snprintf(name, sizeof name, "norm%d", (int)s);
            stage->out_norm = norm_of(file, name);
        }
    }
    return weights;
}
