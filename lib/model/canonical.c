/* SPDX-License-Identifier: MIT */
#include "canonical.h"

static bool has_stage(const swin_config *config, sw_tensor_id id)
{
    return id.stage >= 0 && id.stage < config->stages;
}

static bool has_block(const swin_config *config, sw_tensor_id id)
{
    return has_stage(config, id) && id.block >= 0 && id.block < config->depths[id.stage];
}

bool sw_canonical_shape(const swin_config *config, sw_tensor_id id, int32_t *rows, int32_t *columns)
{
    const int32_t embed = config->embed_dim;
    /* Ids are exact: stage and block are 0 where the kind has none. */
    const bool global = id.stage == 0 && id.block == 0, block = has_block(config, id);
    const bool stage = has_stage(config, id) && id.block == 0, merge = stage && id.stage + 1 < config->stages;
    const int32_t channels = has_stage(config, id) ? sw_config_channels(config, id.stage) : 0;
    const int32_t hidden = has_stage(config, id) ? sw_config_hidden(config, id.stage) : 0;
    bool present = block;
    int32_t r = channels, c = 1;

    switch (id.kind) {
    case SW_PATCH_WEIGHT:
        present = global;
        r = embed;
        c = 3 * config->patch_size * config->patch_size;
        break;
    case SW_PATCH_BIAS:
        present = global;
        r = embed;
        break;
    case SW_PATCH_NORM_WEIGHT:
    case SW_PATCH_NORM_BIAS:
        present = global && config->patch_norm != 0;
        r = embed;
        break;
    case SW_ABSOLUTE_POSITION:
        present = global && config->absolute_position[0] > 0;
        r = config->absolute_position[0] * config->absolute_position[1];
        c = embed;
        break;
    case SW_NORM1_WEIGHT:
    case SW_NORM1_BIAS:
    case SW_NORM2_WEIGHT:
    case SW_NORM2_BIAS:
    case SW_PROJ_BIAS:
    case SW_FC2_BIAS:
        break;
    case SW_QKV_WEIGHT:
        r = 3 * channels;
        c = channels;
        break;
    case SW_QKV_BIAS:
        r = 3 * channels;
        break;
    case SW_LOGIT_SCALE:
        present = block && config->version == 2;
        r = present ? config->heads[id.stage] : 0;
        break;
    case SW_PROJ_WEIGHT:
        c = channels;
        break;
    case SW_FC1_WEIGHT:
        r = hidden;
        c = channels;
        break;
    case SW_FC1_BIAS:
        r = hidden;
        break;
    case SW_FC2_WEIGHT:
        c = hidden;
        break;
    case SW_NORM3_WEIGHT:
    case SW_NORM3_BIAS:
        present = block && sw_config_has_block_norm(config, id.stage, id.block);
        break;
    case SW_MERGE_NORM_WEIGHT:
    case SW_MERGE_NORM_BIAS:
        present = merge;
        r = config->version == 2 ? 2 * channels : 4 * channels;
        break;
    case SW_MERGE_WEIGHT:
        present = merge;
        r = 2 * channels;
        c = 4 * channels;
        break;
    case SW_OUT_NORM_WEIGHT:
    case SW_OUT_NORM_BIAS:
        present = stage && (config->out_norm >> id.stage & 1) != 0;
        break;
    case SW_KIND_COUNT:
        present = false;
        break;
    }
    *rows = present ? r : 0;
    *columns = present ? c : 0;
    return present;
}
