/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "recognition.h"

const char *sw_recognition_name(const sw_recognition *recognition, sw_piece piece, int32_t stage, int32_t block,
                                char *name, size_t size)
{
    const uint8_t version = recognition->config.version == 2 ? SW_V2 : SW_V1;
    const size_t prefix = (size_t)snprintf(name, size, "%s", recognition->prefix);
    if (prefix < size)
        sw_naming_format(recognition->naming, version, piece, stage, block, name + prefix, size - prefix);
    return name;
}

static swin_status fail_missing(const sw_recognition *recognition, sw_piece piece, int32_t stage, int32_t block,
                                swin_error *err)
{
    char name[256];
    sw_recognition_name(recognition, piece, stage, block, name, sizeof name);
    if (piece >= SW_PIECE_NORM1_WEIGHT && piece <= SW_PIECE_NORM3_BIAS)
        return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.300s\" is missing; stage %d has blocks up to %d", name,
                       stage, recognition->config.depths[stage] - 1);
    return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.300s\" is missing", name);
}

/* A piece from which a size is taken: there, and of the rank expected. */
static swin_status need(const sw_recognition *recognition, sw_piece piece, int32_t stage, int32_t rank,
                        const sw_tensor **tensor, swin_error *err)
{
    *tensor = sw_recognition_piece(recognition, piece, stage, 0);
    if (*tensor == NULL)
        return fail_missing(recognition, piece, stage, 0, err);
    if ((*tensor)->rank != rank) {
        char shape[96];
        return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.200s\" has shape %s, expected %d dimensions",
                       (*tensor)->name, sw_tensor_shape_text(*tensor, shape, sizeof shape), rank);
    }
    return SWIN_OK;
}

/* A side of a tensor as a size of the model. */
static swin_status side(const sw_tensor *tensor, int axis, int32_t limit, const char *what, int32_t *value,
                        swin_error *err)
{
    if (tensor->shape[axis] < 1 || tensor->shape[axis] > (uint64_t)limit) {
        char shape[96];
        return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.200s\" has shape %s, expected 1 to %d %s in dimension %d",
                       tensor->name, sw_tensor_shape_text(tensor, shape, sizeof shape), limit, what, axis);
    }
    *value = (int32_t)tensor->shape[axis];
    return SWIN_OK;
}

static swin_status derive_patch(sw_recognition *recognition, swin_error *err)
{
    const sw_tensor *patch;
    SW_TRY(need(recognition, SW_PIECE_PATCH_WEIGHT, 0, 4, &patch, err));
    if (patch->shape[1] != 3 || patch->shape[2] != patch->shape[3]) {
        char shape[96];
        return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.200s\" has shape %s, expected [E, 3, P, P]", patch->name,
                       sw_tensor_shape_text(patch, shape, sizeof shape));
    }
    SW_TRY(side(patch, 0, SW_MAX_EMBED_DIM, "channels", &recognition->config.embed_dim, err));
    return side(patch, 2, SW_MAX_PATCH_SIZE, "pixels", &recognition->config.patch_size, err);
}

/* Paddle stores linear weights [in, out]. A square one does not tell, so the file's first stacked one decides for all.
 * */
static void derive_transposition(sw_recognition *recognition)
{
    const sw_tensor *qkv = sw_recognition_piece(recognition, SW_PIECE_QKV_WEIGHT, 0, 0);
    recognition->transposed = qkv != NULL && qkv->rank == 2 && qkv->shape[0] < qkv->shape[1];
}

static swin_status derive_heads(sw_recognition *recognition, int32_t stage, swin_error *err)
{
    const bool v1 = recognition->config.version == 1;
    const int32_t channels = sw_config_channels(&recognition->config, stage);
    int32_t *heads = &recognition->config.heads[stage];
    const sw_tensor *tensor;
    SW_TRY(need(recognition, v1 ? SW_PIECE_BIAS_TABLE : SW_PIECE_LOGIT_SCALE, stage, v1 ? 2 : 3, &tensor, err));
    SW_TRY(side(tensor, v1 ? 1 : 0, channels, "heads", heads, err));
    if (channels % *heads != 0)
        return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.200s\" has %d heads, which do not divide the %d channels of "
                       "stage %d", tensor->name, *heads, channels, stage);
    return SWIN_OK;
}

/* One ratio whose products with each stage's channels have the hidden widths as integer parts. */
static swin_status derive_ratio(sw_recognition *recognition, swin_error *err)
{
    swin_config *config = &recognition->config;
    const sw_tensor *fc1[SWIN_MAX_STAGES];
    int32_t hidden[SWIN_MAX_STAGES] = {0};
    double ratio = 0.0;
    for (int32_t stage = 0; stage < config->stages; stage++) {
        SW_TRY(need(recognition, SW_PIECE_FC1_WEIGHT, stage, 2, &fc1[stage], err));
        SW_TRY(side(fc1[stage], recognition->transposed ? 1 : 0, SW_MAX_HIDDEN, "hidden channels", &hidden[stage],
                    err));
        ratio = fmax(ratio, (double)hidden[stage] / sw_config_channels(config, stage));
    }
    /* The quotient may have been rounded down, and its product with it. */
    for (int step = 0; step < 3; step++) {
        config->mlp_ratio = ratio;
        bool fits = true;
        for (int32_t stage = 0; stage < config->stages; stage++)
            fits = fits && sw_config_hidden(config, stage) >= hidden[stage];
        if (fits)
            break;
        ratio = nextafter(ratio, INFINITY);
    }
    for (int32_t stage = 0; stage < config->stages; stage++) {
        if (sw_config_hidden(config, stage) != hidden[stage])
            return sw_fail(err, SWIN_ERR_MISMATCH,
                           "tensor \"%.200s\" has %d hidden channels, expected %d as of the ratio %g of other stages",
                           fc1[stage]->name, hidden[stage], sw_config_hidden(config, stage), config->mlp_ratio);
    }
    return SWIN_OK;
}

static bool has_any(const sw_recognition *recognition, const sw_piece *pieces, size_t count, int32_t stage,
                    int32_t block)
{
    for (size_t i = 0; i < count; i++) {
        if (sw_recognition_piece(recognition, pieces[i], stage, block) != NULL)
            return true;
    }
    return false;
}

static bool has_block_norm(const sw_recognition *recognition, int32_t stage, int32_t block)
{
    static const sw_piece pieces[] = {SW_PIECE_NORM3_WEIGHT, SW_PIECE_NORM3_BIAS};
    return has_any(recognition, pieces, 2, stage, block);
}

/* The smallest period, with last blocks apart, that explains which blocks have a third norm. */
static swin_status derive_block_norms(sw_recognition *recognition, swin_error *err)
{
    swin_config *config = &recognition->config;
    const char *example = NULL;
    for (int32_t period = 0; period <= SW_MAX_DEPTH; period++) {
        bool fits = true;
        config->block_norm_period = period;
        config->block_norm_last = 0;
        for (int32_t stage = 0; stage < config->stages; stage++) {
            const int32_t last = config->depths[stage] - 1;
            if (has_block_norm(recognition, stage, last) && !sw_config_has_block_norm(config, stage, last))
                config->block_norm_last |= 1 << stage;
            for (int32_t block = 0; block <= last && fits; block++) {
                const sw_tensor *norm = sw_recognition_piece(recognition, SW_PIECE_NORM3_WEIGHT, stage, block);
                if (norm != NULL && example == NULL)
                    example = norm->name;
                fits = has_block_norm(recognition, stage, block) == sw_config_has_block_norm(config, stage, block);
            }
        }
        if (fits)
            return SWIN_OK;
    }
    return sw_fail(err, SWIN_ERR_MISMATCH,
                   "tensor \"%.200s\" and its like are in blocks that follow no period, expected every n-th block of "
                   "each stage", example == NULL ? "norm3" : example);
}

static void derive_options(sw_recognition *recognition)
{
    static const sw_piece qkv[] = {SW_PIECE_QKV_BIAS, SW_PIECE_QUERY_BIAS, SW_PIECE_KEY_BIAS, SW_PIECE_VALUE_BIAS};
    static const sw_piece patch[] = {SW_PIECE_PATCH_NORM_WEIGHT, SW_PIECE_PATCH_NORM_BIAS};
    static const sw_piece out[] = {SW_PIECE_OUT_NORM_WEIGHT, SW_PIECE_OUT_NORM_BIAS};
    swin_config *config = &recognition->config;
    config->patch_norm = has_any(recognition, patch, 2, 0, 0);
    for (int32_t stage = 0; stage < config->stages; stage++) {
        if (has_any(recognition, out, 2, stage, 0))
            config->out_norm |= 1 << stage;
        for (int32_t block = 0; block < config->depths[stage]; block++) {
            if (has_any(recognition, qkv, 4, stage, block))
                config->qkv_bias = 1;
        }
    }
}

swin_status sw_derive_sizes(sw_recognition *recognition, swin_error *err)
{
    SW_TRY(derive_patch(recognition, err));
    derive_transposition(recognition);
    for (int32_t stage = 0; stage < recognition->config.stages; stage++)
        SW_TRY(derive_heads(recognition, stage, err));
    SW_TRY(derive_ratio(recognition, err));
    derive_options(recognition);
    return derive_block_norms(recognition, err);
}

/* The shape that a piece must have. */
struct shape {
    int32_t rank;
    uint64_t sides[4];
};

static struct shape vector(int32_t length)
{
    return (struct shape){1, {(uint64_t)length}};
}

static struct shape matrix(const sw_recognition *recognition, int32_t out, int32_t in)
{
    if (recognition->transposed)
        return (struct shape){2, {(uint64_t)in, (uint64_t)out}};
    return (struct shape){2, {(uint64_t)out, (uint64_t)in}};
}

static struct shape expected_shape(const sw_recognition *recognition, sw_piece piece, int32_t stage)
{
    const swin_config *config = &recognition->config;
    const int32_t channels = sw_config_channels(config, stage), hidden = sw_config_hidden(config, stage);
    const uint64_t heads = (uint64_t)config->heads[stage];
    switch (piece) {
    case SW_PIECE_PATCH_WEIGHT: {
        const uint64_t patch = (uint64_t)config->patch_size;
        return (struct shape){4, {(uint64_t)config->embed_dim, 3, patch, patch}};
    }
    case SW_PIECE_PATCH_BIAS:
    case SW_PIECE_PATCH_NORM_WEIGHT:
    case SW_PIECE_PATCH_NORM_BIAS: return vector(config->embed_dim);
    case SW_PIECE_QKV_WEIGHT: return matrix(recognition, 3 * channels, channels);
    case SW_PIECE_QKV_BIAS: return vector(3 * channels);
    case SW_PIECE_QUERY_WEIGHT:
    case SW_PIECE_KEY_WEIGHT:
    case SW_PIECE_VALUE_WEIGHT:
    case SW_PIECE_PROJ_WEIGHT: return matrix(recognition, channels, channels);
    case SW_PIECE_BIAS_TABLE:
        return (struct shape){2, {sw_recognition_piece(recognition, piece, stage, 0)->shape[0], heads}};
    case SW_PIECE_LOGIT_SCALE: return (struct shape){3, {heads, 1, 1}};
    case SW_PIECE_CPB1_WEIGHT: return matrix(recognition, SW_CPB_HIDDEN, 2);
    case SW_PIECE_CPB1_BIAS: return vector(SW_CPB_HIDDEN);
    case SW_PIECE_CPB2_WEIGHT: return matrix(recognition, config->heads[stage], SW_CPB_HIDDEN);
    case SW_PIECE_FC1_WEIGHT: return matrix(recognition, hidden, channels);
    case SW_PIECE_FC1_BIAS: return vector(hidden);
    case SW_PIECE_FC2_WEIGHT: return matrix(recognition, channels, hidden);
    case SW_PIECE_MERGE_NORM_WEIGHT:
    case SW_PIECE_MERGE_NORM_BIAS: return vector(config->version == 2 ? 2 * channels : 4 * channels);
    case SW_PIECE_MERGE_WEIGHT: return matrix(recognition, 2 * channels, 4 * channels);
    default: return vector(channels);
    }
}

static bool is_required(const sw_recognition *recognition, sw_piece piece, int32_t stage, int32_t block)
{
    const swin_config *config = &recognition->config;
    bool wanted;
    switch (piece) {
    case SW_PIECE_PATCH_WEIGHT:
    case SW_PIECE_PATCH_BIAS: wanted = stage == 0 && block == 0; break;
    case SW_PIECE_PATCH_NORM_WEIGHT:
    case SW_PIECE_PATCH_NORM_BIAS: wanted = stage == 0 && block == 0 && config->patch_norm != 0; break;
    case SW_PIECE_ABSOLUTE_POSITION: wanted = false; break;
    case SW_PIECE_QKV_BIAS:
    case SW_PIECE_QUERY_BIAS:
    case SW_PIECE_KEY_BIAS:
    case SW_PIECE_VALUE_BIAS: wanted = config->qkv_bias != 0; break;
    case SW_PIECE_NORM3_WEIGHT:
    case SW_PIECE_NORM3_BIAS: wanted = sw_config_has_block_norm(config, stage, block); break;
    case SW_PIECE_MERGE_NORM_WEIGHT:
    case SW_PIECE_MERGE_NORM_BIAS:
    case SW_PIECE_MERGE_WEIGHT: wanted = block == 0 && stage + 1 < config->stages; break;
    case SW_PIECE_OUT_NORM_WEIGHT:
    case SW_PIECE_OUT_NORM_BIAS: wanted = block == 0 && (config->out_norm >> stage & 1) != 0; break;
    default: wanted = piece >= SW_PIECE_NORM1_WEIGHT && piece < SW_PIECE_INDEX; break;
    }
    return wanted && sw_naming_has(recognition->naming, config->version == 2 ? SW_V2 : SW_V1, piece);
}

static swin_status check_tensor(const sw_recognition *recognition, const sw_tensor *tensor, sw_piece piece,
                                int32_t stage, swin_error *err)
{
    const struct shape expected = expected_shape(recognition, piece, stage);
    if (tensor->rank != expected.rank ||
        memcmp(tensor->shape, expected.sides, (size_t)expected.rank * sizeof expected.sides[0]) != 0) {
        char found[96], wanted[96];
        sw_tensor example = {.rank = expected.rank};
        memcpy(example.shape, expected.sides, sizeof expected.sides);
        return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.200s\" has shape %s, expected %s", tensor->name,
                       sw_tensor_shape_text(tensor, found, sizeof found),
                       sw_tensor_shape_text(&example, wanted, sizeof wanted));
    }
    if (!sw_dtype_is_weight(tensor->dtype))
        return sw_fail(err, SWIN_ERR_UNSUPPORTED, "tensor \"%.200s\" has type %s, expected F32, F16, BF16 or F64",
                       tensor->name, sw_dtype_name(tensor->dtype));
    return SWIN_OK;
}

swin_status sw_check_shapes(const sw_recognition *recognition, swin_error *err)
{
    for (int32_t stage = 0; stage < recognition->config.stages; stage++) {
        for (int32_t block = 0; block < recognition->config.depths[stage]; block++) {
            for (int32_t p = 0; p < SW_PIECE_INDEX; p++) {
                const sw_piece piece = (sw_piece)p;
                if (!is_required(recognition, piece, stage, block))
                    continue;
                const sw_tensor *tensor = sw_recognition_piece(recognition, piece, stage, block);
                if (tensor == NULL)
                    return fail_missing(recognition, piece, stage, block, err);
                SW_TRY(check_tensor(recognition, tensor, piece, stage, err));
            }
        }
    }
    return SWIN_OK;
}
