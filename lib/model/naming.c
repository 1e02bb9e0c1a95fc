/* SPDX-License-Identifier: MIT */
#include "naming.h"

#include <stdio.h>
#include <string.h>

#include "pattern.h"

#define PAIR(pattern, PIECE) \
    {pattern ".weight", SW_PIECE_##PIECE##_WEIGHT, 0, 0}, {pattern ".bias", SW_PIECE_##PIECE##_BIAS, 0, 0}
#define PAIR_V2(pattern, PIECE) \
    {pattern ".weight", SW_PIECE_##PIECE##_WEIGHT, SW_V2, 0}, {pattern ".bias", SW_PIECE_##PIECE##_BIAS, SW_V2, 0}
/* Both of a pair mean the same. */
#define BOTH(pattern, PIECE, scope) \
    {pattern ".weight", SW_PIECE_##PIECE, 0, scope}, {pattern ".bias", SW_PIECE_##PIECE, 0, scope}
#define END {NULL, SW_PIECE_COUNT, 0, 0}

static const sw_row merge_rows[] = {PAIR("norm", MERGE_NORM), {"reduction.weight", SW_PIECE_MERGE_WEIGHT, 0, 0}, END};

/* What V2 has in the place of the table, under the name that each codebase gives to the attention. */
#define CONTINUOUS_BIAS(attention, network)                                      \
    {attention "logit_scale", SW_PIECE_LOGIT_SCALE, SW_V2, 0},                   \
    {attention network ".0.weight", SW_PIECE_CPB1_WEIGHT, SW_V2, 0},             \
    {attention network ".0.bias", SW_PIECE_CPB1_BIAS, SW_V2, 0},                 \
    {attention network ".2.weight", SW_PIECE_CPB2_WEIGHT, SW_V2, 0}
#define TABLE(attention) {attention "relative_position_bias_table", SW_PIECE_BIAS_TABLE, SW_V1, 0}
#define BUFFERS(attention)                                                       \
    {attention "relative_position_index", SW_PIECE_INDEX, 0, 0},                 \
    {attention "relative_coords_table", SW_PIECE_COORDINATES, SW_V2, 0}

/* Query, key and value in one matrix; V2 stores the biases apart. */
#define STACKED_QKV(attention)                                                   \
    {attention "qkv.weight", SW_PIECE_QKV_WEIGHT, 0, 0},                         \
    {attention "qkv.bias", SW_PIECE_QKV_BIAS, SW_V1, 0},                         \
    {attention "q_bias", SW_PIECE_QUERY_BIAS, SW_V2, 0},                         \
    {attention "v_bias", SW_PIECE_VALUE_BIAS, SW_V2, 0},                         \
    {attention "k_bias", SW_PIECE_ZERO_BIAS, SW_V2, 0}

/* Microsoft's code, and the detection code made from it. SimMIM's older files call the network rpe_mlp. */
static const sw_row microsoft_top[] = {
    PAIR("patch_embed.proj", PATCH),
    PAIR("patch_embed.norm", PATCH_NORM),
    {"absolute_pos_embed", SW_PIECE_ABSOLUTE_POSITION, 0, 0},
    PAIR("norm{s}", OUT_NORM),
    BOTH("norm", FINAL_NORM, SW_SCOPE_OWN),
    BOTH("head", HEAD, SW_SCOPE_OWN),
    {"mask_token", SW_PIECE_MASK_TOKEN, 0, 0},
    END,
};

static const sw_row microsoft_block[] = {
    PAIR("norm1", NORM1),
    STACKED_QKV("attn."),
    TABLE("attn."),
    CONTINUOUS_BIAS("attn.", "cpb_mlp"),
    CONTINUOUS_BIAS("attn.", "rpe_mlp"),
    PAIR("attn.proj", PROJ),
    PAIR("norm2", NORM2),
    PAIR("mlp.fc1", FC1),
    PAIR("mlp.fc2", FC2),
    PAIR_V2("norm3", NORM3),
    BUFFERS("attn."),
    {"attn_mask", SW_PIECE_MASK, 0, 0},
    END,
};

/* timm from 0.9 on: a merge belongs to the stage that it opens. */
static const sw_row timm_top[] = {
    PAIR("patch_embed.proj", PATCH),
    PAIR("patch_embed.norm", PATCH_NORM),
    {"absolute_pos_embed", SW_PIECE_ABSOLUTE_POSITION, 0, 0},
    BOTH("norm", FINAL_NORM, SW_SCOPE_OWN),
    BOTH("head.fc", HEAD, SW_SCOPE_OWN),
    END,
};

/* mmdetection and mmpretrain. Files of mmpretrain from before its version 2 call the last level's norm "norm". */
static const sw_row mm_top[] = {
    PAIR("patch_embed.projection", PATCH),
    PAIR("patch_embed.norm", PATCH_NORM),
    {"absolute_pos_embed", SW_PIECE_ABSOLUTE_POSITION, 0, 0},
    PAIR("norm{s}", OUT_NORM),
    PAIR("norm", OUT_NORM),
    BOTH("head.fc", HEAD, SW_SCOPE_PARENT),
    {"mask_token", SW_PIECE_MASK_TOKEN, 0, 0},
    END,
};

static const sw_row mm_block[] = {
    PAIR("norm1", NORM1),
    STACKED_QKV("attn.w_msa."),
    TABLE("attn.w_msa."),
    CONTINUOUS_BIAS("attn.w_msa.", "cpb_mlp"),
    PAIR("attn.w_msa.proj", PROJ),
    PAIR("norm2", NORM2),
    PAIR("ffn.layers.0.0", FC1),
    PAIR("ffn.layers.1", FC2),
    PAIR_V2("norm3", NORM3),
    BUFFERS("attn.w_msa."),
    {"attn_mask", SW_PIECE_MASK, 0, 0},
    {"attn.attn_mask", SW_PIECE_MASK, 0, 0},
    END,
};

/* torchvision: blocks and merges alternate in one sequence; V2 keeps one bias whose middle third it never adds. */
static const sw_row torchvision_top[] = {
    PAIR("features.0.0", PATCH),
    PAIR("features.0.2", PATCH_NORM),
    BOTH("norm", FINAL_NORM, SW_SCOPE_OWN),
    BOTH("head", HEAD, SW_SCOPE_OWN),
    END,
};

static const sw_row torchvision_block[] = {
    PAIR("norm1", NORM1),
    PAIR("attn.qkv", QKV),
    TABLE("attn."),
    CONTINUOUS_BIAS("attn.", "cpb_mlp"),
    PAIR("attn.proj", PROJ),
    PAIR("norm2", NORM2),
    PAIR("mlp.0", FC1),
    PAIR("mlp.3", FC2),
    BUFFERS("attn."),
    END,
};

/* Hugging Face. The levels' norms lie beside the encoder or one part up; MaskFormer's own copy numbers them. */
static const sw_row huggingface_top[] = {
    PAIR("embeddings.patch_embeddings.projection", PATCH),
    PAIR("embeddings.norm", PATCH_NORM),
    {"embeddings.position_embeddings", SW_PIECE_ABSOLUTE_POSITION, 0, 0},
    {"embeddings.mask_token", SW_PIECE_MASK_TOKEN, 0, 0},
    {"hidden_states_norms.stage{s+1}.weight", SW_PIECE_OUT_NORM_WEIGHT, 0, SW_SCOPE_BOTH},
    {"hidden_states_norms.stage{s+1}.bias", SW_PIECE_OUT_NORM_BIAS, 0, SW_SCOPE_BOTH},
    {"hidden_states_norms.{s}.weight", SW_PIECE_OUT_NORM_WEIGHT, 0, SW_SCOPE_BOTH},
    {"hidden_states_norms.{s}.bias", SW_PIECE_OUT_NORM_BIAS, 0, SW_SCOPE_BOTH},
    BOTH("hidden_states_norms.stem", HEAD, SW_SCOPE_BOTH),
    BOTH("layernorm", FINAL_NORM, SW_SCOPE_OWN),
    BOTH("swin.layernorm", FINAL_NORM, SW_SCOPE_OWN), /* SwinBackbone as transformers 5 saves it */
    BOTH("classifier", HEAD, SW_SCOPE_PARENT),
    END,
};

static const sw_row huggingface_block[] = {
    PAIR("layernorm_before", NORM1),
    PAIR("attention.self.query", QUERY),
    {"attention.self.key.weight", SW_PIECE_KEY_WEIGHT, 0, 0},
    {"attention.self.key.bias", SW_PIECE_KEY_BIAS, SW_V1, 0},
    PAIR("attention.self.value", VALUE),
    TABLE("attention.self."),
    CONTINUOUS_BIAS("attention.self.", "continuous_position_bias_mlp"),
    PAIR("attention.output.dense", PROJ),
    PAIR("layernorm_after", NORM2),
    PAIR("intermediate.dense", FC1),
    PAIR("output.dense", FC2),
    BUFFERS("attention.self."),
    END,
};

/* transformers 5 renamed what is inside a block. */
static const sw_row huggingface5_block[] = {
    PAIR("layernorm_before", NORM1),
    PAIR("attention.q_proj", QUERY),
    {"attention.k_proj.weight", SW_PIECE_KEY_WEIGHT, 0, 0},
    {"attention.k_proj.bias", SW_PIECE_KEY_BIAS, SW_V1, 0},
    PAIR("attention.v_proj", VALUE),
    TABLE("attention.relative_position_bias."),
    CONTINUOUS_BIAS("attention.", "continuous_position_bias_mlp"),
    PAIR("attention.o_proj", PROJ),
    PAIR("layernorm_after", NORM2),
    PAIR("mlp.fc1", FC1),
    PAIR("mlp.fc2", FC2),
    BUFFERS("attention.relative_position_bias."),
    BUFFERS("attention."),
    END,
};

/* timm's other reading of the V2 paper, known only to be refused. */
static const sw_row cr_block[] = {
    PAIR("norm1", NORM1),
    {"attn.qkv.weight", SW_PIECE_QKV_WEIGHT, 0, 0},
    {"attn.qkv.bias", SW_PIECE_QKV_BIAS, 0, 0},
    {"attn.logit_scale", SW_PIECE_LOGIT_SCALE, SW_V2, 0},
    {"attn.tau", SW_PIECE_LOGIT_SCALE, SW_V2, 0},
    BOTH("attn.meta_mlp.fc1", ALIEN, SW_SCOPE_OWN),
    BOTH("attn.meta_mlp.fc2", ALIEN, SW_SCOPE_OWN),
    PAIR("attn.proj", PROJ),
    PAIR("norm2", NORM2),
    PAIR("mlp.fc1", FC1),
    PAIR("mlp.fc2", FC2),
    PAIR_V2("norm3", NORM3),
    END,
};

static const sw_naming namings[] = {
    {
        .name = "microsoft",
        .anchor = "patch_embed.proj.weight",
        .top = microsoft_top,
        .block = "layers.{s}.blocks.{b}.",
        .blocks = microsoft_block,
        .merge = {"layers.{s}.downsample.", "layers.{s}.downsample."},
    },
    {
        .name = "timm",
        .anchor = "patch_embed.proj.weight",
        .top = timm_top,
        .block = "layers.{s}.blocks.{b}.",
        .blocks = microsoft_block,
        .merge = {"layers.{s+1}.downsample.", "layers.{s+1}.downsample."},
    },
    {
        .name = "timm features_only",
        .anchor = "patch_embed.proj.weight",
        .top = timm_top,
        .block = "layers_{s}.blocks.{b}.",
        .blocks = microsoft_block,
        .merge = {"layers_{s+1}.downsample.", "layers_{s+1}.downsample."},
    },
    {
        .name = "mmdetection",
        .anchor = "patch_embed.projection.weight",
        .top = mm_top,
        .block = "stages.{s}.blocks.{b}.",
        .blocks = mm_block,
        .merge = {"stages.{s}.downsample.", "stages.{s+1}.downsample."},
    },
    {
        .name = "torchvision",
        .anchor = "features.0.0.weight",
        .top = torchvision_top,
        .block = "features.{2s+1}.{b}.",
        .blocks = torchvision_block,
        .merge = {"features.{2s+2}.", "features.{2s+2}."},
    },
    {
        .name = "huggingface",
        .anchor = "embeddings.patch_embeddings.projection.weight",
        .top = huggingface_top,
        .block = "encoder.layers.{s}.blocks.{b}.",
        .blocks = huggingface_block,
        .merge = {"encoder.layers.{s}.downsample.", "encoder.layers.{s}.downsample."},
    },
    {
        .name = "huggingface5",
        .anchor = "embeddings.patch_embeddings.projection.weight",
        .top = huggingface_top,
        .block = "encoder.layers.{s}.blocks.{b}.",
        .blocks = huggingface5_block,
        .merge = {"encoder.layers.{s}.downsample.", "encoder.layers.{s}.downsample."},
    },
    {
        .name = "timm swinv2_cr",
        .anchor = "patch_embed.proj.weight",
        .top = timm_top,
        .block = "stages.{s}.blocks.{b}.",
        .blocks = cr_block,
        .merge = {"stages.{s+1}.downsample.", "stages.{s+1}.downsample."},
        .refusal = "its position bias (meta_mlp), its key bias and its norms are those of another model than Swin V2",
    },
};

const sw_naming *sw_naming_get(size_t index)
{
    return index < sizeof namings / sizeof namings[0] ? &namings[index] : NULL;
}

static uint8_t row_versions(const sw_row *row)
{
    return row->versions == 0 ? SW_V1 | SW_V2 : row->versions;
}

static bool match_rows(const sw_row *rows, uint8_t versions, uint8_t scope, const char *name, sw_place *place)
{
    for (const sw_row *row = rows; row->pattern != NULL; row++) {
        if ((row_versions(row) & versions) == 0 || (row->scope != scope && row->scope != SW_SCOPE_BOTH))
            continue;
        int32_t stage = place->stage, block = place->block;
        const char *rest = sw_pattern_match(row->pattern, name, &stage, &block);
        if (rest != NULL && *rest == '\0') {
            const bool norm = row->piece == SW_PIECE_OUT_NORM_WEIGHT || row->piece == SW_PIECE_OUT_NORM_BIAS;
            if (norm && strchr(row->pattern, '{') == NULL)
                stage = SW_STAGE_LAST;
            *place = (sw_place){row->piece, stage, block};
            return true;
        }
    }
    return false;
}

bool sw_naming_match(const sw_naming *naming, uint8_t versions, uint8_t scope, const char *name, sw_place *place)
{
    *place = (sw_place){.piece = SW_PIECE_COUNT};
    if (match_rows(naming->top, versions, scope, name, place))
        return true;
    if (scope != SW_SCOPE_OWN)
        return false;
    const char *rest = sw_pattern_match(naming->block, name, &place->stage, &place->block);
    if (rest != NULL)
        return match_rows(naming->blocks, versions, scope, rest, place);
    for (int v = 0; v < 2; v++) {
        const uint8_t version = (uint8_t)(1 << v);
        if ((versions & version) == 0)
            continue;
        *place = (sw_place){.piece = SW_PIECE_COUNT};
        rest = sw_pattern_match(naming->merge[v], name, &place->stage, &place->block);
        if (rest != NULL && match_rows(merge_rows, version, scope, rest, place))
            return true;
    }
    return false;
}

static const sw_row *find_row(const sw_row *rows, uint8_t version, sw_piece piece)
{
    for (const sw_row *row = rows; row->pattern != NULL; row++) {
        if (row->piece == piece && (row_versions(row) & version) != 0)
            return row;
    }
    return NULL;
}

bool sw_naming_format(const sw_naming *naming, uint8_t version, sw_piece piece, int32_t stage, int32_t block,
                      char *name, size_t size)
{
    const char *base = "";
    const sw_row *row = find_row(naming->top, version, piece);
    if (row == NULL && (row = find_row(naming->blocks, version, piece)) != NULL)
        base = naming->block;
    else if (row == NULL && (row = find_row(merge_rows, version, piece)) != NULL)
        base = naming->merge[version == SW_V2];
    if (row == NULL)
        return false;
    const size_t used = sw_pattern_format(base, stage, block, name, size, 0);
    sw_pattern_format(row->pattern, stage, block, name, size, used);
    return true;
}
