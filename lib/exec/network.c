/* SPDX-License-Identifier: MIT */
#include "network.h"

#include <string.h>

#include "../base/memory.h"
#include "layer.h"
#include "packing.h"

/* Measured in bench/README.md. Scores of one product: they are written by one and read by the next. */
#define SCORE_ELEMENTS 49152
/* Windows up to this many slots are viewed where they lie, larger ones copied head by head. */
#define VIEWED_SLOTS 64
/* Rows of a tile of patches, or of merged tokens. */
#define PATCH_ROWS 256
#define MERGE_ROWS 128

struct sw_clamped_bias {
    struct sw_clamped_bias *next;
    int32_t stage, depth;
    int32_t window[2];
    sw_position_bias *blocks; /* [depth] */
};

/* Our own kernels want heads of 32 channels and everything else in multiples of that: what every published model but
 * one (c24) has. oneDNN is asked too, so that its limits (ONEDNN_MAX_CPU_ISA) hold for us. */
static bool can_use_amx(const swin_config *config)
{
    if (!sw_amx_built() || !sw_cpu_has_amx() || !sw_dnn_uses_amx_bf16())
        return false;
    for (int32_t s = 0; s < config->stages; s++) {
        if (sw_config_channels(config, s) != SW_AMX_WIDTH * config->heads[s] ||
            sw_config_hidden(config, s) % SW_AMX_WIDTH != 0 ||
            config->window[s][0] * config->window[s][1] > SW_AMX_TOKENS_MAX)
            return false;
    }
    return true;
}

static int32_t largest_divisor(int32_t value, int32_t limit)
{
    for (int32_t divisor = limit < value ? limit : value; divisor > 1; divisor--) {
        if (value % divisor == 0)
            return divisor;
    }
    return 1;
}

static swin_status read_vector(const sw_model *model, sw_kind kind, int32_t stage, int32_t block, float **vector,
                               swin_error *err)
{
    const sw_tensor_id id = {kind, stage, block};
    int32_t rows, columns;
    sw_model_shape(model, id, &rows, &columns);
    const size_t count = (size_t)rows * (size_t)columns;
    *vector = sw_alloc(count, sizeof **vector);
    if (*vector == NULL)
        return sw_fail_memory(err, count * sizeof **vector, "a vector of weights");
    return sw_model_read(model, id, 0, rows, *vector, err);
}

static swin_status read_norm(const sw_model *model, sw_kind weight, int32_t stage, int32_t block, sw_norm *norm,
                             swin_error *err)
{
    float *values = NULL;
    const sw_kind bias = (sw_kind)(weight + 1);
    norm->eps = SW_NORM_EPS;
    swin_status status = read_vector(model, weight, stage, block, &values, err);
    norm->weight = values;
    if (status != SWIN_OK)
        return status;
    status = read_vector(model, bias, stage, block, &values, err);
    norm->bias = values;
    return status;
}

static void free_norm(const sw_norm *norm)
{
    sw_free((void *)norm->weight);
    sw_free((void *)norm->bias);
}

static swin_status plan_attention(sw_network *network, sw_stage *stage, swin_error *err)
{
    sw_attention_plan *plan = &stage->attention;
    const int32_t slots = stage->slots, panel_heads = stage->heads / stage->head_parts;
    const int32_t scores = slots * slots;
    plan->split = network->config.version == 2 || slots > VIEWED_SLOTS;
    plan->windows = 1;
    plan->queries = slots;
    if (!plan->split) {
        plan->heads = panel_heads;
        while (plan->windows < 8 && 2 * plan->windows * plan->heads * scores <= SCORE_ELEMENTS)
            plan->windows *= 2;
    } else {
        plan->heads = largest_divisor(panel_heads, SCORE_ELEMENTS / scores);
        if (plan->heads == 1 && scores > 2 * SCORE_ELEMENTS)
            plan->queries = largest_divisor(slots, SCORE_ELEMENTS / slots);
    }
    sw_attention_shape shape = {.windows = plan->windows,
                                .heads = plan->heads,
                                .queries = plan->queries,
                                .tokens = slots,
                                .head_channels = stage->head_channels,
                                .type = network->type,
                                .split = plan->split};
    SW_TRY(sw_dnn_scores(network->dnn, &shape, &plan->scores, err));
    SW_TRY(sw_dnn_context(network->dnn, &shape, &plan->context, err));
    shape.windows = 1;
    SW_TRY(sw_dnn_scores(network->dnn, &shape, &plan->scores_single, err));
    return sw_dnn_context(network->dnn, &shape, &plan->context_single, err);
}

static swin_status make_stage(sw_network *network, int32_t s, swin_error *err)
{
    const swin_config *config = &network->config;
    sw_stage *stage = &network->stages[s];
    stage->channels = sw_config_channels(config, s);
    stage->hidden = sw_config_hidden(config, s);
    stage->heads = config->heads[s];
    stage->head_channels = stage->channels / stage->heads;
    stage->slots = config->window[s][0] * config->window[s][1];
    stage->head_parts = sw_layer_head_parts(stage->channels, stage->heads);
    stage->has_merge = s + 1 < config->stages;
    sw_menu_fill(&stage->menu, stage->slots, stage->channels, network->type);
    if (stage->has_merge) {
        sw_menu_add(&stage->merge_menu, 16);
        sw_menu_add(&stage->merge_menu, 64);
        sw_menu_add(&stage->merge_menu, MERGE_ROWS);
    }
    stage->blocks = sw_alloc_zeroed((size_t)config->depths[s], sizeof *stage->blocks);
    if (stage->blocks == NULL)
        return sw_fail_memory(err, (size_t)config->depths[s] * sizeof *stage->blocks, "a stage's blocks");
    stage->depth = config->depths[s];
    return network->amx ? SWIN_OK : plan_attention(network, stage, err);
}

/* V2 with AMX: the projection hands out queries of length logit_scale and keys of length 1. A head is a panel. */
static swin_status normalise_heads(const sw_stage *stage, sw_block *block, swin_error *err)
{
    sw_linear *qkv = &block->qkv;
    qkv->normalise = sw_alloc(2 * (size_t)stage->heads, sizeof *qkv->normalise);
    if (qkv->normalise == NULL)
        return sw_fail_memory(err, 2 * (size_t)stage->heads * sizeof *qkv->normalise, "scales of heads");
    for (int32_t h = 0; h < stage->heads; h++) {
        qkv->normalise[h] = block->logit_scale[h];
        qkv->normalise[stage->heads + h] = 1.0f;
    }
    qkv->normalised = 2 * stage->head_parts;
    return SWIN_OK;
}

static swin_status read_stage_vectors(sw_network *network, int32_t s, swin_error *err)
{
    const sw_model *model = network->model;
    sw_stage *stage = &network->stages[s];
    for (int32_t b = 0; b < stage->depth; b++) {
        sw_block *block = &stage->blocks[b];
        SW_TRY(read_norm(model, SW_NORM1_WEIGHT, s, b, &block->norm1, err));
        SW_TRY(read_norm(model, SW_NORM2_WEIGHT, s, b, &block->norm2, err));
        if (sw_config_has_block_norm(&network->config, s, b))
            SW_TRY(read_norm(model, SW_NORM3_WEIGHT, s, b, &block->norm3, err));
        if (network->config.version == 2) {
            SW_TRY(read_vector(model, SW_LOGIT_SCALE, s, b, &block->logit_scale, err));
            if (network->amx)
                SW_TRY(normalise_heads(stage, block, err));
        }
    }
    if (stage->has_merge)
        SW_TRY(read_norm(model, SW_MERGE_NORM_WEIGHT, s, 0, &stage->merge_norm, err));
    if (network->config.out_norm >> s & 1)
        SW_TRY(read_norm(model, SW_OUT_NORM_WEIGHT, s, 0, &stage->out_norm, err));
    return SWIN_OK;
}

/* One block for the packed weights of all layers: it can lie on large pages. */
static swin_status place_tiles(sw_network *network, swin_error *err)
{
    const int32_t layers = sw_layer_count(network);
    size_t bytes = 0, at = 0;
    for (int32_t i = 0; i < layers; i++) {
        sw_layer l = {0};
        sw_layer_describe(network, i, &l);
        bytes += sw_linear_tile_bytes(l.linear);
    }
    if (bytes == 0)
        return SWIN_OK;
    network->tiles = sw_alloc(bytes, 1);
    if (network->tiles == NULL)
        return sw_fail_memory(err, bytes, "packed weights");
    for (int32_t i = 0; i < layers; i++) {
        sw_layer l = {0};
        sw_layer_describe(network, i, &l);
        l.linear->tiles = network->tiles + at;
        at += sw_linear_tile_bytes(l.linear);
    }
    return SWIN_OK;
}

static swin_status build(sw_network *network, int32_t threads, swin_error *err)
{
    const swin_config *config = &network->config;
    SW_TRY(sw_dnn_create(&network->dnn, err));
    sw_menu_add(&network->patch_menu, 16);
    sw_menu_add(&network->patch_menu, PATCH_ROWS);
    for (int32_t s = 0; s < config->stages; s++)
        SW_TRY(make_stage(network, s, err));
    for (int32_t i = 0; i < sw_layer_count(network); i++) {
        sw_layer l = {0};
        sw_layer_describe(network, i, &l);
        SW_TRY(sw_linear_plan(l.linear, network->dnn, l.menu, &l.spec, err));
    }
    SW_TRY(place_tiles(network, err));
    if (config->patch_norm)
        SW_TRY(read_norm(network->model, SW_PATCH_NORM_WEIGHT, 0, 0, &network->patch_norm, err));
    if (config->absolute_position[0] > 0)
        SW_TRY(read_vector(network->model, SW_ABSOLUTE_POSITION, 0, 0, &network->absolute_position, err));
    for (int32_t s = 0; s < config->stages; s++)
        SW_TRY(read_stage_vectors(network, s, err));
    return sw_packing_run(network, threads, err);
}

swin_status sw_network_create(const sw_model *model, sw_type type, bool amx, int32_t threads, sw_network **network,
                              swin_error *err)
{
    sw_network *n = sw_alloc_zeroed(1, sizeof *n);
    if (n == NULL)
        return sw_fail_memory(err, sizeof *n, "the network");
    n->model = model;
    n->config = *sw_model_config(model);
    n->type = type;
    n->amx = amx && can_use_amx(&n->config);
    pthread_mutex_init(&n->lock, NULL);
    const swin_status status = build(n, threads, err);
    if (status != SWIN_OK) {
        sw_network_destroy(n);
        return status;
    }
    *network = n;
    return SWIN_OK;
}

static void destroy_clamped(struct sw_clamped_bias *clamped)
{
    for (int32_t b = 0; clamped->blocks != NULL && b < clamped->depth; b++)
        sw_position_bias_destroy(&clamped->blocks[b]);
    sw_free(clamped->blocks);
    sw_free(clamped);
}

static void destroy_stage(sw_stage *stage)
{
    for (int32_t b = 0; b < stage->depth; b++) {
        sw_block *block = &stage->blocks[b];
        free_norm(&block->norm1);
        free_norm(&block->norm2);
        free_norm(&block->norm3);
        sw_linear_destroy(&block->qkv);
        sw_linear_destroy(&block->proj);
        sw_linear_destroy(&block->fc1);
        sw_linear_destroy(&block->fc2);
        sw_free(block->logit_scale);
        sw_position_bias_destroy(&block->bias);
    }
    sw_free(stage->blocks);
    free_norm(&stage->merge_norm);
    sw_linear_destroy(&stage->merge);
    free_norm(&stage->out_norm);
}

void sw_network_destroy(sw_network *network)
{
    if (network == NULL)
        return;
    for (struct sw_clamped_bias *c = atomic_load(&network->clamped), *next; c != NULL; c = next) {
        next = c->next;
        destroy_clamped(c);
    }
    for (int32_t s = 0; s < SWIN_MAX_STAGES; s++)
        destroy_stage(&network->stages[s]);
    sw_linear_destroy(&network->patch);
    free_norm(&network->patch_norm);
    sw_free(network->absolute_position);
    sw_dnn_destroy(network->dnn);
    sw_free(network->tiles);
    pthread_mutex_destroy(&network->lock);
    sw_free(network);
}

size_t sw_network_bytes(const sw_network *network)
{
    size_t bytes = sw_linear_bytes(&network->patch);
    for (int32_t s = 0; s < network->config.stages; s++) {
        const sw_stage *stage = &network->stages[s];
        for (int32_t b = 0; b < stage->depth; b++) {
            const sw_block *block = &stage->blocks[b];
            bytes += sw_linear_bytes(&block->qkv) + sw_linear_bytes(&block->proj) + sw_linear_bytes(&block->fc1) +
                     sw_linear_bytes(&block->fc2) + sw_position_bias_bytes(&block->bias);
        }
        bytes += sw_linear_bytes(&stage->merge);
    }
    return bytes;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Position biases of clamped windows
 */

static swin_status make_clamped(sw_network *network, int32_t s, const int32_t window[2],
                                struct sw_clamped_bias **clamped, swin_error *err)
{
    const sw_stage *stage = &network->stages[s];
    struct sw_clamped_bias *c = sw_alloc_zeroed(1, sizeof *c);
    if (c == NULL)
        return sw_fail_memory(err, sizeof *c, "position biases of a small map");
    c->stage = s;
    c->window[0] = window[0];
    c->window[1] = window[1];
    c->blocks = sw_alloc_zeroed((size_t)stage->depth, sizeof *c->blocks);
    swin_status status = SWIN_OK;
    if (c->blocks == NULL)
        status = sw_fail_memory(err, (size_t)stage->depth * sizeof *c->blocks, "position biases of a small map");
    else
        c->depth = stage->depth;
    for (int32_t b = 0; b < c->depth && status == SWIN_OK; b++)
        status = sw_position_bias_create(&c->blocks[b], network->model, s, b, stage->heads, window, err);
    if (status != SWIN_OK) {
        destroy_clamped(c);
        return status;
    }
    *clamped = c;
    return SWIN_OK;
}

static struct sw_clamped_bias *find_clamped(const sw_network *network, int32_t stage, const int32_t window[2])
{
    struct sw_clamped_bias *c = atomic_load_explicit(&network->clamped, memory_order_acquire);
    while (c != NULL && (c->stage != stage || memcmp(c->window, window, sizeof c->window) != 0))
        c = c->next;
    return c;
}

static swin_status add_clamped(sw_network *network, int32_t stage, const int32_t window[2],
                               struct sw_clamped_bias **clamped, swin_error *err)
{
    SW_TRY(make_clamped(network, stage, window, clamped, err));
    (*clamped)->next = atomic_load_explicit(&network->clamped, memory_order_relaxed);
    atomic_store_explicit(&network->clamped, *clamped, memory_order_release);
    return SWIN_OK;
}

swin_status sw_network_position_bias(sw_network *network, int32_t stage, const int32_t window[2],
                                     const sw_position_bias **biases, swin_error *err)
{
    swin_status status = SWIN_OK;
    struct sw_clamped_bias *c = find_clamped(network, stage, window);
    if (c == NULL) {
        pthread_mutex_lock(&network->lock);
        c = find_clamped(network, stage, window); /* another session may have made it meanwhile */
        if (c == NULL)
            status = add_clamped(network, stage, window, &c, err);
        pthread_mutex_unlock(&network->lock);
    }
    if (status == SWIN_OK)
        *biases = c->blocks;
    return status;
}
