/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <math.h>

int32_t sw_config_hidden(const swin_config *config, int32_t stage)
{
    return (int32_t)((double)sw_config_channels(config, stage) * config->mlp_ratio);
}

bool sw_config_has_block_norm(const swin_config *config, int32_t stage, int32_t block)
{
    if (config->block_norm_period > 0 && (block + 1) % config->block_norm_period == 0)
        return true;
    return (config->block_norm_last >> stage & 1) != 0 && block == config->depths[stage] - 1;
}

const char *sw_lineage_name(int32_t lineage)
{
    switch (lineage) {
    case SWIN_LINEAGE_DETECTION: return "detection";
    case SWIN_LINEAGE_MICROSOFT: return "microsoft";
    case SWIN_LINEAGE_TORCHVISION: return "torchvision";
    case SWIN_LINEAGE_TIMM: return "timm";
    case SWIN_LINEAGE_HUGGINGFACE: return "huggingface";
    case SWIN_LINEAGE_MMPRETRAIN: return "mmpretrain";
    default: return "auto";
    }
}

static swin_status check_range(const char *field, int32_t value, int32_t low, int32_t high, swin_error *err)
{
    if (value < low || value > high)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "config.%s is %d, expected %d to %d", field, value, low, high);
    return SWIN_OK;
}

static swin_status check_stage_range(const char *field, int32_t stage, int32_t value, int32_t low, int32_t high,
                                     swin_error *err)
{
    if (value < low || value > high)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "config.%s of stage %d is %d, expected %d to %d", field, stage, value,
                       low, high);
    return SWIN_OK;
}

/* {0, 0} for "none", or two values in range. */
static swin_status check_optional_pair(const char *field, const int32_t pair[2], int32_t low, int32_t high,
                                       swin_error *err)
{
    if (pair[0] == 0 && pair[1] == 0)
        return SWIN_OK;
    if (pair[0] < low || pair[0] > high || pair[1] < low || pair[1] > high)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "config.%s is {%d, %d}, expected {0, 0} or both %d to %d", field,
                       pair[0], pair[1], low, high);
    return SWIN_OK;
}

static swin_status check_stage(const swin_config *config, int32_t stage, swin_error *err)
{
    const int32_t channels = sw_config_channels(config, stage);
    const int32_t heads = config->heads[stage];
    const int32_t *window = config->window[stage];
    const int32_t *pretrained = config->pretrained_window[stage];

    SW_TRY(check_stage_range("depths", stage, config->depths[stage], 1, SW_MAX_DEPTH, err));
    SW_TRY(check_stage_range("heads", stage, heads, 1, channels, err));
    if (channels % heads != 0)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "config.heads of stage %d is %d, which does not divide its %d channels",
                       stage, heads, channels);
    SW_TRY(check_stage_range("window rows", stage, window[0], 1, SW_MAX_WINDOW, err));
    SW_TRY(check_stage_range("window columns", stage, window[1], 1, SW_MAX_WINDOW, err));

    if (pretrained[0] != 0 || pretrained[1] != 0) {
        if (config->version != 2)
            return sw_fail(err, SWIN_ERR_ARGUMENT,
                           "config.pretrained_window of stage %d is {%d, %d}, but only version 2 has one", stage,
                           pretrained[0], pretrained[1]);
        /* A side of 1 would divide the coordinates by zero. */
        if (pretrained[0] < 2 || pretrained[0] > SW_MAX_WINDOW || pretrained[1] < 2 || pretrained[1] > SW_MAX_WINDOW)
            return sw_fail(err, SWIN_ERR_ARGUMENT,
                           "config.pretrained_window of stage %d is {%d, %d}, expected {0, 0} or both 2 to %d", stage,
                           pretrained[0], pretrained[1], SW_MAX_WINDOW);
    }

    const double hidden = (double)channels * config->mlp_ratio;
    if (!(hidden >= 1.0 && hidden < SW_MAX_HIDDEN + 1.0))
        return sw_fail(err, SWIN_ERR_ARGUMENT,
                       "config.mlp_ratio is %g, expected a value that gives stage %d a hidden width of 1 to %d",
                       config->mlp_ratio, stage, SW_MAX_HIDDEN);
    return SWIN_OK;
}

static swin_status check_unused_stage(const swin_config *config, int32_t stage, swin_error *err)
{
    if (config->depths[stage] != 0 || config->heads[stage] != 0 || config->window[stage][0] != 0 ||
        config->window[stage][1] != 0 || config->pretrained_window[stage][0] != 0 ||
        config->pretrained_window[stage][1] != 0)
        return sw_fail(err, SWIN_ERR_ARGUMENT,
                       "config has values for stage %d, expected zeros because config.stages is %d", stage,
                       config->stages);
    return SWIN_OK;
}

swin_status sw_config_check(const swin_config *config, swin_error *err)
{
    SW_TRY(check_range("version", config->version, 1, 2, err));
    SW_TRY(check_range("lineage", config->lineage, SWIN_LINEAGE_DETECTION, SWIN_LINEAGE_MMPRETRAIN, err));
    SW_TRY(check_range("patch_size", config->patch_size, 1, SW_MAX_PATCH_SIZE, err));
    SW_TRY(check_range("embed_dim", config->embed_dim, 1, SW_MAX_EMBED_DIM, err));
    SW_TRY(check_range("stages", config->stages, 1, SWIN_MAX_STAGES, err));
    if (!isfinite(config->mlp_ratio))
        return sw_fail(err, SWIN_ERR_ARGUMENT, "config.mlp_ratio is %g, expected a finite value", config->mlp_ratio);
    for (int32_t stage = 0; stage < SWIN_MAX_STAGES; stage++) {
        if (stage < config->stages)
            SW_TRY(check_stage(config, stage, err));
        else
            SW_TRY(check_unused_stage(config, stage, err));
    }

    const int32_t all_stages = (1 << config->stages) - 1;
    SW_TRY(check_range("qkv_bias", config->qkv_bias, 0, 1, err));
    SW_TRY(check_range("patch_norm", config->patch_norm, 0, 1, err));
    SW_TRY(check_range("out_norm", config->out_norm, 0, all_stages, err));
    SW_TRY(check_optional_pair("absolute_position", config->absolute_position, 1, SW_MAX_POSITION_GRID, err));
    SW_TRY(check_optional_pair("image_size", config->image_size, 1, SW_MAX_IMAGE_SIZE, err));
    SW_TRY(check_range("block_norm_period", config->block_norm_period, 0, SW_MAX_DEPTH, err));
    SW_TRY(check_range("block_norm_last", config->block_norm_last, 0, all_stages, err));
    if (config->version == 1 && (config->block_norm_period != 0 || config->block_norm_last != 0))
        return sw_fail(err, SWIN_ERR_ARGUMENT,
                       "config.block_norm_period is %d and block_norm_last %d, but only version 2 has block norms",
                       config->block_norm_period, config->block_norm_last);
    return SWIN_OK;
}
