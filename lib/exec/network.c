/* SPDX-License-Identifier: MIT */
#include "network.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/threads.h"

/* Tuning, measured in bench/README.md. Rows of a tile: enough for the products to run at full speed, few enough that a
 * tile's activations (rows x hidden channels) stay in a core's second-level cache. */
#define TILE_ELEMENTS 160000 /* rows x channels */
#define TILE_ROWS 448
/* Parts of q, k, v and of the hidden layer: wide stages are cut so that threads can share a single window. */
#define PART_CHANNELS 384
#define HIDDEN_PART_CHANNELS 768
#define PART_BYTES 917504
/* Scores of one product: they are written by one and read by the next. */
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

/* ------------------------------------------------------------------------------------------------------------------
 * Sizes
 */

/* bf16 tiles hold 16 rows, and oneDNN's kernels are slow where a few rows remain. */
static int32_t round_rows(int32_t rows, sw_type type)
{
    return type == SW_BF16 ? (rows + 15) / 16 * 16 : rows;
}

static void add_to_menu(sw_menu *menu, int32_t rows)
{
    if (menu->count == 0 || menu->rows[menu->count - 1] < rows)
        menu->rows[menu->count++] = rows;
}

static void choose_menu(sw_menu *menu, int32_t slots, int32_t channels, sw_type type)
{
    const int32_t limit = TILE_ELEMENTS / channels < TILE_ROWS ? TILE_ELEMENTS / channels : TILE_ROWS;
    int32_t largest = slots;
    while (2 * largest <= limit)
        largest *= 2;
    add_to_menu(menu, 16);
    for (int32_t divisor = 8; divisor >= 1; divisor /= 2) {
        if (largest / divisor >= 32)
            add_to_menu(menu, round_rows(largest / divisor, type));
    }
    add_to_menu(menu, round_rows(largest, type));
}

/* The fewest parts not wider than `width` channels that divide `units` (heads, or single channels) evenly. */
static int32_t choose_parts(int32_t channels, int32_t units, int32_t width)
{
    for (int32_t parts = 1; parts <= units; parts++) {
        if (units % parts == 0 && channels / parts <= width)
            return parts;
    }
    return units;
}

/* Parts of a layer's output. With AMX and float32, a part's weights (six bytes each) are read once for every 32 rows and so
 * have to stay in the second-level cache. `in` is what one product reads. */
static int32_t choose_linear_parts(const sw_network *network, int32_t in, int32_t out, int32_t width)
{
    if (!network->amx)
        return choose_parts(out, out, width);
    if (network->type == SW_F32 && PART_BYTES / (6 * in) < width)
        width = PART_BYTES / (6 * in);
    return choose_parts(out, out / SW_AMX_WIDTH, width);
}

/* Our own kernels want heads of 32 channels and everything else in multiples of that: what every published model but one (c24)
 * has. oneDNN is asked too, so that its limits (ONEDNN_MAX_CPU_ISA) hold for us. */
static bool can_use_amx(const swin_config *config)
{
    if (!sw_amx_built() || !sw_cpu_has_amx_bf16() || !sw_dnn_uses_amx_bf16())
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

/* ------------------------------------------------------------------------------------------------------------------
 * What each layer is made of
 */

typedef struct layer {
    sw_linear *linear;
    const sw_menu *menu;
    sw_linear_spec spec;
    sw_tensor_id bias; /* spec.bias points here */
} layer;

/* The linear layers in order: the patch embedding, then each stage's blocks (qkv, proj, fc1, fc2) and merge. */
static int32_t layer_count(const sw_network *network)
{
    int32_t count = 1;
    for (int32_t s = 0; s < network->config.stages; s++)
        count += 4 * network->stages[s].depth + network->stages[s].has_merge;
    return count;
}

static void describe_block_layer(const sw_network *network, int32_t s, int32_t b, int32_t which, layer *l)
{
    const sw_stage *stage = &network->stages[s];
    sw_block *block = &stage->blocks[b];
    const bool v2 = network->config.version == 2;
    const int32_t channels = stage->channels, head_parts = stage->head_parts;
    const int32_t hidden_parts =
        choose_linear_parts(network, channels, stage->hidden, network->amx ? PART_CHANNELS : HIDDEN_PART_CHANNELS);
    const int32_t proj_parts = choose_linear_parts(network, channels, channels, PART_CHANNELS);
    const int32_t fc2_parts = choose_linear_parts(network, stage->hidden / hidden_parts, channels, PART_CHANNELS);
    l->menu = &stage->menu;
    switch (which) {
    case 0:
        l->linear = &block->qkv;
        l->spec = (sw_linear_spec){
            .in = channels,
            .in_parts = 1,
            .out = 3 * channels,
            .out_parts = 3 * head_parts,
            .amx = network->amx,
            .type = network->type,
            /* V2 normalises q and k, which wants them in full precision; with AMX that is done on the way */
            .out_type = v2 && !network->amx ? SW_F32 : network->type,
            .weight = {SW_QKV_WEIGHT, s, b},
            .scaled = v2 ? 0 : channels,
            .scale = (float)(1.0 / sqrt((double)stage->head_channels)),
        };
        l->bias = (sw_tensor_id){SW_QKV_BIAS, s, b};
        break;
    case 1:
        l->linear = &block->proj;
        l->spec = (sw_linear_spec){.in = channels,
                                   .in_parts = network->amx ? 1 : head_parts,
                                   .out = channels,
                                   .out_parts = proj_parts,
                                   .type = network->type,
                                   .out_type = SW_F32,
                                   .amx = network->amx,
                                   .weight = {SW_PROJ_WEIGHT, s, b}};
        l->bias = (sw_tensor_id){SW_PROJ_BIAS, s, b};
        break;
    case 2:
        l->linear = &block->fc1;
        l->spec = (sw_linear_spec){.in = channels,
                                   .in_parts = 1,
                                   .out = stage->hidden,
                                   .out_parts = hidden_parts,
                                   .type = network->type,
                                   .out_type = network->type,
                                   .amx = network->amx,
                                   .weight = {SW_FC1_WEIGHT, s, b},
                                   .gelu = true};
        l->bias = (sw_tensor_id){SW_FC1_BIAS, s, b};
        break;
    default:
        l->linear = &block->fc2;
        l->spec = (sw_linear_spec){.in = stage->hidden,
                                   .in_parts = hidden_parts,
                                   .out = channels,
                                   .out_parts = fc2_parts,
                                   .type = network->type,
                                   .out_type = SW_F32,
                                   .amx = network->amx,
                                   .weight = {SW_FC2_WEIGHT, s, b}};
        l->bias = (sw_tensor_id){SW_FC2_BIAS, s, b};
        break;
    }
    l->spec.bias = &l->bias;
}

static void describe_layer(sw_network *network, int32_t index, layer *l)
{
    if (index == 0) {
        const swin_config *c = &network->config;
        l->linear = &network->patch;
        l->menu = &network->patch_menu;
        l->spec = (sw_linear_spec){.in = 3 * c->patch_size * c->patch_size,
                                   .in_parts = 1,
                                   .out = c->embed_dim,
                                   .out_parts = 1,
                                   .type = network->type,
                                   .out_type = SW_F32,
                                   .weight = {SW_PATCH_WEIGHT, 0, 0},
                                   .bias = &l->bias};
        l->bias = (sw_tensor_id){SW_PATCH_BIAS, 0, 0};
        return;
    }
    index--;
    for (int32_t s = 0; s < network->config.stages; s++) {
        sw_stage *stage = &network->stages[s];
        if (index < 4 * stage->depth) {
            describe_block_layer(network, s, index / 4, index % 4, l);
            return;
        }
        index -= 4 * stage->depth;
        if (stage->has_merge && index-- == 0) {
            l->linear = &stage->merge;
            l->menu = &stage->merge_menu;
            l->spec = (sw_linear_spec){.in = 4 * stage->channels,
                                       .in_parts = 1,
                                       .out = 2 * stage->channels,
                                       .out_parts =
                                           choose_linear_parts(network, 4 * stage->channels, 2 * stage->channels, PART_CHANNELS),
                                       .type = network->type,
                                       .out_type = SW_F32,
                                       .amx = network->amx,
                                       .weight = {SW_MERGE_WEIGHT, s, 0}};
            return;
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Building
 */

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

static int32_t head_part_width(const sw_network *network, int32_t channels)
{
    const int32_t fitting = PART_BYTES / (6 * channels);
    return network->amx && network->type == SW_F32 && fitting < PART_CHANNELS ? fitting : PART_CHANNELS;
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
    stage->head_parts = choose_parts(stage->channels, stage->heads, head_part_width(network, stage->channels));
    stage->has_merge = s + 1 < config->stages;
    choose_menu(&stage->menu, stage->slots, stage->channels, network->type);
    if (stage->has_merge) {
        add_to_menu(&stage->merge_menu, 16);
        add_to_menu(&stage->merge_menu, 64);
        add_to_menu(&stage->merge_menu, MERGE_ROWS);
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

/* Layers and position biases are packed by several threads; the first failure is kept. */
typedef struct packing {
    sw_network *network;
    float **scratch; /* one per thread */
    _Atomic int32_t failed;
    pthread_mutex_t lock;
    swin_status status;
    swin_error *err;
} packing;

static swin_status pack_item(packing *p, int32_t item, int32_t thread, swin_error *err)
{
    sw_network *network = p->network;
    const int32_t layers = layer_count(network);
    if (item < layers) {
        layer l = {0};
        describe_layer(network, item, &l);
        return sw_linear_pack(l.linear, network->dnn, network->model, &l.spec, p->scratch[thread], err);
    }
    item -= layers;
    for (int32_t s = 0; s < network->config.stages; s++) {
        sw_stage *stage = &network->stages[s];
        if (item < stage->depth)
            return sw_position_bias_create(&stage->blocks[item].bias, network->model, s, item, stage->heads,
                                           network->config.window[s], err);
        item -= stage->depth;
    }
    return SWIN_OK;
}

static void pack_task(void *context, int32_t item, int32_t thread)
{
    packing *p = context;
    if (atomic_load(&p->failed))
        return;
    swin_error err;
    sw_error_reset(&err);
    const swin_status status = pack_item(p, item, thread, &err);
    if (status == SWIN_OK)
        return;
    pthread_mutex_lock(&p->lock);
    if (!atomic_exchange(&p->failed, 1)) {
        p->status = status;
        if (p->err != NULL)
            *p->err = err;
    }
    pthread_mutex_unlock(&p->lock);
}

static void enter_thread(void)
{
    sw_dnn_single_thread();
}

static swin_status pack(sw_network *network, int32_t threads, swin_error *err)
{
    size_t floats = 0;
    int32_t items = layer_count(network);
    for (int32_t i = 0; i < items; i++) {
        layer l = {0};
        describe_layer(network, i, &l);
        if (sw_linear_scratch(l.linear) > floats)
            floats = sw_linear_scratch(l.linear);
    }
    for (int32_t s = 0; s < network->config.stages; s++)
        items += network->stages[s].depth;

    packing p = {.network = network, .err = err};
    sw_pool *pool = NULL;
    pthread_mutex_init(&p.lock, NULL);
    p.scratch = sw_alloc_zeroed((size_t)threads, sizeof *p.scratch);
    bool have_scratch = p.scratch != NULL;
    for (int32_t i = 0; i < threads && have_scratch; i++)
        have_scratch = (p.scratch[i] = sw_alloc(floats, sizeof(float))) != NULL;
    if (!have_scratch)
        p.status = sw_fail_memory(err, (size_t)threads * floats * sizeof(float), "packing weights");
    else
        p.status = sw_pool_create(threads, enter_thread, &pool, err);
    if (p.status == SWIN_OK)
        sw_pool_run(pool, items, pack_task, &p);
    sw_pool_destroy(pool);
    for (int32_t i = 0; p.scratch != NULL && i < threads; i++)
        sw_free(p.scratch[i]);
    sw_free(p.scratch);
    pthread_mutex_destroy(&p.lock);
    return p.status;
}

static swin_status build(sw_network *network, int32_t threads, swin_error *err)
{
    const swin_config *config = &network->config;
    SW_TRY(sw_dnn_create(&network->dnn, err));
    add_to_menu(&network->patch_menu, 16);
    add_to_menu(&network->patch_menu, PATCH_ROWS);
    for (int32_t s = 0; s < config->stages; s++)
        SW_TRY(make_stage(network, s, err));
    for (int32_t i = 0; i < layer_count(network); i++) {
        layer l = {0};
        describe_layer(network, i, &l);
        SW_TRY(sw_linear_plan(l.linear, network->dnn, l.menu, &l.spec, err));
    }
    if (config->patch_norm)
        SW_TRY(read_norm(network->model, SW_PATCH_NORM_WEIGHT, 0, 0, &network->patch_norm, err));
    if (config->absolute_position[0] > 0)
        SW_TRY(read_vector(network->model, SW_ABSOLUTE_POSITION, 0, 0, &network->absolute_position, err));
    for (int32_t s = 0; s < config->stages; s++)
        SW_TRY(read_stage_vectors(network, s, err));
    return pack(network, threads, err);
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
    while (network->clamped != NULL) {
        struct sw_clamped_bias *next = network->clamped->next;
        destroy_clamped(network->clamped);
        network->clamped = next;
    }
    for (int32_t s = 0; s < SWIN_MAX_STAGES; s++)
        destroy_stage(&network->stages[s]);
    sw_linear_destroy(&network->patch);
    free_norm(&network->patch_norm);
    sw_free(network->absolute_position);
    sw_dnn_destroy(network->dnn);
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

swin_status sw_network_position_bias(sw_network *network, int32_t stage, const int32_t window[2],
                                     const sw_position_bias **biases, swin_error *err)
{
    swin_status status = SWIN_OK;
    pthread_mutex_lock(&network->lock);
    struct sw_clamped_bias *c = network->clamped;
    while (c != NULL && (c->stage != stage || memcmp(c->window, window, sizeof c->window) != 0))
        c = c->next;
    if (c == NULL) {
        status = make_clamped(network, stage, window, &c, err);
        if (status == SWIN_OK) {
            c->next = network->clamped;
            network->clamped = c;
        }
    }
    pthread_mutex_unlock(&network->lock);
    if (status == SWIN_OK)
        *biases = c->blocks;
    return status;
}
