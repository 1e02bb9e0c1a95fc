/* SPDX-License-Identifier: MIT */
#include "backend_refusing.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "dnn/backend.h"

static atomic_long remaining = -1;
static atomic_bool has_refused, reference;

void backend_fail_after(long count)
{
    atomic_store(&has_refused, false);
    atomic_store(&remaining, count);
}

bool backend_fail_no_more(void)
{
    atomic_store(&remaining, -1);
    return atomic_load(&has_refused);
}

void backend_claim_reference(bool claim)
{
    atomic_store(&reference, claim);
}

static bool refused(void)
{
    long before = atomic_load(&remaining);
    while (before >= 0 && !atomic_compare_exchange_weak(&remaining, &before, before - 1))
        ;
    if (before == 0)
        atomic_store(&has_refused, true);
    return before == 0;
}

static atomic_bool without_bf16;

void backend_without_bf16(bool without)
{
    atomic_store(&without_bf16, without);
}

/* Handles and descriptions are pointers in both generations of oneDNN, enumerations are ints: all that matters here. */
#define WRAP(name, parameters, arguments)                                                                              \
    int __real_##name parameters;                                                                                      \
    int __wrap_##name parameters;                                                                                      \
    int __wrap_##name parameters                                                                                       \
    {                                                                                                                  \
        return refused() ? BACKEND_REFUSAL : __real_##name arguments;                                                  \
    }

WRAP(dnnl_engine_create, (void *engine, int kind, size_t index), (engine, kind, index))
WRAP(dnnl_stream_create, (void *stream, void *engine, unsigned flags), (stream, engine, flags))
WRAP(dnnl_memory_create, (void *memory, const void *desc, void *engine, void *data), (memory, desc, engine, data))
WRAP(dnnl_memory_set_data_handle, (void *memory, void *data), (memory, data))
WRAP(dnnl_primitive_create, (void *primitive, const void *desc), (primitive, desc))
WRAP(dnnl_primitive_execute, (const void *primitive, void *stream, int count, const void *args),
     (primitive, stream, count, args))
WRAP(dnnl_primitive_attr_create, (void *attr), (attr))

int __real_dnnl_primitive_desc_query(const void *desc, int what, int index, void *result);
int __wrap_dnnl_primitive_desc_query(const void *desc, int what, int index, void *result);
int __wrap_dnnl_primitive_desc_query(const void *desc, int what, int index, void *result)
{
    if (refused())
        return BACKEND_REFUSAL;
    const int status = __real_dnnl_primitive_desc_query(desc, what, index, result);
    if (status == 0 && atomic_load(&reference))
        *(const char **)result = "ref:any"; /* the library asks for the name alone this way */
    return status;
}

dnnl_status_t __real_sw_backend_matmul_create(dnnl_engine_t engine, const sw_backend_matmul *matmul,
                                              dnnl_primitive_desc_t *desc);
dnnl_status_t __wrap_sw_backend_matmul_create(dnnl_engine_t engine, const sw_backend_matmul *matmul,
                                              dnnl_primitive_desc_t *desc);
dnnl_status_t __wrap_sw_backend_matmul_create(dnnl_engine_t engine, const sw_backend_matmul *matmul,
                                              dnnl_primitive_desc_t *desc)
{
    if (atomic_load(&without_bf16) && matmul->a.type == dnnl_bf16)
        return dnnl_unimplemented;
    return __real_sw_backend_matmul_create(engine, matmul, desc);
}
