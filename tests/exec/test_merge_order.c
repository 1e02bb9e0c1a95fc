/* SPDX-License-Identifier: MIT */
/*
 * Merging in place: the next map is written over the map that is being read. Kernels that compute nothing note which
 * floats of the residual stream each round reads and writes; a round is one call of sw_pool_run(), whose items threads
 * may do in any order. No round may write what it reads itself or what a later one reads.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config_of.h"
#include "exec/layer.h"
#include "exec/patch_merge.h"
#include "memory_counted.h"

enum { IMAGES = 2, NEVER = 0 };

/* One merge. */
static struct {
    const float *base; /* of the residual stream               */
    size_t floats;
    int32_t *read, *written; /* [floats]: in which round, or NEVER   */
    int32_t round;
    char fault[200];
} watch;

void __real_sw_pool_run(sw_pool *pool, int32_t items, sw_task *task, void *context);
void __wrap_sw_pool_run(sw_pool *pool, int32_t items, sw_task *task, void *context);
void __wrap_sw_pool_run(sw_pool *pool, int32_t items, sw_task *task, void *context)
{
    watch.round++;
    __real_sw_pool_run(pool, items, task, context);
}

/* Notes that floats are read or written in this round; each may be once. */
static void note(int32_t *rounds, const float *x, size_t count, const char *what)
{
    if (x < watch.base || (size_t)(x - watch.base) + count > watch.floats) {
        snprintf(watch.fault, sizeof watch.fault, "%s outside of the buffer", what);
        return;
    }
    for (size_t i = (size_t)(x - watch.base), end = i + count; i < end; i++) {
        if (rounds[i] != NEVER)
            snprintf(watch.fault, sizeof watch.fault, "float %zu %s in rounds %d and %d", i, what, rounds[i],
                     watch.round);
        rounds[i] = watch.round;
    }
}

static void watched_gather_merge(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows,
                                 int32_t channels, const sw_norm *norm)
{
    (void)dst;
    (void)norm;
    for (int32_t i = 0; i < 4 * rows; i++) {
        if (index[i] >= 0)
            note(watch.read, x + (size_t)index[i] * (size_t)channels, (size_t)channels, "read");
    }
}

static void watched_residual(float *x, const int32_t *index, const sw_panels *y, const sw_norm *post, int32_t rows,
                             int32_t channels, const sw_panels *dst, const sw_norm *pre)
{
    (void)index;
    (void)y;
    (void)post;
    (void)dst;
    (void)pre;
    note(watch.written, x, (size_t)rows * (size_t)channels, "written");
}

/* After a merge: what was read and written is the one map and the other, and in a good order. */
static void check_merge(const sw_run *run, int32_t s, const char *where)
{
    if (watch.fault[0] != '\0')
        fail_msg("%s: %s", where, watch.fault);
    for (size_t i = 0; i < watch.floats; i++) {
        const size_t image = i / run->plan->image_floats, at = i % run->plan->image_floats;
        bool belongs[2];
        for (int32_t m = 0; m < 2; m++) {
            const sw_stage_plan *plan = &run->plan->stage[s + m];
            const size_t size = (size_t)plan->tokens * (size_t)run->network->stages[s + m].channels;
            belongs[m] = image < IMAGES && at >= plan->offset && at < plan->offset + size;
        }
        if ((watch.read[i] != NEVER) != belongs[0] || (watch.written[i] != NEVER) != belongs[1])
            fail_msg("%s: float %zu read in round %d, written in round %d", where, i, watch.read[i], watch.written[i]);
        if (belongs[0] && belongs[1] && watch.written[i] <= watch.read[i])
            fail_msg("%s: float %zu is written in round %d, read in round %d", where, i, watch.written[i],
                     watch.read[i]);
    }
}

/* All merges of an image size; returns the rounds of the first. */
static int32_t check_size(sw_run *run, sw_plan *plan, sw_network *network, int32_t height, int32_t width,
                          int32_t stages)
{
    swin_error err;
    if (sw_plan_make(plan, network, 1, height, width, stages, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    int32_t first = 0;
    watch.floats = IMAGES * plan->image_floats;
    run->residual = malloc(watch.floats * sizeof(float)); /* not the library's: exact bounds for the sanitizer */
    watch.base = run->residual;
    watch.read = malloc(watch.floats * sizeof *watch.read);
    watch.written = malloc(watch.floats * sizeof *watch.written);
    assert_true(run->residual != NULL && watch.read != NULL && watch.written != NULL);
    for (int32_t s = 0; s + 1 < stages; s++) {
        memset(watch.read, 0, watch.floats * sizeof *watch.read);
        memset(watch.written, 0, watch.floats * sizeof *watch.written);
        watch.round = NEVER;
        sw_patch_merge_run(run, s);
        assert_false(sw_run_failed(run));
        char where[100];
        snprintf(where, sizeof where, "%d x %d, %d stages, %d channels, merge %d", height, width, stages,
                 network->config.embed_dim, s);
        check_merge(run, s, where);
        if (s == 0)
            first = watch.round;
    }
    free(run->residual);
    free(watch.read);
    free(watch.written);
    return first;
}

/* Maps of the first stage: patches are one pixel. Those of more than 2^18 floats in the second stage need several
 * rounds. */
static const struct {
    int32_t height, width;
    bool several;
} sizes[] = {
    {1, 1, false},     {1, 2, false},    {2, 1, false},    {1, 9, false},    {9, 1, false},     {3, 3, false},
    {2, 255, false},   {31, 45, false},  {64, 64, false},  {113, 226, true}, {1, 40001, false}, {40001, 1, true},
    {2, 30001, false}, {30001, 2, true}, {3, 20001, true}, {20001, 3, true}, {300, 301, true},  {301, 300, true},
    {5, 9999, true},   {9999, 5, true},  {7, 4000, true},
};

static void no_round_destroys_what_is_to_be_read(void **state)
{
    (void)state;
    static const struct {
        int32_t version, embed_dim, stages;
        sw_type type;
    } networks[] = {{1, 24, 4, SW_F32}, {2, 24, 2, SW_BF16}, {1, 32, 3, SW_F32}, {1, 32, 4, SW_BF16}};
    for (size_t n = 0; n < sizeof networks / sizeof networks[0]; n++) {
        swin_config config = config_of(networks[n].version, networks[n].stages, networks[n].embed_dim, 1, 7);
        config.patch_size = 1;
        config.mlp_ratio = 1.0;
        sw_model *model;
        sw_network *network = NULL;
        swin_error err;
        if (sw_model_create_random(&config, 1, &model, &err) != SWIN_OK ||
            sw_network_create(model, networks[n].type, true, 1, &network, &err) != SWIN_OK)
            fail_msg("%s", err.message);
        const sw_kernels kernels = {
            .name = "watched", .gather_merge = watched_gather_merge, .residual = watched_residual};
        sw_plan plan = {0};
        sw_worker worker = {0};
        sw_run run = {.network = network, .kernels = &kernels, .plan = &plan, .workers = &worker, .images = IMAGES};
        const size_t widest = (size_t)networks[n].embed_dim << networks[n].stages, rows = 128;
        worker.rows = calloc(rows * 2 * widest, sizeof(float));
        worker.out = calloc(rows * widest, sizeof(float));
        worker.linear.scratch = aligned_alloc(64, (sw_layer_scratch(network) + 127) / 64 * 64);
        assert_true(worker.rows != NULL && worker.out != NULL && worker.linear.scratch != NULL);
        assert_int_equal(sw_dnn_thread_create(network->dnn, &worker.linear.dnn, NULL), SWIN_OK);
        assert_int_equal(sw_pool_create(1, NULL, &run.pool, NULL), SWIN_OK);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            const int32_t rounds =
                check_size(&run, &plan, network, sizes[i].height, sizes[i].width, networks[n].stages);
            if (sizes[i].several ? rounds < 2 : rounds < 1)
                fail_msg("%d x %d takes %d rounds: the test tests nothing", sizes[i].height, sizes[i].width, rounds);
        }
        sw_pool_destroy(run.pool);
        sw_dnn_thread_destroy(worker.linear.dnn);
        free(worker.linear.scratch);
        free(worker.rows);
        free(worker.out);
        sw_plan_release(&plan);
        sw_network_destroy(network);
        sw_model_destroy(model);
        assert_int_equal(memory_live_blocks(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_round_destroys_what_is_to_be_read),
    };
    return cmocka_run_group_tests_name("merging in place", tests, NULL, NULL);
}
