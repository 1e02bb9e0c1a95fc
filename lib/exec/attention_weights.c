/* SPDX-License-Identifier: MIT */
#include "attention_weights.h"

#include <math.h>
#include <string.h>

#include "../base/checked.h"
#include "../base/memory.h"
#include "block.h"

/* ------------------------------------------------------------------------------------------------------------------
 * The request
 */

static swin_status check_index(const char *what, int32_t value, int32_t lowest, int32_t count, swin_error *err)
{
    if (value >= lowest && value < count)
        return SWIN_OK;
    return sw_fail(err, SWIN_ERR_ARGUMENT, "request.%s is %d, expected %d to %d", what, value, lowest, count - 1);
}

static swin_status check_request(const swin_config *config, const swin_attention_request *request, swin_error *err)
{
    SW_TRY(check_index("view", request->view, 0, SWIN_ATTENTION_IN_WINDOW + 1, err));
    SW_TRY(check_index("stage", request->stage, 0, config->stages, err));
    SW_TRY(check_index("block", request->block, 0, config->depths[request->stage], err));
    SW_TRY(check_index("head", request->head, SWIN_HEAD_EACH, config->heads[request->stage], err));
    return check_index("reserved", request->reserved, 0, 1, err);
}

/* The cell, window and slot of the pixel that is asked about. */
static swin_status find_query(const sw_geometry *g, bool shifted, const int32_t canvas[2],
                              const swin_attention_request *request, swin_attention_info *info, swin_error *err)
{
    for (int axis = 0; axis < 2; axis++) {
        const int32_t at = request->query[axis];
        if (at < 0 || at >= canvas[axis])
            return sw_fail(err, SWIN_ERR_ARGUMENT, "request.query is row %d, column %d, outside of %d x %d pixels",
                           request->query[0], request->query[1], canvas[0], canvas[1]);
        info->cell[axis] = at / info->stride;
        if (info->cell[axis] >= g->map[axis])
            return sw_fail(err, SWIN_ERR_ARGUMENT,
                           "request.query is row %d, column %d, beyond the last whole patch of %d x %d pixels",
                           request->query[0], request->query[1], canvas[0], canvas[1]);
    }
    sw_geometry_find(g, shifted, info->cell, &info->query_window, &info->query_slot);
    return SWIN_OK;
}

/* Head maps or matrices per window. */
static size_t matrices(const swin_attention_request *request, const swin_attention_info *info)
{
    return request->head == SWIN_HEAD_EACH ? (size_t)info->heads : 1;
}

swin_status sw_attention_weights_find(const swin_config *config, const int32_t canvas[2],
                                      const swin_attention_request *request, swin_attention_info *info,
                                      swin_error *err)
{
    SW_TRY(check_request(config, request, err));
    int32_t maps[SWIN_MAX_STAGES][2];
    SW_TRY(sw_plan_maps(config, canvas[0], canvas[1], maps, err));
    sw_geometry g;
    sw_geometry_init(&g, config, request->stage, maps[request->stage], canvas);
    const bool shifted = request->block % 2 == 1;
    *info = (swin_attention_info){.struct_size = sizeof *info,
                                  .stride = config->patch_size << request->stage,
                                  .heads = config->heads[request->stage],
                                  .map = {g.map[0], g.map[1]},
                                  .window = {g.window[0], g.window[1]},
                                  .shift = {shifted ? g.shift[0] : 0, shifted ? g.shift[1] : 0},
                                  .windows = {g.windows[0], g.windows[1]},
                                  .cell = {-1, -1},
                                  .query_window = -1,
                                  .query_slot = -1};
    const size_t slots = (size_t)sw_geometry_slots(&g), count = (size_t)sw_geometry_window_count(&g);
    size_t windows = 1, matrix = (size_t)g.map[0] * (size_t)g.map[1];
    if (request->view == SWIN_ATTENTION_ON_MAP) {
        SW_TRY(find_query(&g, shifted, canvas, request, info, err));
    } else {
        SW_TRY(check_index("window", request->window, SWIN_WINDOW_EACH, (int32_t)count, err));
        windows = request->window == SWIN_WINDOW_EACH ? count : 1;
        matrix = slots * slots;
    }
    info->token_count = windows * slots;
    if (!sw_mul(windows * matrices(request, info), matrix, &info->weight_count) ||
        info->weight_count > PTRDIFF_MAX / sizeof(float))
        return sw_fail(err, SWIN_ERR_LIMIT, "weights of %zu windows of %zu x %zu tokens do not fit the address range",
                       windows, slots, slots);
    return SWIN_OK;
}

/* ------------------------------------------------------------------------------------------------------------------
 * The weights
 */

/* One thread's memory. T slots of a window, d channels of a head. */
typedef struct scratch {
    float *q, *k;               /* [heads, T, d]                                                    */
    double *q_factor, *k_factor; /* [heads, T]: what turns their products into scores                */
    double *row, *mean;         /* [T]: the weights of one query; their sum over the heads          */
    float *bias;                /* [T]                                                              */
    int32_t *regions;           /* [T]                                                              */
} scratch;

typedef struct job {
    sw_run *run;
    const swin_attention_request *request;
    const swin_attention_info *info;
    const swin_attention *out;
    const sw_stage *stage;
    const sw_block *block;
    const sw_geometry *geometry;
    const sw_position_bias *bias;
    bool shifted;
    int32_t slots;             /* T on this image                 */
    int32_t first_head, heads; /* that are computed               */
    int32_t window;            /* the only one wanted, or -1: all */
    int32_t first_tile;
    scratch *scratch;          /* one per thread                  */
} job;

static void destroy_scratch(const scratch *s)
{
    sw_free(s->q);
    sw_free(s->k);
    sw_free(s->q_factor);
    sw_free(s->k_factor);
    sw_free(s->row);
    sw_free(s->mean);
    sw_free(s->bias);
    sw_free(s->regions);
}

static swin_status create_scratch(scratch *s, const job *j, swin_error *err)
{
    const size_t slots = (size_t)j->slots, rows = (size_t)j->heads * slots, d = (size_t)j->stage->head_channels;
    s->q = sw_alloc(rows, d * sizeof *s->q);
    s->k = sw_alloc(rows, d * sizeof *s->k);
    s->q_factor = sw_alloc(rows, sizeof *s->q_factor);
    s->k_factor = sw_alloc(rows, sizeof *s->k_factor);
    s->row = sw_alloc(slots, sizeof *s->row);
    s->mean = sw_alloc(slots, sizeof *s->mean);
    s->bias = sw_alloc(slots, sizeof *s->bias);
    s->regions = sw_alloc(slots, sizeof *s->regions);
    if (s->q == NULL || s->k == NULL || s->q_factor == NULL || s->k_factor == NULL || s->row == NULL ||
        s->mean == NULL || s->bias == NULL || s->regions == NULL)
        return sw_fail_memory(err, rows * d * 2 * sizeof *s->q, "attention weights");
    return SWIN_OK;
}

static double dot(const float *a, const float *b, int32_t count)
{
    double sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* q (which = 0) or k (1) of one head of a window: [T, d], and the factor of each row. V1 has the scale of the scores in
 * its weights. V2 divides by the lengths, unless the projection has done so: not for padding, which it never sees. */
static void lay_out(const job *j, const sw_tile *tile, const int32_t *rows, int which, int32_t head, float *dst,
                    double *factor)
{
    const int32_t d = j->stage->head_channels, width = tile->qkv.width;
    const int32_t column = which * j->stage->channels + head * d;
    const size_t at = (size_t)(column / width) * tile->qkv.stride + (size_t)(column % width);
    j->run->kernels->gather_head(dst, SW_F32, (const char *)tile->qkv.data + at * sw_type_size(tile->qkv.type),
                                 tile->qkv.type, (size_t)width, rows, j->block->qkv.bias + column, j->slots, d, false,
                                 1.0f);
    const bool v2 = j->run->network->config.version == 2, normalised = j->block->qkv.normalise != NULL;
    const double scale = v2 && which == 0 ? (double)j->block->logit_scale[head] : 1.0;
    for (int32_t t = 0; t < j->slots; t++, dst += d)
        factor[t] = v2 && !(normalised && rows[t] >= 0) ? scale / fmax(sqrt(dot(dst, dst, d)), 1e-12) : 1.0;
}

/* The weights of one query in one head, into scratch->row. */
static void attend(const job *j, const scratch *s, const int32_t *regions, int32_t head, int32_t query)
{
    const int32_t slots = j->slots, d = j->stage->head_channels;
    const size_t first = (size_t)head * (size_t)slots;
    const float *q = s->q + (first + (size_t)query) * (size_t)d, *k = s->k + first * (size_t)d;
    const float *bias = sw_position_bias_rows(j->bias, j->first_head + head, query, 1, s->bias);
    double largest = -INFINITY, sum = 0;
    for (int32_t i = 0; i < slots; i++, k += d) {
        double score = dot(q, k, d) * s->q_factor[first + (size_t)query] * s->k_factor[first + (size_t)i];
        score += (double)bias[i];
        if (regions != NULL && regions[query] != regions[i])
            score += (double)j->geometry->mask;
        s->row[i] = score;
        largest = fmax(largest, score);
    }
    for (int32_t i = 0; i < slots; i++)
        sum += s->row[i] = exp(s->row[i] - largest);
    for (int32_t i = 0; i < slots; i++)
        s->row[i] /= sum;
}

/* One query's weights to their place: `matrix` counts windows and heads that are handed out. */
static void hand_out(const job *j, const double *row, const sw_tile *tile, const int32_t *rows, size_t matrix,
                     int32_t query)
{
    const size_t slots = (size_t)j->slots;
    if (j->request->view == SWIN_ATTENTION_IN_WINDOW) {
        float *to = j->out->weights + (matrix * slots + (size_t)query) * slots;
        for (size_t i = 0; i < slots; i++)
            to[i] = (float)row[i];
        return;
    }
    float *map = j->out->weights + matrix * (size_t)j->info->map[0] * (size_t)j->info->map[1];
    for (size_t i = 0; i < slots; i++) {
        if (rows[i] >= 0)
            map[tile->tokens[rows[i]]] = (float)row[i];
    }
}

static void run_query(const job *j, const scratch *s, const sw_tile *tile, const int32_t *rows, const int32_t *regions,
                      size_t window, int32_t query)
{
    const size_t count = matrices(j->request, j->info);
    if (j->request->head != SWIN_HEAD_MEAN) {
        for (int32_t head = 0; head < j->heads; head++) {
            attend(j, s, regions, head, query);
            hand_out(j, s->row, tile, rows, window * count + (size_t)head, query);
        }
        return;
    }
    for (int32_t i = 0; i < j->slots; i++)
        s->mean[i] = 0;
    for (int32_t head = 0; head < j->heads; head++) {
        attend(j, s, regions, head, query);
        for (int32_t i = 0; i < j->slots; i++)
            s->mean[i] += s->row[i] / j->heads;
    }
    hand_out(j, s->mean, tile, rows, window, query);
}

/* Window number `at` of a tile, the one with this number among those handed out. */
static void run_window(const job *j, const scratch *s, const sw_tile *tile, int32_t at, size_t window)
{
    const int32_t *rows = tile->slots + (size_t)at * (size_t)j->stage->slots;
    const size_t slots = (size_t)j->slots, d = (size_t)j->stage->head_channels;
    for (int32_t h = 0; h < j->heads; h++) {
        const size_t first = (size_t)h * slots;
        lay_out(j, tile, rows, 0, j->first_head + h, s->q + first * d, s->q_factor + first);
        lay_out(j, tile, rows, 1, j->first_head + h, s->k + first * d, s->k_factor + first);
    }
    const int32_t *regions =
        sw_geometry_regions(j->geometry, j->shifted, tile->numbers[at], s->regions) ? s->regions : NULL;
    if (j->request->view == SWIN_ATTENTION_ON_MAP) {
        run_query(j, s, tile, rows, regions, 0, j->info->query_slot);
    } else {
        for (int32_t query = 0; query < j->slots; query++)
            run_query(j, s, tile, rows, regions, window, query);
    }
    for (size_t i = 0; i < slots && j->out->tokens != NULL; i++)
        j->out->tokens[window * slots + i] = rows[i] >= 0 ? tile->tokens[rows[i]] : -1;
}

static void tile_task(void *context, int32_t item, int32_t thread)
{
    const job *j = context;
    sw_run *run = j->run;
    if (sw_run_failed(run))
        return;
    const sw_worker *worker = &run->workers[thread];
    sw_tile tile;
    sw_tile_init(&tile, &worker->tile, run->network, run->plan, j->request->stage, j->shifted, j->first_tile + item);
    sw_run_note(run, sw_block_project(run, j->request->stage, j->request->block, &tile,
                                      sw_run_map(run, 0, j->request->stage), worker));
    sw_run_release_tiles(run);
    for (int32_t i = 0; i < tile.windows && !sw_run_failed(run); i++) {
        if (j->window < 0)
            run_window(j, &j->scratch[thread], &tile, i, (size_t)tile.numbers[i]);
        else if (j->window == tile.numbers[i])
            run_window(j, &j->scratch[thread], &tile, i, 0);
    }
}

/* The tile that a window is in. */
static int32_t tile_of(const sw_tiling *tiling, int32_t window)
{
    int32_t tile = 0, i = 0;
    while (tiling->windows[i] != window)
        i++;
    while (tiling->first[tile + 1] <= i)
        tile++;
    return tile;
}

swin_status sw_attention_weights_run(sw_run *run, const swin_attention_request *request,
                                     const swin_attention_info *info, const swin_attention *out, swin_error *err)
{
    const sw_stage_plan *plan = &run->plan->stage[request->stage];
    const bool one_head = request->head >= 0, on_map = request->view == SWIN_ATTENTION_ON_MAP;
    job j = {.run = run,
             .request = request,
             .info = info,
             .out = out,
             .stage = &run->network->stages[request->stage],
             .block = &run->network->stages[request->stage].blocks[request->block],
             .geometry = &plan->geometry,
             .bias = sw_plan_bias(run->plan, run->network, request->stage, request->block),
             .shifted = request->block % 2 == 1 && sw_geometry_shifts(&plan->geometry),
             .slots = sw_geometry_slots(&plan->geometry),
             .first_head = one_head ? request->head : 0,
             .heads = one_head ? 1 : info->heads,
             .window = on_map ? info->query_window : request->window};
    const sw_tiling *tiling = &plan->tiling[j.shifted];
    j.first_tile = j.window < 0 ? 0 : tile_of(tiling, j.window);
    const int32_t tiles = j.window < 0 ? tiling->tiles : 1;
    const int32_t threads = tiles > 1 ? sw_pool_threads(run->pool) : 1; /* a single item is the caller's own */

    j.scratch = sw_alloc_zeroed((size_t)threads, sizeof *j.scratch);
    if (j.scratch == NULL)
        return sw_fail_memory(err, (size_t)threads * sizeof *j.scratch, "attention weights");
    swin_status status = SWIN_OK;
    for (int32_t i = 0; i < threads && status == SWIN_OK; i++)
        status = create_scratch(&j.scratch[i], &j, err);
    if (status == SWIN_OK) {
        if (on_map)
            memset(out->weights, 0, info->weight_count * sizeof *out->weights);
        sw_pool_run(run->pool, tiles, tile_task, &j);
        status = (swin_status)atomic_load(&run->failed);
        if (status != SWIN_OK)
            status = sw_fail(err, status, "oneDNN failed to execute a matrix product");
    }
    for (int32_t i = 0; i < threads; i++)
        destroy_scratch(&j.scratch[i]);
    sw_free(j.scratch);
    return status;
}
