/* SPDX-License-Identifier: MIT */
/*
 * run.h - what the parts of a forward pass share: the network, the plan, the images in work, and the threads with
 * their memory.
 */
#ifndef SW_EXEC_RUN_H
#define SW_EXEC_RUN_H

#include <stdatomic.h>

#include "../base/threads.h"
#include "attention.h"
#include "network.h"
#include "plan.h"
#include "tile.h"

/* Images that are computed side by side, at most: beyond that a batch is worked off in groups. */
#define SW_MAX_IMAGES_IN_WORK 16

/* A thread's own memory. */
typedef struct sw_worker {
    sw_linear_thread linear;
    sw_tile_memory tile;
    sw_attention_memory attention;
    void *rows; /* input rows of the patch embedding and of merging */
    float *out; /* their output rows                                */
} sw_worker;

typedef struct sw_run {
    const sw_network *network;
    const sw_kernels *kernels;
    const sw_plan *plan;
    sw_pool *pool;
    sw_worker *workers;         /* one per thread                                  */
    sw_tile_memory *wide_tiles; /* one per image in work, for stages in wide form  */
    float *residual;            /* plan->image_floats per image in work            */
    int32_t images;             /* in work at once                                 */
    _Atomic int32_t failed;     /* the first failure of a task: a swin_status      */
} sw_run;

/* The map of a stage, [tokens, C], of an image in work. */
static inline float *sw_run_map(const sw_run *run, int32_t image, int32_t stage)
{
    return run->residual + (size_t)image * run->plan->image_floats + run->plan->stage[stage].offset;
}

/* Tasks cannot return a status: they leave it here, and later ones do nothing. */
static inline void sw_run_note(sw_run *run, swin_status status)
{
    int32_t none = SWIN_OK;
    if (status != SWIN_OK)
        atomic_compare_exchange_strong(&run->failed, &none, (int32_t)status);
}

static inline bool sw_run_failed(const sw_run *run)
{
    return atomic_load_explicit(&((sw_run *)run)->failed, memory_order_relaxed) != SWIN_OK;
}

/* At the end of a task that multiplied: a thread without tiles is cheaper to switch away from. */
static inline void sw_run_release_tiles(const sw_run *run)
{
    if (run->network->amx)
        sw_amx_release();
}

#endif
