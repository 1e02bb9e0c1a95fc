/* SPDX-License-Identifier: MIT */
#include "source.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"

/* log(100): the limit that V2 sets to its scales. */
#define MAX_LOG_SCALE 4.605170185988091368

static sw_piece direct_piece(sw_kind kind)
{
    switch (kind) {
    case SW_PATCH_WEIGHT: return SW_PIECE_PATCH_WEIGHT;
    case SW_PATCH_BIAS: return SW_PIECE_PATCH_BIAS;
    case SW_PATCH_NORM_WEIGHT: return SW_PIECE_PATCH_NORM_WEIGHT;
    case SW_PATCH_NORM_BIAS: return SW_PIECE_PATCH_NORM_BIAS;
    case SW_ABSOLUTE_POSITION: return SW_PIECE_ABSOLUTE_POSITION;
    case SW_NORM1_WEIGHT: return SW_PIECE_NORM1_WEIGHT;
    case SW_NORM1_BIAS: return SW_PIECE_NORM1_BIAS;
    case SW_QKV_WEIGHT: return SW_PIECE_QKV_WEIGHT;
    case SW_QKV_BIAS: return SW_PIECE_QKV_BIAS;
    case SW_LOGIT_SCALE: return SW_PIECE_LOGIT_SCALE;
    case SW_PROJ_WEIGHT: return SW_PIECE_PROJ_WEIGHT;
    case SW_PROJ_BIAS: return SW_PIECE_PROJ_BIAS;
    case SW_NORM2_WEIGHT: return SW_PIECE_NORM2_WEIGHT;
    case SW_NORM2_BIAS: return SW_PIECE_NORM2_BIAS;
    case SW_FC1_WEIGHT: return SW_PIECE_FC1_WEIGHT;
    case SW_FC1_BIAS: return SW_PIECE_FC1_BIAS;
    case SW_FC2_WEIGHT: return SW_PIECE_FC2_WEIGHT;
    case SW_FC2_BIAS: return SW_PIECE_FC2_BIAS;
    case SW_NORM3_WEIGHT: return SW_PIECE_NORM3_WEIGHT;
    case SW_NORM3_BIAS: return SW_PIECE_NORM3_BIAS;
    case SW_MERGE_NORM_WEIGHT: return SW_PIECE_MERGE_NORM_WEIGHT;
    case SW_MERGE_NORM_BIAS: return SW_PIECE_MERGE_NORM_BIAS;
    case SW_MERGE_WEIGHT: return SW_PIECE_MERGE_WEIGHT;
    case SW_OUT_NORM_WEIGHT: return SW_PIECE_OUT_NORM_WEIGHT;
    case SW_OUT_NORM_BIAS: return SW_PIECE_OUT_NORM_BIAS;
    case SW_KIND_COUNT: break;
    }
    return SW_PIECE_COUNT;
}

int32_t sw_source_tensors(const sw_recognition *recognition, sw_tensor_id id, const sw_tensor *tensors[3])
{
    static const sw_piece weights[] = {SW_PIECE_QUERY_WEIGHT, SW_PIECE_KEY_WEIGHT, SW_PIECE_VALUE_WEIGHT};
    static const sw_piece biases[] = {SW_PIECE_QUERY_BIAS, SW_PIECE_KEY_BIAS, SW_PIECE_VALUE_BIAS};
    tensors[0] = sw_recognition_piece(recognition, direct_piece(id.kind), id.stage, id.block);
    if (tensors[0] != NULL || (id.kind != SW_QKV_WEIGHT && id.kind != SW_QKV_BIAS))
        return 1;
    const sw_piece *parts = id.kind == SW_QKV_WEIGHT ? weights : biases;
    for (int32_t part = 0; part < 3; part++)
        tensors[part] = sw_recognition_piece(recognition, parts[part], id.stage, id.block);
    return 3;
}

/* Rows of the transpose of what the file has: columns of a tensor [columns, rows]. Several stored rows are gathered
 * first, so that what is written lies together. */
static swin_status read_transposed(const sw_checkpoint *checkpoint, const sw_tensor *tensor, int32_t rows,
                                   int32_t columns, int32_t first, int32_t count, float *dst, swin_error *err)
{
    const size_t width = (size_t)count, at_once = 1 + 65536 / width;
    float *buffer = sw_alloc(at_once * width, sizeof *buffer);
    if (buffer == NULL)
        return sw_fail_memory(err, at_once * width * sizeof *buffer, "transposing a tensor");
    swin_status status = SWIN_OK;
    for (size_t c = 0; c < (size_t)columns && status == SWIN_OK; c += at_once) {
        const size_t gathered = (size_t)columns - c < at_once ? (size_t)columns - c : at_once;
        /* Whole stored rows lie one behind the other. */
        const size_t parts = count == rows ? 1 : gathered, values = gathered / parts * width;
        for (size_t p = 0; p < parts && status == SWIN_OK; p++)
            status = sw_checkpoint_read(checkpoint, tensor, (c + p) * (uint64_t)rows + (uint64_t)first, values,
                                        buffer + p * width, err);
        for (size_t r = 0; r < width && status == SWIN_OK; r++) {
            for (size_t g = 0; g < gathered; g++)
                dst[r * (size_t)columns + c + g] = buffer[g * width + r];
        }
    }
    sw_free(buffer);
    return status;
}

/* From order channel, row, column to order column, row, channel. */
static void fold(const float *src, float *dst, size_t channels)
{
    static const size_t group[4] = {0, 2, 1, 3};
    for (size_t c = 0; c < channels; c++) {
        for (size_t k = 0; k < 4; k++)
            dst[group[k] * channels + c] = src[4 * c + k];
    }
}

static swin_status read_unfolded(const sw_checkpoint *checkpoint, const sw_tensor *tensor, int32_t columns,
                                 int32_t first, int32_t count, float *dst, swin_error *err)
{
    /* A vector is one row of which a part is wanted. */
    const bool vector = columns == 1;
    const size_t width = vector ? (size_t)tensor->elements : (size_t)columns;
    float *buffer = sw_alloc(2 * width, sizeof *buffer);
    if (buffer == NULL)
        return sw_fail_memory(err, 2 * width * sizeof *buffer, "reordering a merge");
    swin_status status = SWIN_OK;
    if (vector) {
        status = sw_checkpoint_read(checkpoint, tensor, 0, width, buffer, err);
        if (status == SWIN_OK) {
            fold(buffer, buffer + width, width / 4);
            memcpy(dst, buffer + width + first, (size_t)count * sizeof *dst);
        }
    } else {
        status = sw_checkpoint_read(checkpoint, tensor, (uint64_t)first * width, (size_t)count * width, dst, err);
        for (size_t r = 0; r < (size_t)count && status == SWIN_OK; r++) {
            memcpy(buffer, dst + r * width, width * sizeof *buffer);
            fold(buffer, dst + r * width, width / 4);
        }
    }
    sw_free(buffer);
    return status;
}

static bool is_unfolded(const sw_recognition *recognition, sw_kind kind)
{
    const bool norm = kind == SW_MERGE_NORM_WEIGHT || kind == SW_MERGE_NORM_BIAS;
    return recognition->unfolded && (kind == SW_MERGE_WEIGHT || (norm && recognition->config.version == 1));
}

static swin_status read_part(const sw_checkpoint *checkpoint, const sw_recognition *recognition, sw_tensor_id id,
                             const sw_tensor *tensor, int32_t rows, int32_t columns, int32_t first, int32_t count,
                             float *dst, swin_error *err)
{
    const bool linear = id.kind != SW_PATCH_WEIGHT && tensor->rank == 2;
    const bool planes = id.kind == SW_ABSOLUTE_POSITION && tensor->rank == 4;
    if (planes || (linear && recognition->transposed))
        return read_transposed(checkpoint, tensor, rows, columns, first, count, dst, err);
    if (is_unfolded(recognition, id.kind))
        return read_unfolded(checkpoint, tensor, columns, first, count, dst, err);
    return sw_checkpoint_read(checkpoint, tensor, (uint64_t)first * (uint64_t)columns, (size_t)count * (size_t)columns,
                              dst, err);
}

static void fill(float *dst, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = value;
}

static swin_status finish_scales(const sw_tensor *tensor, int32_t count, float *dst, swin_error *err)
{
    for (int32_t i = 0; i < count; i++) {
        if (!isfinite(dst[i]))
            return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.300s\" holds %g, expected finite scales", tensor->name,
                           (double)dst[i]);
        dst[i] = (float)exp(fmin((double)dst[i], MAX_LOG_SCALE));
    }
    return SWIN_OK;
}

/* V2's keys have no bias, whatever a file stores. */
static void clear_key_bias(int32_t channels, int32_t first, int32_t count, float *dst)
{
    for (int32_t i = 0; i < count; i++) {
        if (first + i >= channels && first + i < 2 * channels)
            dst[i] = 0.0f;
    }
}

swin_status sw_source_read(const sw_checkpoint *checkpoint, const sw_recognition *recognition, sw_tensor_id id,
                           int32_t columns, int32_t first, int32_t count, float *dst, swin_error *err)
{
    const swin_config *config = &recognition->config;
    const int32_t channels = sw_config_channels(config, id.stage);
    const sw_tensor *tensors[3];
    const int32_t parts = sw_source_tensors(recognition, id, tensors);
    const int32_t last = first + count;
    int32_t begin = 0;
    for (int32_t part = 0; part < parts; part++) {
        const sw_tensor *tensor = tensors[part];
        const int32_t rows = parts == 3 ? channels
                             : tensor != NULL ? (int32_t)(tensor->elements / (uint64_t)columns) : last;
        const int32_t from = first > begin ? first : begin, to = last < begin + rows ? last : begin + rows;
        float *out = dst + (size_t)(from - first) * (size_t)columns;
        if (from < to && tensor == NULL)
            fill(out, (size_t)(to - from) * (size_t)columns, id.kind == SW_OUT_NORM_WEIGHT ? 1.0f : 0.0f);
        else if (from < to)
            SW_TRY(read_part(checkpoint, recognition, id, tensor, rows, columns, from - begin, to - from, out, err));
        begin += rows;
    }
    if (id.kind == SW_LOGIT_SCALE)
        return finish_scales(tensors[0], count, dst, err);
    if (id.kind == SW_QKV_BIAS && config->version == 2)
        clear_key_bias(channels, first, count, dst);
    return SWIN_OK;
}
