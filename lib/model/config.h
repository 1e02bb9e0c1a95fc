/* SPDX-License-Identifier: MIT */
/*
 * config.h - configurations: the published presets, and what makes a configuration possible.
 */
#ifndef SW_MODEL_CONFIG_H
#define SW_MODEL_CONFIG_H

#include <stdbool.h>

#include "../base/status.h"

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

#endif
