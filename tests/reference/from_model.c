/* SPDX-License-Identifier: MIT */
#include "from_model.h"

#include <stdio.h>
#include <stdlib.h>

static void require(swin_status status, const swin_error *err)
{
    if (status != SWIN_OK) {
        fprintf(stderr, "the reference cannot read the model: %s\n", err->message);
        abort();
    }
}

/* A whole tensor in canonical form, or NULL where the model has none; released with free(). */
static float *read_tensor(const sw_model *model, sw_kind kind, int32_t stage, int32_t block, size_t expected)
{
    const sw_tensor_id id = {kind, stage, block};
    int32_t rows, columns;
    sw_model_shape(model, id, &rows, &columns);
    if (rows == 0)
        return NULL;
    if ((size_t)rows * (size_t)columns != expected) {
        fprintf(stderr, "tensor kind %d of stage %d, block %d is %d x %d, not %zu values\n", (int)kind, (int)stage,
                (int)block, (int)rows, (int)columns, expected);
        abort();
    }
    float *values = reference_alloc(expected, sizeof *values);
    swin_error err = {0};
    require(sw_model_read(model, id, 0, rows, values, &err), &err);
    return values;
}

static double *read_vector(const sw_model *model, sw_kind kind, int32_t stage, int32_t block, int32_t count)
{
    float *values = read_tensor(model, kind, stage, block, (size_t)count);
    double *vector = reference_vector_from(values, (size_t)count);
    free(values);
    return vector;
}

/* Norms and linear maps are a pair of kinds, the weight first. */
static reference_norm read_norm(const sw_model *model, sw_kind weight, int32_t stage, int32_t block, int32_t channels)
{
    return (reference_norm){read_vector(model, weight, stage, block, channels),
                            read_vector(model, (sw_kind)(weight + 1), stage, block, channels)};
}

static reference_linear read_linear(const sw_model *model, sw_kind weight, int has_bias, int32_t stage, int32_t block,
                                    int32_t out, int32_t in)
{
    float *matrix = read_tensor(model, weight, stage, block, (size_t)out * (size_t)in);
    float *bias = has_bias ? read_tensor(model, (sw_kind)(weight + 1), stage, block, (size_t)out) : NULL;
    if (matrix == NULL) {
        fprintf(stderr, "the model has no tensor of kind %d in stage %d, block %d\n", (int)weight, (int)stage,
                (int)block);
        abort();
    }
    const reference_linear linear = reference_linear_from(out, in, matrix, bias);
    free(matrix);
    free(bias);
    return linear;
}

static void read_bias(const void *source, int32_t stage, int32_t block, int32_t rows, int32_t columns, double *bias)
{
    const sw_model *model = source;
    const size_t count = (size_t)sw_model_config(model)->heads[stage] * (size_t)((2 * rows - 1) * (2 * columns - 1));
    float *values = reference_alloc(count, sizeof *values);
    swin_error err = {0};
    require(sw_model_position_bias(model, stage, block, rows, columns, values, &err), &err);
    for (size_t i = 0; i < count; i++)
        bias[i] = values[i];
    free(values);
}

reference_weights reference_weights_from_model(const sw_model *model)
{
    reference_weights weights = {.config = *sw_model_config(model), .position_bias = read_bias, .source = model};
    const swin_config *config = &weights.config;
    const int32_t patch = config->patch_size;
    weights.patch = read_linear(model, SW_PATCH_WEIGHT, 1, 0, 0, config->embed_dim, 3 * patch * patch);
    weights.patch_norm = read_norm(model, SW_PATCH_NORM_WEIGHT, 0, 0, config->embed_dim);
    weights.position = read_vector(model, SW_ABSOLUTE_POSITION, 0, 0,
                                   config->absolute_position[0] * config->absolute_position[1] * config->embed_dim);
    for (int32_t s = 0; s < config->stages; s++) {
        const int32_t c = reference_channels(config, s), hidden = reference_hidden(config, s);
        reference_stage *stage = &weights.stages[s];
        stage->blocks = reference_alloc((size_t)config->depths[s], sizeof *stage->blocks);
        for (int32_t b = 0; b < config->depths[s]; b++) {
            reference_block *block = &stage->blocks[b];
            block->norm1 = read_norm(model, SW_NORM1_WEIGHT, s, b, c);
            block->qkv = read_linear(model, SW_QKV_WEIGHT, 1, s, b, 3 * c, c);
            block->proj = read_linear(model, SW_PROJ_WEIGHT, 1, s, b, c, c);
            block->norm2 = read_norm(model, SW_NORM2_WEIGHT, s, b, c);
            block->fc1 = read_linear(model, SW_FC1_WEIGHT, 1, s, b, hidden, c);
            block->fc2 = read_linear(model, SW_FC2_WEIGHT, 1, s, b, c, hidden);
            if (reference_has_norm3(config, s, b))
                block->norm3 = read_norm(model, SW_NORM3_WEIGHT, s, b, c);
            if (config->version == 2)
                block->logit_scale = read_vector(model, SW_LOGIT_SCALE, s, b, config->heads[s]);
        }
        if (s + 1 < config->stages) {
            stage->merge_norm = read_norm(model, SW_MERGE_NORM_WEIGHT, s, 0, (config->version == 1 ? 4 : 2) * c);
            stage->merge = read_linear(model, SW_MERGE_WEIGHT, 0, s, 0, 2 * c, 4 * c);
        }
        if ((config->out_norm >> s & 1) != 0)
            stage->out_norm = read_norm(model, SW_OUT_NORM_WEIGHT, s, 0, c);
    }
    return weights;
}
