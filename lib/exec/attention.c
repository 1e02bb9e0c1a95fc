/* SPDX-License-Identifier: MIT */
#include "attention.h"

#include "../base/memory.h"

/* AMX: rows of a position bias that are laid out at a time. */
#define QUERY_ROWS 16

typedef struct sizes {
    size_t scores, probabilities, operand, bias, regions, tiles;
} sizes;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void measure_products(const sw_network *network, const sw_stage *stage, sizes *size)
{
    const sw_attention_plan *plan = &stage->attention;
    const size_t element = sw_type_size(network->type), slots = (size_t)stage->slots;
    const size_t scores = (size_t)plan->windows * (size_t)plan->heads * (size_t)plan->queries * slots;
    const size_t operand = (size_t)plan->windows * (size_t)plan->heads * slots * (size_t)stage->head_channels;
    size->scores = larger(size->scores, scores * sizeof(float));
    size->probabilities = larger(size->probabilities, scores * element);
    size->operand = larger(size->operand, operand * element);
    size->bias = larger(size->bias, (size_t)plan->queries * slots * sizeof(float));
}

static void measure_tiles(const sw_network *network, const sw_stage *stage, sizes *size)
{
    const size_t slots = (size_t)stage->slots, padded = slots + SW_AMX_ROWS;
    size->operand = larger(size->operand, padded * SW_AMX_WIDTH * sw_type_size(network->type));
    size->bias = larger(size->bias, QUERY_ROWS * slots * sizeof(float));
    size->tiles = larger(size->tiles, sw_amx_attention_scratch(network->type, stage->slots));
}

static sizes measure(const sw_network *network)
{
    sizes size = {0};
    for (int32_t s = 0; s < network->config.stages; s++) {
        const sw_stage *stage = &network->stages[s];
        size.regions = larger(size.regions, (size_t)stage->slots * sizeof(int32_t));
        if (network->amx)
            measure_tiles(network, stage, &size);
        else
            measure_products(network, stage, &size);
    }
    return size;
}

size_t sw_attention_memory_bytes(const sw_network *network)
{
    const sizes size = measure(network);
    return size.scores + size.probabilities + 4 * size.operand + size.bias + size.regions + size.tiles;
}

swin_status sw_attention_memory_create(sw_attention_memory *memory, const sw_network *network, swin_error *err)
{
    const sizes size = measure(network);
    memory->scores = sw_alloc_zeroed(size.scores, 1);
    memory->probabilities = sw_alloc_zeroed(size.probabilities, 1);
    memory->q = sw_alloc_zeroed(size.operand, 1);
    memory->k = sw_alloc_zeroed(size.operand, 1);
    memory->v = sw_alloc_zeroed(size.operand, 1);
    memory->context = sw_alloc_zeroed(size.operand, 1);
    memory->bias = sw_alloc_zeroed(size.bias, 1);
    memory->regions = sw_alloc_zeroed(size.regions, 1);
    memory->tiles = sw_alloc_zeroed(size.tiles, 1);
    if (memory->scores == NULL || memory->probabilities == NULL || memory->q == NULL || memory->k == NULL ||
        memory->v == NULL || memory->context == NULL || memory->bias == NULL || memory->regions == NULL ||
        memory->tiles == NULL)
        return sw_fail_memory(err, sw_attention_memory_bytes(network), "attention");
    return SWIN_OK;
}

void sw_attention_memory_destroy(sw_attention_memory *memory)
{
    sw_free(memory->scores);
    sw_free(memory->probabilities);
    sw_free(memory->q);
    sw_free(memory->k);
    sw_free(memory->v);
    sw_free(memory->context);
    sw_free(memory->bias);
    sw_free(memory->regions);
    sw_free(memory->tiles);
}

static void *at(const void *base, sw_type type, size_t index)
{
    return (char *)base + index * sw_type_size(type);
}

/* Softmax over `rows` query rows, from `first_query` on, of `heads` heads of one window. */
static void softmax_heads(const sw_attention *a, const sw_attention_memory *memory, int32_t window_number,
                          const float *scores, void *probabilities, int32_t first_head, int32_t heads,
                          int32_t first_query, int32_t rows)
{
    const sw_stage *stage = &a->network->stages[a->stage];
    const int32_t live = sw_geometry_slots(a->geometry);
    const size_t stride = (size_t)stage->slots, matrix = (size_t)stage->attention.queries * stride;
    const int32_t *regions =
        sw_geometry_regions(a->geometry, a->shifted, window_number, memory->regions) ? memory->regions : NULL;
    if (first_query + rows > live)
        rows = live - first_query;
    if (rows <= 0)
        return;
    for (int32_t h = 0; h < heads; h++) {
        const float *bias = sw_position_bias_rows(a->bias, first_head + h, first_query, rows, memory->bias);
        a->kernels->softmax(at(probabilities, a->network->type, (size_t)h * matrix), a->network->type,
                            scores + (size_t)h * matrix, bias, (size_t)live, regions, a->geometry->mask, first_query,
                            rows, live, stride);
    }
}

/* Windows whose slots are viewed where they lie, or laid out window by window with all heads of the panel side by
 * side. */
static swin_status run_viewed(const sw_attention *a, const sw_tile *tile, int32_t part, int32_t first, int32_t windows,
                              const sw_attention_memory *memory, sw_dnn_thread *thread)
{
    const sw_stage *stage = &a->network->stages[a->stage];
    const sw_block *block = &stage->blocks[a->block];
    const sw_attention_plan *plan = &stage->attention;
    const int32_t slots = stage->slots, width = tile->qkv.width, rows = windows * slots;
    const sw_type type = a->network->type;
    const bool batch = windows == plan->windows;
    const void *operand[3];
    for (int i = 0; i < 3; i++) {
        const int32_t column_panel = i * stage->head_parts + part;
        const void *source = at(tile->qkv.data, type, (size_t)column_panel * tile->qkv.stride);
        if (tile->whole) {
            operand[i] = at(source, type, (size_t)first * (size_t)slots * (size_t)width);
            continue;
        }
        void *laid_out = i == 0 ? memory->q : i == 1 ? memory->k : memory->v;
        const float *pad = block->qkv.bias + (size_t)column_panel * (size_t)width;
        a->kernels->gather_head(laid_out, type, source, type, (size_t)width,
                                tile->slots + (size_t)first * (size_t)slots, pad, rows, width, false, 1.0f);
        operand[i] = laid_out;
    }
    SW_TRY(sw_product_attention(batch ? plan->scores : plan->scores_single, thread, operand[0], operand[1],
                                memory->scores));
    const size_t scores = (size_t)plan->heads * (size_t)slots * (size_t)slots;
    for (int32_t w = 0; w < windows; w++)
        softmax_heads(a, memory, tile->numbers[first + w], memory->scores + (size_t)w * scores,
                      at(memory->probabilities, type, (size_t)w * scores), part * plan->heads, plan->heads, 0, slots);

    void *context_panel = at(tile->context.data, type, (size_t)part * tile->context.stride);
    void *context =
        tile->whole ? at(context_panel, type, (size_t)first * (size_t)slots * (size_t)width) : memory->context;
    SW_TRY(sw_product_attention(batch ? plan->context : plan->context_single, thread, memory->probabilities, operand[2],
                                context));
    if (!tile->whole)
        a->kernels->scatter_head(context_panel, type, (size_t)width, context,
                                 tile->slots + (size_t)first * (size_t)slots, rows, width);
    return SWIN_OK;
}

/* q, k and v of some heads of one window, head by head; V2 normalises q and k. */
static void lay_out_heads(const sw_attention *a, const sw_tile *tile, int32_t part, int32_t window, int32_t first_head,
                          int32_t heads, const sw_attention_memory *memory)
{
    const sw_stage *stage = &a->network->stages[a->stage];
    const sw_block *block = &stage->blocks[a->block];
    const bool v2 = a->network->config.version == 2;
    const int32_t slots = stage->slots, d = stage->head_channels, width = tile->qkv.width;
    const int32_t *rows = tile->slots + (size_t)window * (size_t)slots;
    const sw_type source_type = tile->qkv.type, type = a->network->type;
    for (int i = 0; i < 3; i++) {
        const int32_t column_panel = i * stage->head_parts + part;
        void *laid_out = i == 0 ? memory->q : i == 1 ? memory->k : memory->v;
        for (int32_t h = 0; h < heads; h++) {
            const size_t column = (size_t)(first_head + h) * (size_t)d;
            const void *source = at(tile->qkv.data, source_type, (size_t)column_panel * tile->qkv.stride + column);
            const float *pad = block->qkv.bias + (size_t)column_panel * (size_t)width + column;
            const float scale = v2 && i == 0 ? block->logit_scale[part * (width / d) + first_head + h] : 1.0f;
            a->kernels->gather_head(at(laid_out, type, (size_t)h * (size_t)slots * (size_t)d), type, source,
                                    source_type, (size_t)width, rows, pad, slots, d, v2 && i < 2, scale);
        }
    }
}

static swin_status run_split(const sw_attention *a, const sw_tile *tile, int32_t part, int32_t window,
                             const sw_attention_memory *memory, sw_dnn_thread *thread)
{
    const sw_stage *stage = &a->network->stages[a->stage];
    const sw_attention_plan *plan = &stage->attention;
    const int32_t slots = stage->slots, d = stage->head_channels, width = tile->qkv.width, heads = plan->heads;
    const int32_t live = sw_geometry_slots(a->geometry);
    const sw_type type = a->network->type;
    const int32_t *rows = tile->slots + (size_t)window * (size_t)slots;
    char *context_panel = at(tile->context.data, type, (size_t)part * tile->context.stride);
    for (int32_t head = 0; head < width / d; head += heads) {
        lay_out_heads(a, tile, part, window, head, heads, memory);
        for (int32_t query = 0; query < live; query += plan->queries) {
            SW_TRY(sw_product_attention(plan->scores_single, thread, at(memory->q, type, (size_t)query * (size_t)d),
                                        memory->k, memory->scores));
            softmax_heads(a, memory, tile->numbers[window], memory->scores, memory->probabilities,
                          part * (width / d) + head, heads, query, plan->queries);
            SW_TRY(sw_product_attention(plan->context_single, thread, memory->probabilities, memory->v,
                                        at(memory->context, type, (size_t)query * (size_t)d)));
        }
        for (int32_t h = 0; h < heads; h++)
            a->kernels->scatter_head(context_panel + (size_t)(head + h) * (size_t)d * sw_type_size(type), type,
                                     (size_t)width, at(memory->context, type, (size_t)h * (size_t)slots * (size_t)d),
                                     rows, slots, d);
    }
    return SWIN_OK;
}

/* With AMX: a head is a panel, and a window that is whole lies in it as it is wanted. */
static void run_tiles(const sw_attention *a, const sw_tile *tile, int32_t part, int32_t window,
                      const sw_attention_memory *memory)
{
    const sw_stage *stage = &a->network->stages[a->stage];
    const sw_block *block = &stage->blocks[a->block];
    const bool v2 = a->network->config.version == 2;
    const int32_t heads = stage->heads / a->parts, live = sw_geometry_slots(a->geometry);
    const int32_t *rows = tile->slots + (size_t)window * (size_t)stage->slots;
    const size_t first = (size_t)window * (size_t)stage->slots * SW_AMX_WIDTH;
    const sw_type type = a->network->type;
    sw_amx_attention run = {
        .type = type,
        .tokens = live,
        .region = sw_geometry_regions(a->geometry, a->shifted, tile->numbers[window], memory->regions) ? memory->regions
                                                                                                       : NULL,
        .mask = a->geometry->mask,
        .scratch = memory->tiles,
    };
    for (int32_t head = part * heads; head < (part + 1) * heads; head++) {
        const void *operand[3];
        for (int i = 0; i < 3; i++) {
            const int32_t panel = i * stage->heads + head;
            const void *source = at(tile->qkv.data, type, (size_t)panel * tile->qkv.stride);
            if (tile->whole) {
                operand[i] = at(source, type, first);
                continue;
            }
            /* V2: queries of padding are of no account, keys of padding are zero, and there is no normalising left to
             * do */
            const float *pad = v2 && i < 2 ? NULL : block->qkv.bias + panel * SW_AMX_WIDTH;
            void *laid_out = i == 0 ? memory->q : i == 1 ? memory->k : memory->v;
            a->kernels->gather_head(laid_out, type, source, type, SW_AMX_WIDTH, rows, pad, live, SW_AMX_WIDTH, false,
                                    1.0f);
            operand[i] = laid_out;
        }
        void *context_panel = at(tile->context.data, type, (size_t)head * tile->context.stride);
        run.q = operand[0];
        run.k = operand[1];
        run.v = operand[2];
        run.context = tile->whole ? at(context_panel, type, first) : memory->context;
        sw_amx_attention_load(&run);
        const int32_t step = a->bias->expanded ? live : QUERY_ROWS;
        for (int32_t query = 0; query < live; query += step) {
            const int32_t count = live - query < step ? live - query : step;
            sw_amx_attention_queries(&run, query, count,
                                     sw_position_bias_rows(a->bias, head, query, count, memory->bias));
        }
        if (!tile->whole)
            a->kernels->scatter_head(context_panel, type, SW_AMX_WIDTH, memory->context, rows, live, SW_AMX_WIDTH);
    }
}

swin_status sw_attention_run(const sw_attention *a, const sw_tile *tile, int32_t part, int32_t first, int32_t count,
                             const sw_attention_memory *memory, sw_dnn_thread *thread)
{
    const sw_attention_plan *plan = &a->network->stages[a->stage].attention;
    const int32_t end = first + count;
    if (a->network->amx) {
        for (int32_t window = first; window < end; window++)
            run_tiles(a, tile, part, window, memory);
        return SWIN_OK;
    }
    if (plan->split) {
        for (int32_t window = first; window < end; window++)
            SW_TRY(run_split(a, tile, part, window, memory, thread));
        return SWIN_OK;
    }
    while (first < end) {
        const int32_t windows = end - first >= plan->windows ? plan->windows : 1;
        SW_TRY(run_viewed(a, tile, part, first, windows, memory, thread));
        first += windows;
    }
    return SWIN_OK;
}
