/* SPDX-License-Identifier: MIT */
#include "packing.h"

#include <stdatomic.h>

#include "../base/memory.h"
#include "../base/threads.h"
#include "layer.h"

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
    const int32_t layers = sw_layer_count(network);
    if (item < layers) {
        sw_layer l = {0};
        sw_layer_describe(network, item, &l);
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

swin_status sw_packing_run(sw_network *network, int32_t threads, swin_error *err)
{
    size_t floats = 0;
    int32_t items = sw_layer_count(network);
    for (int32_t i = 0; i < items; i++) {
        sw_layer l = {0};
        sw_layer_describe(network, i, &l);
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
        p.status = sw_pool_create_up_to(threads, enter_thread, &pool, err);
    if (p.status == SWIN_OK)
        sw_pool_run(pool, items, pack_task, &p);
    sw_pool_destroy(pool);
    for (int32_t i = 0; p.scratch != NULL && i < threads; i++)
        sw_free(p.scratch[i]);
    sw_free(p.scratch);
    pthread_mutex_destroy(&p.lock);
    return p.status;
}
