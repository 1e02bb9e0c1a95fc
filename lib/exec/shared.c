/* SPDX-License-Identifier: MIT */
#include "shared.h"

#include <stdatomic.h>

#include "../base/memory.h"
#include "../base/threads.h"

/* Threads that pack weights: more would wait for memory. */
#define PACKING_THREADS 8

struct swin_model {
    _Atomic int32_t references;
    sw_model *model;
    swin_precision precision; /* what AUTO means for its sessions */
    pthread_mutex_t lock; /* of the networks being added */
    sw_network *networks[2]; /* by sw_type */
};

swin_precision sw_shared_fast_precision(void)
{
    return sw_cpu_has_amx() && sw_dnn_uses_amx_bf16() ? SWIN_PRECISION_BF16 : SWIN_PRECISION_F32;
}

swin_status sw_shared_create(sw_model *model, int32_t precision, swin_model **shared, swin_error *err)
{
    swin_model *s = sw_alloc_zeroed(1, sizeof *s);
    if (s == NULL) {
        sw_model_destroy(model);
        return sw_fail_memory(err, sizeof *s, "a model");
    }
    atomic_init(&s->references, 1);
    s->model = model;
    s->precision = precision == SWIN_PRECISION_AUTO ? sw_shared_fast_precision() : (swin_precision)precision;
    pthread_mutex_init(&s->lock, NULL);
    sw_network *network;
    const swin_status status = sw_shared_network(s, SWIN_PRECISION_AUTO, &network, err);
    if (status != SWIN_OK) {
        sw_shared_unref(s);
        return status;
    }
    *shared = s;
    return SWIN_OK;
}

swin_model *sw_shared_ref(swin_model *shared)
{
    atomic_fetch_add_explicit(&shared->references, 1, memory_order_relaxed);
    return shared;
}

void sw_shared_unref(swin_model *shared)
{
    if (shared == NULL || atomic_fetch_sub_explicit(&shared->references, 1, memory_order_acq_rel) > 1)
        return;
    for (int i = 0; i < 2; i++)
        sw_network_destroy(shared->networks[i]);
    sw_model_destroy(shared->model);
    pthread_mutex_destroy(&shared->lock);
    sw_free(shared);
}

const sw_model *sw_shared_model(const swin_model *shared)
{
    return shared->model;
}

swin_status sw_shared_network(swin_model *shared, int32_t precision, sw_network **network, swin_error *err)
{
    const int32_t chosen = precision == SWIN_PRECISION_AUTO ? (int32_t)shared->precision : precision;
    const sw_type type = chosen == SWIN_PRECISION_BF16 ? SW_BF16 : SW_F32;
    const int32_t cpus = sw_cpu_count();
    swin_status status = SWIN_OK;
    pthread_mutex_lock(&shared->lock);
    if (shared->networks[type] == NULL)
        status = sw_network_create(shared->model, type, true, cpus < PACKING_THREADS ? cpus : PACKING_THREADS,
                                   &shared->networks[type], err);
    *network = shared->networks[type];
    pthread_mutex_unlock(&shared->lock);
    return status;
}
