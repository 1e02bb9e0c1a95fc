/* SPDX-License-Identifier: MIT */
/*
 * config.h - configurations: the published presets, and what makes a configuration possible.
 */
#ifndef SW_MODEL_CONFIG_H
#define SW_MODEL_CONFIG_H

#include <stdbool.h>

#include "../base/status.h"

/* What a configuration may not exceed. Far beyond every published model; they keep sizes within int32_t. */
#define SW_MAX_PATCH_SIZE 64
#define SW_MAX_EMBED_DIM 8192
#define SW_MAX_DEPTH 1024
#define SW_MAX_WINDOW 128
#define SW_MAX_HIDDEN (1 << 20)
#define SW_MAX_IMAGE_SIZE (1 << 20)
#define SW_MAX_POSITION_GRID 4096

/* See swin_config_preset() and swin_config_preset_name(); `config` is sized as this library knows it. */
swin_status sw_config_preset(swin_config *config, const char *name, swin_error *err);
const char *sw_config_preset_name(size_t index);

/* The first preset whose sizes are those of `config`, or "". Lineage, level norms and image size do not count. */
const char *sw_config_nearest_preset(const swin_config *config);

/* A configuration without padding doubts: every field of swin_config, sized as this library knows it. */
swin_status sw_config_check(const swin_config *config, swin_error *err);

/* Channels of a stage, and the hidden width of its MLP: the integer part of channels * mlp_ratio. */
static inline int32_t sw_config_channels(const swin_config *config, int32_t stage)
{
    return config->embed_dim << stage;
}

int32_t sw_config_hidden(const swin_config *config, int32_t stage);

/* Whether a block ends in V2's extra norm (huge and giant). */
bool sw_config_has_block_norm(const swin_config *config, int32_t stage, int32_t block);

/* "detection", "microsoft", ... for a swin_lineage; "auto" for anything else. */
const char *sw_lineage_name(int32_t lineage);

#endif
