/* SPDX-License-Identifier: MIT */
#include "naming_writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/random.h"

/* %1$d is the stage's number as the naming counts it, %2$d the block. */
struct style {
    const char *dialect;
    swin_lineage lineage;
    const char *inner; /* the naming's own prefix for the backbone within its model */
    const char *patch, *patch_norm;
    const char *block, *merge;
    int block_factor, block_summand;
    int merge_factor, merge_summand[2]; /* V1, V2 */
    const char *norm1, *norm2, *norm3;
    const char *attention;  /* in front of scale, table, buffers */
    const char *qkv;        /* or query, key, value */
    const char *query, *key, *value;
    const char *network, *table, *proj, *fc1, *fc2;
    const char *out_norm;   /* %d; a leading ^ stands for outside the inner prefix */
    int out_norm_summand;
    const char *final_norm, *head;
    const char *mask_token, *masks;
    bool buffers, transposed, unfolded, flat_index;
};

#define MICROSOFT                                                                                                    \
    .patch = "patch_embed.proj", .patch_norm = "patch_embed.norm", .block_factor = 1, .merge_factor = 1,             \
    .norm1 = "norm1", .norm2 = "norm2", .norm3 = "norm3", .attention = "attn.", .qkv = "attn.qkv",                   \
    .table = "attn.relative_position_bias_table", .proj = "attn.proj", .fc1 = "mlp.fc1", .fc2 = "mlp.fc2"
#define LAYERS .block = "layers.%d.blocks.%d.", .merge = "layers.%d.downsample."
#define MM                                                                                                           \
    .patch = "patch_embed.projection", .patch_norm = "patch_embed.norm", .block = "stages.%d.blocks.%d.",            \
    .merge = "stages.%d.downsample.", .block_factor = 1, .merge_factor = 1, .merge_summand = {0, 1},                 \
    .norm1 = "norm1", .norm2 = "norm2", .norm3 = "norm3", .attention = "attn.w_msa.", .qkv = "attn.w_msa.qkv",       \
    .network = "cpb_mlp", .table = "attn.w_msa.relative_position_bias_table", .proj = "attn.w_msa.proj",             \
    .fc1 = "ffn.layers.0.0", .fc2 = "ffn.layers.1", .out_norm = "norm%d", .buffers = true, .unfolded = true
#define HUGGINGFACE                                                                                                  \
    .patch = "embeddings.patch_embeddings.projection", .patch_norm = "embeddings.norm",                              \
    .block = "encoder.layers.%d.blocks.%d.", .merge = "encoder.layers.%d.downsample.", .block_factor = 1,            \
    .merge_factor = 1, .norm1 = "layernorm_before", .norm2 = "layernorm_after",                                      \
    .network = "continuous_position_bias_mlp", .final_norm = "layernorm", .mask_token = "embeddings.mask_token"
#define HUGGINGFACE4                                                                                                 \
    HUGGINGFACE, .dialect = "huggingface", .attention = "attention.self.", .query = "attention.self.query",          \
    .key = "attention.self.key", .value = "attention.self.value",                                                    \
    .table = "attention.self.relative_position_bias_table", .proj = "attention.output.dense",                        \
    .fc1 = "intermediate.dense", .fc2 = "output.dense", .buffers = true
#define HUGGINGFACE5                                                                                                 \
    HUGGINGFACE, .dialect = "huggingface5", .attention = "attention.", .query = "attention.q_proj",                  \
    .key = "attention.k_proj", .value = "attention.v_proj",                                                          \
    .table = "attention.relative_position_bias.relative_position_bias_table", .proj = "attention.o_proj",            \
    .fc1 = "mlp.fc1", .fc2 = "mlp.fc2"

static const struct style styles[NAMING_COUNT] = {
    [NAMING_MICROSOFT] = {
        MICROSOFT, LAYERS,
        .dialect = "microsoft", .lineage = SWIN_LINEAGE_MICROSOFT, .inner = "", .network = "cpb_mlp",
        .final_norm = "norm", .head = "head", .masks = "attn_mask", .buffers = true,
    },
    [NAMING_DETECTION] = {
        MICROSOFT, LAYERS,
        .dialect = "detection", .lineage = SWIN_LINEAGE_DETECTION, .inner = "", .network = "cpb_mlp",
        .out_norm = "norm%d", .buffers = true,
    },
    [NAMING_PADDLE] = {
        MICROSOFT, LAYERS,
        .dialect = "paddle", .lineage = SWIN_LINEAGE_DETECTION, .inner = "",
        .out_norm = "norm%d", .transposed = true,
    },
    [NAMING_SIMMIM] = {
        MICROSOFT, LAYERS,
        .dialect = "simmim", .lineage = SWIN_LINEAGE_MICROSOFT, .inner = "encoder.", .network = "rpe_mlp",
        .final_norm = "norm", .head = "^decoder.0", .mask_token = "mask_token", .masks = "attn_mask", .buffers = true,
    },
    [NAMING_TIMM] = {
        MICROSOFT, LAYERS,
        .dialect = "timm", .lineage = SWIN_LINEAGE_TIMM, .inner = "", .network = "cpb_mlp",
        .merge_summand = {1, 1}, .final_norm = "norm", .head = "head.fc",
    },
    [NAMING_TIMM_FEATURES] = {
        MICROSOFT,
        .dialect = "timm_features", .lineage = SWIN_LINEAGE_TIMM, .inner = "", .network = "cpb_mlp",
        .block = "layers_%d.blocks.%d.", .merge = "layers_%d.downsample.", .merge_summand = {1, 1},
    },
    [NAMING_MMDETECTION] = {
        MM, .dialect = "mmdetection", .lineage = SWIN_LINEAGE_DETECTION, .inner = "backbone.",
    },
    [NAMING_MMPRETRAIN] = {
        MM, .dialect = "mmpretrain", .lineage = SWIN_LINEAGE_MMPRETRAIN, .inner = "backbone.",
        .head = "^head.fc", .masks = "attn.attn_mask",
    },
    [NAMING_TORCHVISION] = {
        .dialect = "torchvision", .lineage = SWIN_LINEAGE_TORCHVISION, .inner = "",
        .patch = "features.0.0", .patch_norm = "features.0.2",
        .block = "features.%d.%d.", .block_factor = 2, .block_summand = 1,
        .merge = "features.%d.", .merge_factor = 2, .merge_summand = {2, 2},
        .norm1 = "norm1", .norm2 = "norm2", .attention = "attn.", .qkv = "attn.qkv", .network = "cpb_mlp",
        .table = "attn.relative_position_bias_table", .proj = "attn.proj", .fc1 = "mlp.0", .fc2 = "mlp.3",
        .final_norm = "norm", .head = "head", .buffers = true, .flat_index = true,
    },
    [NAMING_HUGGINGFACE4] = {
        HUGGINGFACE4, .lineage = SWIN_LINEAGE_HUGGINGFACE, .inner = "swin.", .head = "^classifier",
    },
    [NAMING_HUGGINGFACE4_BACKBONE] = {
        HUGGINGFACE4, .lineage = SWIN_LINEAGE_DETECTION, .inner = "",
        .out_norm = "hidden_states_norms.stage%d", .out_norm_summand = 1,
    },
    [NAMING_HUGGINGFACE5] = {
        HUGGINGFACE5, .lineage = SWIN_LINEAGE_HUGGINGFACE, .inner = "swin.", .head = "^classifier",
    },
    [NAMING_HUGGINGFACE5_BACKBONE] = {
        HUGGINGFACE5, .lineage = SWIN_LINEAGE_DETECTION, .inner = "swin.",
        .out_norm = "^hidden_states_norms.stage%d", .out_norm_summand = 1,
    },
    [NAMING_MASKFORMER] = {
        HUGGINGFACE4, .lineage = SWIN_LINEAGE_DETECTION, .inner = "model.", .out_norm = "^hidden_states_norms.%d",
    },
};

const char *naming_dialect(enum naming naming)
{
    return styles[naming].dialect;
}

swin_lineage naming_lineage(enum naming naming)
{
    return styles[naming].lineage;
}

bool naming_has_out_norms(enum naming naming)
{
    return styles[naming].out_norm != NULL;
}

bool naming_has_buffers(enum naming naming)
{
    return styles[naming].buffers;
}

/* What is being written. */
struct job {
    const struct style *style;
    const swin_config *config;
    const sw_model *model;
    uint64_t seed;
    const char *prefix;
    tensor_file *file;
};

static void full_name(const struct job *job, const char *base, const char *name, const char *ending, char out[256])
{
    const bool outside = name[0] == '^' || base[0] == '^';
    snprintf(out, 256, "%s%s%s%s%s", job->prefix, outside ? "" : job->style->inner, base[0] == '^' ? base + 1 : base,
             name[0] == '^' ? name + 1 : name, ending);
}

static float *values(size_t count)
{
    float *data = calloc(count + 1, sizeof *data);
    assert_non_null(data);
    return data;
}

/* A canonical tensor of the model. */
static float *canonical(const struct job *job, sw_kind kind, int32_t stage, int32_t block, int32_t *rows,
                        int32_t *columns)
{
    const sw_tensor_id id = {kind, stage, block};
    sw_model_shape(job->model, id, rows, columns);
    float *data = values((size_t)*rows * (size_t)*columns);
    if (*rows > 0)
        assert_int_equal(sw_model_read(job->model, id, 0, *rows, data, NULL), SWIN_OK);
    return data;
}

static void add_matrix(const struct job *job, const char *base, const char *name, const char *ending,
                       const float *data, int32_t rows, int32_t columns)
{
    char full[256];
    full_name(job, base, name, ending, full);
    if (!job->style->transposed) {
        tensor_file_add_f32(job->file, full, data, 2, rows, columns);
        return;
    }
    float *turned = values((size_t)rows * (size_t)columns);
    for (int32_t r = 0; r < rows; r++) {
        for (int32_t c = 0; c < columns; c++)
            turned[(size_t)c * rows + r] = data[(size_t)r * columns + c];
    }
    tensor_file_add_f32(job->file, full, turned, 2, columns, rows);
    free(turned);
}

static void add_vector(const struct job *job, const char *base, const char *name, const char *ending,
                       const float *data, int32_t count)
{
    char full[256];
    full_name(job, base, name, ending, full);
    tensor_file_add_f32(job->file, full, data, 1, count);
}

/* A weight and its bias. */
static void add_pair(const struct job *job, const char *base, const char *name, sw_kind weight, int32_t stage,
                     int32_t block)
{
    int32_t rows, columns;
    float *data = canonical(job, weight, stage, block, &rows, &columns);
    if (columns > 1)
        add_matrix(job, base, name, ".weight", data, rows, columns);
    else
        add_vector(job, base, name, ".weight", data, rows);
    free(data);
    data = canonical(job, (sw_kind)(weight + 1), stage, block, &rows, &columns);
    add_vector(job, base, name, ".bias", data, rows);
    free(data);
}

static void add_patch(const struct job *job)
{
    const int32_t patch = job->config->patch_size;
    int32_t rows, columns;
    char full[256];
    float *data = canonical(job, SW_PATCH_WEIGHT, 0, 0, &rows, &columns);
    full_name(job, "", job->style->patch, ".weight", full);
    tensor_file_add_f32(job->file, full, data, 4, rows, 3, patch, patch);
    free(data);
    data = canonical(job, SW_PATCH_BIAS, 0, 0, &rows, &columns);
    add_vector(job, "", job->style->patch, ".bias", data, rows);
    free(data);
    if (job->config->patch_norm)
        add_pair(job, "", job->style->patch_norm, SW_PATCH_NORM_WEIGHT, 0, 0);
}

static void add_qkv(const struct job *job, const char *base, int32_t stage, int32_t block)
{
    const struct style *style = job->style;
    const bool v2 = job->config->version == 2;
    int32_t rows, columns;
    float *weight = canonical(job, SW_QKV_WEIGHT, stage, block, &rows, &columns);
    float *bias = canonical(job, SW_QKV_BIAS, stage, block, &rows, &columns);
    const int32_t c = rows / 3;
    const bool biased = job->config->qkv_bias != 0;
    if (style->qkv != NULL) {
        add_matrix(job, base, style->qkv, ".weight", weight, 3 * c, c);
        if (biased && (!v2 || strcmp(style->dialect, "torchvision") == 0)) {
            /* torchvision stores a key bias that its V2 never adds. */
            for (int32_t i = c; i < 2 * c && v2; i++)
                bias[i] = 5.0f;
            add_vector(job, base, style->qkv, ".bias", bias, 3 * c);
        } else if (biased) {
            add_vector(job, base, style->attention, "q_bias", bias, c);
            add_vector(job, base, style->attention, "v_bias", bias + 2 * c, c);
        }
    } else {
        const char *names[3] = {style->query, style->key, style->value};
        for (int part = 0; part < 3; part++) {
            add_matrix(job, base, names[part], ".weight", weight + (size_t)part * c * c, c, c);
            if (biased && !(v2 && part == 1))
                add_vector(job, base, names[part], ".bias", bias + part * c, c);
        }
    }
    free(weight);
    free(bias);
}

static void add_position_bias(const struct job *job, const char *base, int32_t stage, int32_t block)
{
    const struct style *style = job->style;
    const swin_config *config = job->config;
    const int32_t heads = config->heads[stage], *window = config->window[stage];
    const int32_t height = 2 * window[0] - 1, width = 2 * window[1] - 1;
    char name[128], full[256];
    if (config->version == 1) {
        float *table = values((size_t)height * width * heads);
        sw_random_fill(config, job->seed, SW_RANDOM_BIAS_TABLE, stage, block, heads, 0,
                       (uint64_t)height * width * heads, table);
        full_name(job, base, style->table, "", full);
        tensor_file_add_f32(job->file, full, table, 2, height * width, heads);
        free(table);
        return;
    }
    static const struct {
        const char *ending;
        int kind, rows, columns;
    } parts[] = {
        {".0.weight", SW_RANDOM_CPB1_WEIGHT, 512, 2},
        {".0.bias", SW_RANDOM_CPB1_BIAS, 512, 1},
        {".2.weight", SW_RANDOM_CPB2_WEIGHT, 0, 512},
    };
    for (int i = 0; i < 3; i++) {
        const int32_t rows = parts[i].rows == 0 ? heads : parts[i].rows, columns = parts[i].columns;
        float *data = values((size_t)rows * columns);
        sw_random_fill(config, job->seed, parts[i].kind, stage, block, columns, 0, (uint64_t)rows * columns, data);
        snprintf(name, sizeof name, "%s%s", style->attention, style->network);
        if (columns > 1)
            add_matrix(job, base, name, parts[i].ending, data, rows, columns);
        else
            add_vector(job, base, name, parts[i].ending, data, rows);
        free(data);
    }
    float *scale = values((size_t)heads);
    sw_random_fill(config, job->seed, SW_LOGIT_SCALE, stage, block, 1, 0, (uint64_t)heads, scale);
    full_name(job, base, style->attention, "logit_scale", full);
    tensor_file_add_f32(job->file, full, scale, 3, heads, 1, 1);
    free(scale);
}

static void add_buffers(const struct job *job, const char *base, int32_t stage, int32_t block)
{
    const int32_t *window = job->config->window[stage], *pretrained = job->config->pretrained_window[stage];
    const int32_t height = 2 * window[0] - 1, width = 2 * window[1] - 1;
    const uint64_t tokens = (uint64_t)(window[0] * window[1]);
    const uint64_t shape[2] = {job->style->flat_index ? tokens * tokens : tokens, tokens};
    char full[256];
    full_name(job, base, job->style->attention, "relative_position_index", full);
    tensor_file_add(job->file, full, "I64", job->style->flat_index ? 1 : 2, shape, NULL,
                    (size_t)(tokens * tokens) * 8);
    if (job->style->masks != NULL && block % 2 == 1) {
        const uint64_t mask[3] = {2, tokens, tokens};
        full_name(job, base, job->style->masks, "", full);
        tensor_file_add(job->file, full, "F32", 3, mask, NULL, (size_t)(2 * tokens * tokens) * 4);
    }
    if (job->config->version == 1)
        return;
    float *coordinates = values((size_t)height * width * 2);
    for (int32_t y = 0; y < height; y++) {
        for (int32_t x = 0; x < width; x++) {
            for (int axis = 0; axis < 2; axis++) {
                const int32_t reference = pretrained[axis] > 0 ? pretrained[axis] : window[axis];
                const double t = 8.0 * ((axis == 0 ? y : x) - window[axis] + 1) / (reference - 1);
                coordinates[(y * width + x) * 2 + axis] = (float)(copysign(log2(fabs(t) + 1.0), t) / log2(8.0));
            }
        }
    }
    full_name(job, base, job->style->attention, "relative_coords_table", full);
    tensor_file_add_f32(job->file, full, coordinates, 4, 1, height, width, 2);
    free(coordinates);
}

static void add_block(const struct job *job, int32_t stage, int32_t block)
{
    const struct style *style = job->style;
    char base[64];
    snprintf(base, sizeof base, style->block, style->block_factor * stage + style->block_summand, block);
    add_pair(job, base, style->norm1, SW_NORM1_WEIGHT, stage, block);
    add_position_bias(job, base, stage, block);
    add_qkv(job, base, stage, block);
    add_pair(job, base, style->proj, SW_PROJ_WEIGHT, stage, block);
    add_pair(job, base, style->norm2, SW_NORM2_WEIGHT, stage, block);
    add_pair(job, base, style->fc1, SW_FC1_WEIGHT, stage, block);
    add_pair(job, base, style->fc2, SW_FC2_WEIGHT, stage, block);
    if (sw_config_has_block_norm(job->config, stage, block))
        add_pair(job, base, style->norm3, SW_NORM3_WEIGHT, stage, block);
    if (style->buffers)
        add_buffers(job, base, stage, block);
}

/* mm's columns: channel by channel, the four neighbours in reading order; ours: neighbour by neighbour, (0,0), (1,0),
 * (0,1), (1,1) of (row, column). */
static void unfold(float *row, int32_t channels)
{
    float *copy = values((size_t)channels * 4);
    memcpy(copy, row, (size_t)channels * 4 * sizeof *row);
    for (int32_t c = 0; c < channels; c++) {
        for (int32_t y = 0; y < 2; y++) {
            for (int32_t x = 0; x < 2; x++)
                row[c * 4 + y * 2 + x] = copy[(x * 2 + y) * channels + c];
        }
    }
    free(copy);
}

static void add_merge(const struct job *job, int32_t stage)
{
    const struct style *style = job->style;
    const int version = job->config->version - 1;
    const int32_t channels = sw_config_channels(job->config, stage);
    char base[64];
    int32_t rows, columns;
    snprintf(base, sizeof base, style->merge, style->merge_factor * stage + style->merge_summand[version]);
    for (int part = 0; part < 2; part++) {
        float *norm = canonical(job, part == 0 ? SW_MERGE_NORM_WEIGHT : SW_MERGE_NORM_BIAS, stage, 0, &rows, &columns);
        if (style->unfolded && version == 0)
            unfold(norm, channels);
        add_vector(job, base, "norm", part == 0 ? ".weight" : ".bias", norm, rows);
        free(norm);
    }
    float *weight = canonical(job, SW_MERGE_WEIGHT, stage, 0, &rows, &columns);
    for (int32_t r = 0; r < rows && style->unfolded; r++)
        unfold(weight + (size_t)r * columns, channels);
    add_matrix(job, base, "reduction", ".weight", weight, rows, columns);
    free(weight);
}

static void add_rest(const struct job *job)
{
    const struct style *style = job->style;
    const swin_config *config = job->config;
    const int32_t last = sw_config_channels(config, config->stages - 1);
    float *data = values((size_t)last * 10);
    for (int32_t stage = 0; stage < config->stages; stage++) {
        char name[64];
        if ((config->out_norm >> stage & 1) == 0)
            continue;
        assert_non_null(style->out_norm);
        snprintf(name, sizeof name, style->out_norm, stage + style->out_norm_summand);
        add_pair(job, "", name, SW_OUT_NORM_WEIGHT, stage, 0);
    }
    if (style->final_norm != NULL) {
        add_vector(job, "", style->final_norm, ".weight", data, last);
        add_vector(job, "", style->final_norm, ".bias", data, last);
    }
    if (style->head != NULL) {
        char full[256];
        full_name(job, "", style->head, ".weight", full);
        tensor_file_add_f32(job->file, full, data, 2, 10, last);
        add_vector(job, "", style->head, ".bias", data, 10);
    }
    if (style->mask_token != NULL) {
        char full[256];
        full_name(job, "", style->mask_token, "", full);
        tensor_file_add_f32(job->file, full, data, 3, 1, 1, config->embed_dim);
    }
    free(data);
}

void naming_write(enum naming naming, const swin_config *config, uint64_t seed, const char *prefix, tensor_file *file)
{
    sw_model *model = must_create(config, seed);
    const struct job job = {&styles[naming], config, model, seed, prefix, file};
    add_patch(&job);
    for (int32_t stage = 0; stage < config->stages; stage++) {
        for (int32_t block = 0; block < config->depths[stage]; block++)
            add_block(&job, stage, block);
        if (stage + 1 < config->stages)
            add_merge(&job, stage);
    }
    add_rest(&job);
    sw_model_destroy(model);
}

swin_config small_v1(void)
{
    return (swin_config){
        .struct_size = sizeof(swin_config),
        .version = 1,
        .lineage = SWIN_LINEAGE_DETECTION,
        .patch_size = 2,
        .embed_dim = 12,
        .stages = 4,
        .depths = {2, 1, 3, 2},
        .heads = {1, 2, 6, 4},
        .window = {{4, 4}, {3, 3}, {5, 5}, {2, 2}},
        .qkv_bias = 1,
        .patch_norm = 1,
        .mlp_ratio = 2.5,
    };
}

swin_config small_v2(void)
{
    swin_config config = small_v1();
    config.version = 2;
    const int32_t pretrained[4] = {6, 6, 0, 3};
    for (int stage = 0; stage < 4; stage++)
        config.pretrained_window[stage][0] = config.pretrained_window[stage][1] = pretrained[stage];
    return config;
}
