/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <string.h>
#include <time.h>

#include "../base/memory.h"
#include "attention_weights.h"
#include "block.h"
#include "feature_map.h"
#include "layer.h"
#include "patch_embed.h"
#include "patch_merge.h"

/* Images of a batch are computed side by side while their buffers stay below this. */
#define BATCH_BYTES (32u << 20)

struct sw_session {
    sw_network *network;
    sw_plan plan;
    sw_run run;
    size_t residual_floats; /* allocated */
    int32_t wide_tiles;     /* allocated */
    bool profiling;
    swin_profile profile;
    double mark; /* when the part that is being measured began, ms */
};

/* ------------------------------------------------------------------------------------------------------------------
 * Memory
 */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Elements of the input and output rows of patch embedding and merging. */
static void measure_rows(const sw_network *network, size_t *in, size_t *out)
{
    const size_t rows = (size_t)sw_menu_largest(&network->patch_menu);
    *in = rows * (size_t)network->patch.in_width;
    *out = rows * (size_t)network->config.embed_dim;
    for (int32_t s = 0; s < network->config.stages; s++) {
        const sw_stage *stage = &network->stages[s];
        if (stage->has_merge) {
            const size_t merged = sw_tile_panel_rows(sw_menu_largest(&stage->merge_menu));
            *in = larger(*in, merged * 4 * (size_t)stage->channels);
            *out = larger(*out, merged * 2 * (size_t)stage->channels);
        }
    }
}

static swin_status create_worker(sw_worker *worker, const sw_network *network, swin_error *err)
{
    size_t in, out;
    measure_rows(network, &in, &out);
    worker->rows = sw_alloc_zeroed(in, sw_type_size(network->type));
    worker->out = sw_alloc_zeroed(out, sizeof(float));
    if (worker->rows == NULL || worker->out == NULL)
        return sw_fail_memory(err, in * sw_type_size(network->type) + out * sizeof(float), "a thread's rows");
    SW_TRY(sw_tile_memory_create(&worker->tile, network, false, err));
    SW_TRY(sw_attention_memory_create(&worker->attention, network, err));
    const size_t scratch = sw_layer_scratch(network);
    if (scratch > 0) {
        worker->linear.scratch = sw_alloc_zeroed(scratch, 1);
        if (worker->linear.scratch == NULL)
            return sw_fail_memory(err, scratch, "a thread's rows");
    }
    return sw_dnn_thread_create(network->dnn, &worker->linear.dnn, err);
}

static void destroy_worker(sw_worker *worker)
{
    sw_free(worker->rows);
    sw_free(worker->out);
    sw_tile_memory_destroy(&worker->tile);
    sw_attention_memory_destroy(&worker->attention);
    sw_free(worker->linear.scratch);
    sw_dnn_thread_destroy(worker->linear.dnn);
}

static void enter_thread(void)
{
    sw_dnn_single_thread();
}

swin_status sw_session_create(sw_network *network, const sw_kernels *kernels, int32_t threads, bool profile,
                              sw_session **session, swin_error *err)
{
    sw_session *s = sw_alloc_zeroed(1, sizeof *s);
    if (s == NULL)
        return sw_fail_memory(err, sizeof *s, "a session");
    s->network = network;
    s->profiling = profile;
    s->run.network = network;
    s->run.kernels = kernels;
    s->run.plan = &s->plan;
    swin_status status = sw_pool_create(threads, enter_thread, &s->run.pool, err);
    if (status == SWIN_OK) {
        s->run.workers = sw_alloc_zeroed((size_t)threads, sizeof *s->run.workers);
        if (s->run.workers == NULL)
            status = sw_fail_memory(err, (size_t)threads * sizeof *s->run.workers, "a session's threads");
    }
    for (int32_t i = 0; i < threads && status == SWIN_OK; i++)
        status = create_worker(&s->run.workers[i], network, err);
    if (status != SWIN_OK) {
        sw_session_destroy(s);
        return status;
    }
    *session = s;
    return SWIN_OK;
}

static void release_wide_tiles(sw_session *session)
{
    for (int32_t i = 0; session->run.wide_tiles != NULL && i < session->wide_tiles; i++)
        sw_tile_memory_destroy(&session->run.wide_tiles[i]);
    sw_free(session->run.wide_tiles);
    session->run.wide_tiles = NULL;
    session->wide_tiles = 0;
}

void sw_session_destroy(sw_session *session)
{
    if (session == NULL)
        return;
    for (int32_t i = 0; session->run.workers != NULL && i < sw_pool_threads(session->run.pool); i++)
        destroy_worker(&session->run.workers[i]);
    sw_free(session->run.workers);
    sw_pool_destroy(session->run.pool);
    release_wide_tiles(session);
    sw_free(session->run.residual);
    sw_plan_release(&session->plan);
    sw_free(session);
}

/* Room for the residual streams of `images` images under the present plan, and for their wide tiles. */
static swin_status make_room(sw_session *session, int32_t images, swin_error *err)
{
    sw_run *run = &session->run;
    const size_t floats = (size_t)images * session->plan.image_floats;
    if (floats > session->residual_floats) {
        sw_free(run->residual);
        session->residual_floats = 0;
        run->residual = sw_alloc(floats, sizeof *run->residual);
        if (run->residual == NULL)
            return sw_fail_memory(err, floats * sizeof *run->residual, "the residual stream");
        session->residual_floats = floats;
    }
    bool wide = false;
    for (int32_t s = 0; s < session->plan.stages; s++)
        wide = wide || session->plan.stage[s].wide;
    if (!wide || images <= session->wide_tiles)
        return SWIN_OK;
    release_wide_tiles(session);
    run->wide_tiles = sw_alloc_zeroed((size_t)images, sizeof *run->wide_tiles);
    if (run->wide_tiles == NULL)
        return sw_fail_memory(err, (size_t)images * sizeof *run->wide_tiles, "tiles of small images");
    session->wide_tiles = images;
    for (int32_t i = 0; i < images; i++) {
        const swin_status status = sw_tile_memory_create(&run->wide_tiles[i], session->network, true, err);
        if (status != SWIN_OK) {
            release_wide_tiles(session);
            return status;
        }
    }
    return SWIN_OK;
}

size_t sw_session_scratch_bytes(const sw_session *session)
{
    const sw_network *network = session->network;
    size_t in, out;
    measure_rows(network, &in, &out);
    const size_t worker = sizeof(sw_worker) + in * sw_type_size(network->type) + out * sizeof(float) +
                          sw_tile_memory_bytes(network, false) + sw_attention_memory_bytes(network) +
                          sw_layer_scratch(network) + sw_dnn_thread_bytes(network->dnn);
    return session->residual_floats * sizeof(float) + session->plan.memory_count * sizeof(int32_t) +
           (size_t)sw_pool_threads(session->run.pool) * worker +
           (size_t)session->wide_tiles * sw_tile_memory_bytes(network, true);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Measuring
 */

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* Adds the time since the last mark to a part. */
static void measure(sw_session *session, double *part)
{
    if (!session->profiling)
        return;
    const double now = now_ms();
    *part += now - session->mark;
    session->mark = now;
}

static double linear_gflop(size_t rows, const sw_linear *linear)
{
    return 2e-9 * (double)rows * (double)linear->in_width * linear->in_parts * linear->out_width * linear->out_parts;
}

static void count_operations(sw_session *session, size_t images)
{
    const sw_network *network = session->network;
    const sw_plan *plan = &session->plan;
    double *gflop = session->profile.gflop;
    gflop[0] = (double)images * linear_gflop((size_t)plan->stage[0].tokens, &network->patch);
    for (int32_t s = 0; s < plan->stages; s++) {
        const sw_stage *stage = &network->stages[s];
        const sw_geometry *g = &plan->stage[s].geometry;
        const size_t tokens = (size_t)plan->stage[s].tokens;
        const double slots = sw_geometry_slots(g), windows = sw_geometry_window_count(g);
        const sw_block *block = &stage->blocks[0];
        gflop[s + 1] = stage->depth * (linear_gflop(tokens, &block->qkv) + linear_gflop(tokens, &block->proj) +
                                       linear_gflop(tokens, &block->fc1) + linear_gflop(tokens, &block->fc2) +
                                       4e-9 * windows * slots * slots * stage->channels);
        if (s + 1 < plan->stages)
            gflop[s + 1] += linear_gflop((size_t)plan->stage[s + 1].tokens, &stage->merge);
        gflop[s + 1] *= (double)images;
    }
}

void sw_session_profile(const sw_session *session, swin_profile *profile)
{
    const size_t struct_size = profile->struct_size;
    *profile = session->profile;
    profile->struct_size = struct_size;
}

/* ------------------------------------------------------------------------------------------------------------------
 * The forward pass
 */

static swin_status run_group(sw_session *session, const sw_pixels *pixels, size_t first, const swin_maps *maps)
{
    sw_run *run = &session->run;
    swin_profile *profile = &session->profile;
    sw_patch_embed_run(run, pixels);
    measure(session, &profile->patch_embed_ms);
    for (int32_t s = 0; s < session->plan.stages && !sw_run_failed(run); s++) {
        const sw_stage *stage = &session->network->stages[s];
        for (int32_t b = 0; b < stage->depth && !sw_run_failed(run); b++)
            sw_block_run(run, s, b);
        measure(session, &profile->blocks_ms[s]);
        if (maps->data[s] != NULL && !sw_run_failed(run)) {
            const size_t image_floats = (size_t)session->plan.stage[s].tokens * (size_t)stage->channels;
            sw_feature_map_run(run, s, maps->data[s] + first * image_floats, maps->layout == SWIN_LAYOUT_NHWC);
            measure(session, &profile->output_ms[s]);
        }
        if (s + 1 < session->plan.stages && !sw_run_failed(run)) {
            sw_patch_merge_run(run, s);
            measure(session, &profile->patch_merge_ms[s]);
        }
    }
    return (swin_status)atomic_load(&run->failed);
}

static swin_status run_batch(sw_session *session, const sw_pixels *pixels, size_t count, const swin_maps *maps,
                             swin_error *err)
{
    const size_t fitting = BATCH_BYTES / (session->plan.image_floats * sizeof(float));
    size_t group = count < SW_MAX_IMAGES_IN_WORK ? count : SW_MAX_IMAGES_IN_WORK;
    if (group > fitting)
        group = fitting > 0 ? fitting : 1;
    SW_TRY(make_room(session, (int32_t)group, err));
    atomic_store(&session->run.failed, SWIN_OK);
    for (size_t first = 0; first < count; first += group) {
        session->run.images = (int32_t)(count - first < group ? count - first : group);
        const swin_status status = run_group(session, pixels + first, first, maps);
        if (status != SWIN_OK)
            return sw_fail(err, status, "oneDNN failed to execute a matrix product");
    }
    return SWIN_OK;
}

static swin_status make_plan(sw_session *session, const int32_t canvas[2], int32_t stages, swin_error *err)
{
    return sw_plan_make(&session->plan, session->network, sw_pool_threads(session->run.pool), canvas[0], canvas[1],
                        stages, err);
}

swin_status sw_session_run(sw_session *session, const sw_pixels *pixels, size_t count, const int32_t canvas[2],
                           const swin_maps *maps, swin_error *err)
{
    int32_t stages = 0;
    for (int32_t s = 0; s < session->network->config.stages; s++) {
        if (maps->data[s] != NULL)
            stages = s + 1;
    }
    SW_TRY(make_plan(session, canvas, stages, err));
    double start = 0;
    if (session->profiling) {
        memset(&session->profile, 0, sizeof session->profile);
        count_operations(session, count);
        start = session->mark = now_ms();
    }
    const int32_t threads = sw_dnn_single_thread();
    const swin_status status = run_batch(session, pixels, count, maps, err);
    sw_dnn_restore_threads(threads);
    if (session->profiling)
        session->profile.total_ms = now_ms() - start;
    return status;
}

/* Up to the input of the request's block. */
static swin_status run_up_to(sw_session *session, const sw_pixels *pixels, const swin_attention_request *request,
                             swin_error *err)
{
    sw_run *run = &session->run;
    atomic_store(&run->failed, SWIN_OK);
    run->images = 1;
    sw_patch_embed_run(run, pixels);
    for (int32_t s = 0; s <= request->stage; s++) {
        const int32_t blocks = s < request->stage ? session->network->stages[s].depth : request->block;
        for (int32_t b = 0; b < blocks && !sw_run_failed(run); b++)
            sw_block_run(run, s, b);
        if (s < request->stage && !sw_run_failed(run))
            sw_patch_merge_run(run, s);
    }
    const swin_status status = (swin_status)atomic_load(&run->failed);
    return status == SWIN_OK ? SWIN_OK : sw_fail(err, status, "oneDNN failed to execute a matrix product");
}

swin_status sw_session_attention(sw_session *session, const sw_pixels *pixels, const int32_t canvas[2],
                                 const swin_attention_request *request, const swin_attention_info *info,
                                 const swin_attention *out, swin_error *err)
{
    /* A plan that reaches further, made for a run of this size, serves as well. */
    const bool planned = session->plan.image[0] == canvas[0] && session->plan.image[1] == canvas[1];
    const int32_t stages = planned && session->plan.stages > request->stage ? session->plan.stages : request->stage + 1;
    SW_TRY(make_plan(session, canvas, stages, err));
    SW_TRY(make_room(session, 1, err));
    const int32_t threads = sw_dnn_single_thread();
    swin_status status = run_up_to(session, pixels, request, err);
    if (status == SWIN_OK)
        status = sw_attention_weights_run(&session->run, request, info, out, err);
    sw_dnn_restore_threads(threads);
    return status;
}

void sw_session_set_kernels(sw_session *session, const sw_kernels *kernels)
{
    session->run.kernels = kernels;
}

const sw_network *sw_session_network(const sw_session *session)
{
    return session->network;
}

int32_t sw_session_threads(const sw_session *session)
{
    return sw_pool_threads(session->run.pool);
}

const char *sw_session_kernels(const sw_session *session)
{
    return session->run.kernels->name;
}
