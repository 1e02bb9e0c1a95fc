/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "../base/memory.h"
#include "../weights/safetensors.h"
#include "canonical.h"
#include "position_bias.h"
#include "random.h"
#include "recognition.h"
#include "source.h"

#define USE_COUNT 4

struct sw_model {
    swin_config config; /* recognition.config of a file */
    bool seeded;
    uint64_t seed;

    sw_checkpoint checkpoint;
    sw_recognition recognition;
    size_t *by_use;                 /* the table's tensors, grouped by use          */
    size_t use_start[USE_COUNT + 1];
    const char *dtype;
    uint64_t parameter_count;

    /* Counted while the weights are read, which any thread may do: each tensor's values once. */
    _Atomic uint64_t *inspected;
    _Atomic uint64_t nonfinite;
};

static sw_model *create_empty(swin_error *err)
{
    sw_model *model = sw_alloc_zeroed(1, sizeof *model);
    if (model == NULL)
        sw_fail_memory(err, sizeof *model, "a model");
    return model;
}

void sw_model_destroy(sw_model *model)
{
    if (model == NULL)
        return;
    sw_recognition_release(&model->recognition);
    sw_checkpoint_close(&model->checkpoint);
    sw_free(model->by_use);
    sw_free(model->inspected);
    sw_free(model);
}

static swin_status group_by_use(sw_model *model, swin_error *err)
{
    const size_t count = model->checkpoint.table.count;
    model->by_use = sw_alloc(count, sizeof *model->by_use);
    model->inspected = sw_alloc(count, sizeof *model->inspected);
    if (model->by_use == NULL || model->inspected == NULL)
        return sw_fail_memory(err, count * sizeof *model->by_use, "the uses of tensors");
    size_t next = 0;
    for (int use = 0; use < USE_COUNT; use++) {
        model->use_start[use] = next;
        for (size_t i = 0; i < count; i++) {
            if (model->recognition.uses[i] == use)
                model->by_use[next++] = i;
        }
    }
    model->use_start[USE_COUNT] = next;
    for (size_t i = 0; i < count; i++)
        atomic_init(&model->inspected[i], 0);
    return SWIN_OK;
}

static void summarise_used(sw_model *model)
{
    model->dtype = "";
    for (size_t i = 0; i < model->use_start[SWIN_TENSOR_USED + 1]; i++) {
        const sw_tensor *tensor = &model->checkpoint.table.tensors[model->by_use[i]];
        const char *dtype = sw_dtype_name(tensor->dtype);
        model->parameter_count += tensor->elements;
        if (i == 0)
            model->dtype = dtype;
        else if (strcmp(model->dtype, dtype) != 0)
            model->dtype = "mixed";
    }
}

swin_status sw_model_open(const char *path, const swin_model_params *params, sw_model **result, swin_error *err)
{
    const swin_model_params defaults = {.struct_size = sizeof defaults};
    if (params == NULL)
        params = &defaults;
    const uint64_t limit = params->max_header_bytes != 0 ? params->max_header_bytes : SW_DEFAULT_MAX_HEADER_BYTES;

    *result = NULL;
    sw_model *model = create_empty(err);
    if (model == NULL)
        return SWIN_ERR_NO_MEMORY;
    swin_status status;
    SW_TRY_OR_FAIL(sw_checkpoint_open(path, limit, &model->checkpoint, err));
    SW_TRY_OR_FAIL(sw_recognise(path, &model->checkpoint, params, &model->recognition, err));
    SW_TRY_OR_FAIL(group_by_use(model, err));
    model->config = model->recognition.config;
    summarise_used(model);
    *result = model;
    return SWIN_OK;

fail:
    sw_model_destroy(model);
    return status;
}

/* All tensors of a configuration, those of position biases included. V2's key has no bias to count. */
static uint64_t count_parameters(const swin_config *config)
{
    uint64_t sum = 0;
    for (int32_t stage = 0; stage < config->stages; stage++) {
        const uint64_t heads = (uint64_t)config->heads[stage];
        for (int32_t block = 0; block < config->depths[stage]; block++) {
            for (int32_t kind = 0; kind < SW_KIND_COUNT; kind++) {
                int32_t rows, columns;
                if (!sw_canonical_shape(config, (sw_tensor_id){(sw_kind)kind, stage, block}, &rows, &columns) ||
                    (kind == SW_QKV_BIAS && config->qkv_bias == 0))
                    continue;
                sum += (uint64_t)rows * (uint64_t)columns;
                if (kind == SW_QKV_BIAS && config->version == 2)
                    sum -= (uint64_t)rows / 3;
            }
            if (config->version == 1)
                sum += (uint64_t)(2 * config->window[stage][0] - 1) * (uint64_t)(2 * config->window[stage][1] - 1) *
                       heads;
            else
                sum += 3 * SW_CPB_HIDDEN + SW_CPB_HIDDEN * heads;
        }
    }
    return sum;
}

swin_status sw_model_create_random(const swin_config *config, uint64_t seed, sw_model **result, swin_error *err)
{
    *result = NULL;
    swin_config own = *config;
    if (own.lineage == SWIN_LINEAGE_AUTO)
        own.lineage = SWIN_LINEAGE_DETECTION;
    SW_TRY(sw_config_check(&own, err));
    sw_model *model = create_empty(err);
    if (model == NULL)
        return SWIN_ERR_NO_MEMORY;
    model->config = own;
    model->seeded = true;
    model->seed = seed;
    model->dtype = "F32";
    model->parameter_count = count_parameters(&own);
    *result = model;
    return SWIN_OK;
}

const swin_config *sw_model_config(const sw_model *model)
{
    return &model->config;
}

void sw_model_info(const sw_model *model, swin_model_info *info)
{
    const size_t *start = model->use_start;
    *info = (swin_model_info){
        .struct_size = sizeof *info,
        .name = sw_config_nearest_preset(&model->config),
        .dialect = model->seeded ? "random" : model->recognition.dialect,
        .lineage = sw_lineage_name(model->config.lineage),
        .lineage_reason = model->seeded ? "as configured" : model->recognition.lineage_reason,
        .window_reason = model->seeded ? "as configured" : model->recognition.window_reason,
        .prefix = model->seeded ? "" : model->recognition.prefix,
        .dtype = model->dtype,
        .parameter_count = model->parameter_count,
        .used_count = start[SWIN_TENSOR_USED + 1] - start[SWIN_TENSOR_USED],
        .ignored_count = start[SWIN_TENSOR_IGNORED + 1] - start[SWIN_TENSOR_IGNORED],
        .foreign_count = start[SWIN_TENSOR_FOREIGN + 1] - start[SWIN_TENSOR_FOREIGN],
        .unknown_count = start[SWIN_TENSOR_UNKNOWN + 1] - start[SWIN_TENSOR_UNKNOWN],
        .nonfinite_count = atomic_load_explicit(&model->nonfinite, memory_order_relaxed),
    };
}

const char *sw_model_tensor_name(const sw_model *model, swin_tensor_use use, size_t index)
{
    if ((int)use < 0 || use >= USE_COUNT || index >= model->use_start[use + 1] - model->use_start[use])
        return NULL;
    return model->checkpoint.table.tensors[model->by_use[model->use_start[use] + index]].name;
}

void sw_model_shape(const sw_model *model, sw_tensor_id id, int32_t *rows, int32_t *columns)
{
    sw_canonical_shape(&model->config, id, rows, columns);
}

/* A tensor that is read again, for another precision, is not counted again. Tensors of several parts count as their
 * first: who reads them at all reads them whole. */
static void inspect(const sw_model *model, sw_tensor_id id, uint64_t whole, const float *values, size_t count)
{
    const sw_tensor *tensors[3];
    const int32_t parts = sw_source_tensors(&model->recognition, id, tensors);
    const sw_tensor *tensor = NULL;
    for (int32_t part = 0; part < parts && tensor == NULL; part++)
        tensor = tensors[part];
    if (tensor == NULL)
        return;
    _Atomic uint64_t *inspected = &model->inspected[tensor - model->checkpoint.table.tensors];
    if (atomic_fetch_add_explicit(inspected, count, memory_order_relaxed) >= whole)
        return;
    const size_t nonfinite = sw_count_nonfinite(values, count);
    if (nonfinite > 0)
        atomic_fetch_add_explicit(&((sw_model *)model)->nonfinite, nonfinite, memory_order_relaxed);
}

static swin_status check_unchanged(const sw_model *model, sw_tensor_id id, swin_error *err)
{
    const sw_tensor *tensors[3];
    const int32_t parts = sw_source_tensors(&model->recognition, id, tensors);
    for (int32_t part = 0; part < parts; part++) {
        if (tensors[part] != NULL)
            SW_TRY(sw_checkpoint_check_unchanged(&model->checkpoint, tensors[part], err));
    }
    return SWIN_OK;
}

swin_status sw_model_read(const sw_model *model, sw_tensor_id id, int32_t first, int32_t count, float *dst,
                          swin_error *err)
{
    int32_t rows, columns;
    if (!sw_canonical_shape(&model->config, id, &rows, &columns) || first < 0 || count < 0 || count > rows - first)
        return sw_fail(err, SWIN_ERR_INTERNAL, "%d rows from row %d of tensor %d of stage %d, block %d do not exist",
                       count, first, (int)id.kind, id.stage, id.block);
    const uint64_t elements = (uint64_t)count * (uint64_t)columns;
    if (model->seeded) {
        sw_random_fill(&model->config, model->seed, id.kind, id.stage, id.block, columns,
                       (uint64_t)first * (uint64_t)columns, elements, dst);
        for (uint64_t i = 0; i < elements && id.kind == SW_LOGIT_SCALE; i++)
            dst[i] = (float)exp((double)dst[i]);
        return SWIN_OK;
    }
    SW_TRY(sw_source_read(&model->checkpoint, &model->recognition, id, columns, first, count, dst, err));
    SW_TRY(check_unchanged(model, id, err));
    inspect(model, id, (uint64_t)rows * (uint64_t)columns, dst, (size_t)elements);
    return SWIN_OK;
}

/* A tensor that only position biases use: rows x columns values as Microsoft's code has them. */
static swin_status read_bias_tensor(const sw_model *model, sw_piece piece, int32_t seeded_kind, int32_t stage,
                                    int32_t block, int32_t rows, int32_t columns, float *dst, swin_error *err)
{
    const size_t count = (size_t)rows * (size_t)columns;
    if (model->seeded) {
        sw_random_fill(&model->config, model->seed, seeded_kind, stage, block, columns, 0, count, dst);
        return SWIN_OK;
    }
    const sw_tensor *tensor = sw_recognition_piece(&model->recognition, piece, stage, block);
    SW_TRY(sw_checkpoint_read(&model->checkpoint, tensor, 0, count, dst, err));
    SW_TRY(sw_checkpoint_check_unchanged(&model->checkpoint, tensor, err));
    _Atomic uint64_t *inspected = &model->inspected[tensor - model->checkpoint.table.tensors];
    if (atomic_fetch_add_explicit(inspected, count, memory_order_relaxed) == 0)
        atomic_fetch_add_explicit(&((sw_model *)model)->nonfinite, sw_count_nonfinite(dst, count),
                                  memory_order_relaxed);
    return SWIN_OK;
}

static swin_status table_bias(const sw_model *model, int32_t stage, int32_t block, int32_t rows, int32_t columns,
                              float *dst, swin_error *err)
{
    const int32_t heads = model->config.heads[stage];
    const int32_t *window = model->seeded ? model->config.window[stage] : model->recognition.stored_window[stage];
    const int32_t height = 2 * window[0] - 1, width = 2 * window[1] - 1;
    const sw_resample_rule rule =
        model->seeded ? sw_lineage_resample_rule(model->config.lineage) : model->recognition.resample;
    float *table = sw_alloc((size_t)height * (size_t)width * (size_t)heads, sizeof *table);
    if (table == NULL)
        return sw_fail_memory(err, (size_t)height * (size_t)width * (size_t)heads * sizeof *table, "a bias table");
    swin_status status = read_bias_tensor(model, SW_PIECE_BIAS_TABLE, SW_RANDOM_BIAS_TABLE, stage, block,
                                          height * width, heads, table, err);
    if (status == SWIN_OK)
        status = sw_resample_table(rule, table, heads, height, width, 2 * rows - 1, 2 * columns - 1, dst, err);
    sw_free(table);
    return status;
}

static swin_status continuous_bias(const sw_model *model, int32_t stage, int32_t block, int32_t rows, int32_t columns,
                                   float *dst, swin_error *err)
{
    const int32_t heads = model->config.heads[stage];
    const size_t floats = SW_CPB_HIDDEN * (3 + (size_t)heads);
    float *weight1 = sw_alloc(floats, sizeof *weight1);
    if (weight1 == NULL)
        return sw_fail_memory(err, floats * sizeof *weight1, "a continuous position bias");
    float *bias1 = weight1 + 2 * SW_CPB_HIDDEN, *weight2 = bias1 + SW_CPB_HIDDEN;
    const int32_t *pretrained = model->config.pretrained_window[stage];
    const sw_cpb cpb = {weight1, bias1, weight2, heads, {pretrained[0], pretrained[1]}};
    swin_status status;
    SW_TRY_OR_FAIL(read_bias_tensor(model, SW_PIECE_CPB1_WEIGHT, SW_RANDOM_CPB1_WEIGHT, stage, block, SW_CPB_HIDDEN, 2,
                                    weight1, err));
    SW_TRY_OR_FAIL(read_bias_tensor(model, SW_PIECE_CPB1_BIAS, SW_RANDOM_CPB1_BIAS, stage, block, SW_CPB_HIDDEN, 1,
                                    bias1, err));
    SW_TRY_OR_FAIL(read_bias_tensor(model, SW_PIECE_CPB2_WEIGHT, SW_RANDOM_CPB2_WEIGHT, stage, block, heads,
                                    SW_CPB_HIDDEN, weight2, err));
    status = sw_cpb_bias(&cpb, rows, columns, dst, err);

fail:
    sw_free(weight1);
    return status;
}

swin_status sw_model_position_bias(const sw_model *model, int32_t stage, int32_t block, int32_t rows, int32_t columns,
                                   float *dst, swin_error *err)
{
    const swin_config *config = &model->config;
    if (stage < 0 || stage >= config->stages || block < 0 || block >= config->depths[stage] || rows < 1 ||
        rows > SW_MAX_WINDOW || columns < 1 || columns > SW_MAX_WINDOW)
        return sw_fail(err, SWIN_ERR_INTERNAL, "no position bias for a window of %d x %d in stage %d, block %d", rows,
                       columns, stage, block);
    if (config->version == 1)
        return table_bias(model, stage, block, rows, columns, dst, err);
    return continuous_bias(model, stage, block, rows, columns, dst, err);
}
