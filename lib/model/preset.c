/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "config.h"

/* The shapes that were published, apart from windows. */
typedef enum shape {
    V1_TINY,
    V1_SMALL,
    V1_BASE,
    V1_LARGE,
    V1_TINY_C24,
    S3_TINY,
    S3_SMALL,
    S3_BASE,
    V2_TINY,
    V2_SMALL,
    V2_BASE,
    V2_LARGE,
    V2_HUGE,
    V2_GIANT
} shape;

static const struct {
    int8_t version;
    int8_t block_norm_period;
    int16_t embed_dim;
    int8_t depths[SWIN_MAX_STAGES];
    int16_t heads[SWIN_MAX_STAGES];
} shapes[] = {
    [V1_TINY] = {1, 0, 96, {2, 2, 6, 2}, {3, 6, 12, 24}},
    [V1_SMALL] = {1, 0, 96, {2, 2, 18, 2}, {3, 6, 12, 24}},
    [V1_BASE] = {1, 0, 128, {2, 2, 18, 2}, {4, 8, 16, 32}},
    [V1_LARGE] = {1, 0, 192, {2, 2, 18, 2}, {6, 12, 24, 48}},
    [V1_TINY_C24] = {1, 0, 96, {2, 2, 6, 2}, {4, 8, 16, 32}},
    [S3_TINY] = {1, 0, 96, {2, 2, 6, 2}, {3, 6, 12, 24}},
    [S3_SMALL] = {1, 0, 96, {2, 2, 18, 2}, {3, 6, 12, 24}},
    [S3_BASE] = {1, 0, 96, {2, 2, 30, 2}, {3, 6, 12, 24}},
    [V2_TINY] = {2, 0, 96, {2, 2, 6, 2}, {3, 6, 12, 24}},
    [V2_SMALL] = {2, 0, 96, {2, 2, 18, 2}, {3, 6, 12, 24}},
    [V2_BASE] = {2, 0, 128, {2, 2, 18, 2}, {4, 8, 16, 32}},
    [V2_LARGE] = {2, 0, 192, {2, 2, 18, 2}, {6, 12, 24, 48}},
    [V2_HUGE] = {2, 6, 352, {2, 2, 18, 2}, {8, 16, 32, 64}},
    [V2_GIANT] = {2, 6, 512, {2, 2, 42, 4}, {16, 32, 64, 128}},
};

/* What a name stands for. V2's windows are those of the published input size, where the last map clamps its window. */
struct preset {
    const char *name;
    shape shape;
    int16_t image;
    int8_t window[SWIN_MAX_STAGES];
    int8_t pretrained[SWIN_MAX_STAGES];
};

/* Of every network here. */
#define STAGES 4

#define W7 {7, 7, 7, 7}
#define W8 {8, 8, 8, 8}
#define W12 {12, 12, 12, 12}
#define W12_6 {12, 12, 12, 6}
#define W16_8 {16, 16, 16, 8}
#define W24_12 {24, 24, 24, 12}
#define NONE {0, 0, 0, 0}

/* Of equal configurations the one named first is the one that sw_config_nearest_preset() reports. Tiny and small with
 * window 12 are named like their sisters; Microsoft published none. */
static const struct preset presets[] = {
    {"swin_tiny_patch4_window7_224", V1_TINY, 224, W7, NONE},
    {"swin_tiny_patch4_window7_224_22k", V1_TINY, 224, W7, NONE},
    {"swin_tiny_patch4_window7_224_22kto1k_finetune", V1_TINY, 224, W7, NONE},
    {"swin_tiny_patch4_window12_384", V1_TINY, 384, W12, NONE},
    {"swin_tiny_c24_patch4_window8_256", V1_TINY_C24, 256, W8, NONE},
    {"swin_small_patch4_window7_224", V1_SMALL, 224, W7, NONE},
    {"swin_small_patch4_window7_224_22k", V1_SMALL, 224, W7, NONE},
    {"swin_small_patch4_window7_224_22kto1k_finetune", V1_SMALL, 224, W7, NONE},
    {"swin_small_patch4_window12_384", V1_SMALL, 384, W12, NONE},
    {"swin_base_patch4_window7_224", V1_BASE, 224, W7, NONE},
    {"swin_base_patch4_window7_224_22k", V1_BASE, 224, W7, NONE},
    {"swin_base_patch4_window7_224_22kto1k", V1_BASE, 224, W7, NONE},
    {"swin_base_patch4_window12_384", V1_BASE, 384, W12, NONE},
    {"swin_base_patch4_window12_384_22k", V1_BASE, 384, W12, NONE},
    {"swin_base_patch4_window12_384_22kto1k", V1_BASE, 384, W12, NONE},
    {"swin_large_patch4_window7_224", V1_LARGE, 224, W7, NONE},
    {"swin_large_patch4_window7_224_22k", V1_LARGE, 224, W7, NONE},
    {"swin_large_patch4_window7_224_22kto1k", V1_LARGE, 224, W7, NONE},
    {"swin_large_patch4_window12_384", V1_LARGE, 384, W12, NONE},
    {"swin_large_patch4_window12_384_22k", V1_LARGE, 384, W12, NONE},
    {"swin_large_patch4_window12_384_22kto1k", V1_LARGE, 384, W12, NONE},
    {"swin_s3_tiny_224", S3_TINY, 224, {7, 7, 14, 7}, NONE},
    {"swin_s3_small_224", S3_SMALL, 224, {14, 14, 14, 7}, NONE},
    {"swin_s3_base_224", S3_BASE, 224, {7, 7, 14, 7}, NONE},
    {"swinv2_tiny_patch4_window8_256", V2_TINY, 256, W8, NONE},
    {"swinv2_tiny_patch4_window16_256", V2_TINY, 256, W16_8, NONE},
    {"swinv2_small_patch4_window8_256", V2_SMALL, 256, W8, NONE},
    {"swinv2_small_patch4_window16_256", V2_SMALL, 256, W16_8, NONE},
    {"swinv2_base_patch4_window8_256", V2_BASE, 256, W8, NONE},
    {"swinv2_base_patch4_window16_256", V2_BASE, 256, W16_8, NONE},
    {"swinv2_base_patch4_window12_192", V2_BASE, 192, W12_6, NONE},
    {"swinv2_base_patch4_window12_192_22k", V2_BASE, 192, W12_6, NONE},
    {"swinv2_base_patch4_window12to16_192to256", V2_BASE, 256, W16_8, W12_6},
    {"swinv2_base_patch4_window12to16_192to256_22kto1k_ft", V2_BASE, 256, W16_8, W12_6},
    {"swinv2_base_patch4_window12to24_192to384", V2_BASE, 384, W24_12, W12_6},
    {"swinv2_base_patch4_window12to24_192to384_22kto1k_ft", V2_BASE, 384, W24_12, W12_6},
    {"swinv2_large_patch4_window12_192", V2_LARGE, 192, W12_6, NONE},
    {"swinv2_large_patch4_window12_192_22k", V2_LARGE, 192, W12_6, NONE},
    {"swinv2_large_patch4_window12to16_192to256", V2_LARGE, 256, W16_8, W12_6},
    {"swinv2_large_patch4_window12to16_192to256_22kto1k_ft", V2_LARGE, 256, W16_8, W12_6},
    {"swinv2_large_patch4_window12to24_192to384", V2_LARGE, 384, W24_12, W12_6},
    {"swinv2_large_patch4_window12to24_192to384_22kto1k_ft", V2_LARGE, 384, W24_12, W12_6},
    {"swinv2_huge_patch4_window12_192", V2_HUGE, 192, W12_6, NONE},
    {"swinv2_giant_patch4_window12_192", V2_GIANT, 192, W12_6, NONE},
};

#define PRESET_COUNT (sizeof presets / sizeof presets[0])

static void expand(const struct preset *preset, swin_config *config)
{
    *config = (swin_config){
        .struct_size = sizeof *config,
        .version = shapes[preset->shape].version,
        .lineage = SWIN_LINEAGE_DETECTION,
        .patch_size = 4,
        .embed_dim = shapes[preset->shape].embed_dim,
        .stages = STAGES,
        .qkv_bias = 1,
        .patch_norm = 1,
        .image_size = {preset->image, preset->image},
        .block_norm_period = shapes[preset->shape].block_norm_period,
        .mlp_ratio = 4.0,
    };
    for (int32_t stage = 0; stage < SWIN_MAX_STAGES; stage++) {
        config->depths[stage] = shapes[preset->shape].depths[stage];
        config->heads[stage] = shapes[preset->shape].heads[stage];
        for (int axis = 0; axis < 2; axis++) {
            config->window[stage][axis] = preset->window[stage];
            config->pretrained_window[stage][axis] = preset->pretrained[stage];
        }
    }
}

swin_status sw_config_preset(swin_config *config, const char *name, swin_error *err)
{
    for (size_t i = 0; i < PRESET_COUNT; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            expand(&presets[i], config);
            return SWIN_OK;
        }
    }
    size_t nearest = 0;
    while (nearest < PRESET_COUNT && strstr(presets[nearest].name, name) == NULL)
        nearest++;
    return sw_fail(err, SWIN_ERR_ARGUMENT,
                   "no preset is called \"%.80s\", expected the name of a published checkpoint such as \"%s\"", name,
                   presets[nearest < PRESET_COUNT ? nearest : 0].name);
}

const char *sw_config_preset_name(size_t index)
{
    return index < PRESET_COUNT ? presets[index].name : NULL;
}

const char *sw_config_nearest_preset(const swin_config *config)
{
    for (size_t i = 0; i < PRESET_COUNT; i++) {
        swin_config candidate;
        expand(&presets[i], &candidate);
        if (candidate.version == config->version && candidate.patch_size == config->patch_size &&
            candidate.embed_dim == config->embed_dim && candidate.stages == config->stages &&
            memcmp(candidate.depths, config->depths, sizeof config->depths) == 0 &&
            memcmp(candidate.heads, config->heads, sizeof config->heads) == 0 &&
            memcmp(candidate.window, config->window, sizeof config->window) == 0 &&
            memcmp(candidate.pretrained_window, config->pretrained_window, sizeof config->pretrained_window) == 0 &&
            candidate.qkv_bias == config->qkv_bias && candidate.patch_norm == config->patch_norm &&
            config->absolute_position[0] == 0 && candidate.block_norm_period == config->block_norm_period &&
            config->block_norm_last == 0 && candidate.mlp_ratio == config->mlp_ratio)
            return presets[i].name;
    }
    return "";
}
