/* SPDX-License-Identifier: MIT */
#include "../base/memory.h"
#include "product.h"

/* The memory objects of one product for one thread; only their data pointers change. */
typedef struct operands {
    dnnl_memory_t a, b, bias, c, scratchpad;
} operands;

struct sw_dnn_thread {
    dnnl_stream_t stream;
    operands *operands;
    int32_t count;
    void *scratchpad;
};

static dnnl_status_t make_memory(const sw_dnn *dnn, const sw_product *product, dnnl_query_t what, int index, void *data,
                                 dnnl_memory_t *memory)
{
    return dnnl_memory_create(memory, dnnl_primitive_desc_query_md(product->desc, what, index), dnn->engine, data);
}

static dnnl_status_t make_operands(const sw_dnn *dnn, const sw_product *product, void *scratchpad, operands *o)
{
    dnnl_status_t status = make_memory(dnn, product, dnnl_query_src_md, 0, NULL, &o->a);
    if (status == dnnl_success && product->kind != SW_LINEAR)
        status = make_memory(dnn, product, dnnl_query_weights_md, 0, NULL, &o->b);
    if (status == dnnl_success && product->kind == SW_LINEAR && product->shape.linear.bias)
        status = make_memory(dnn, product, dnnl_query_weights_md, 1, NULL, &o->bias);
    if (status == dnnl_success)
        status = make_memory(dnn, product, dnnl_query_dst_md, 0, NULL, &o->c);
    if (status == dnnl_success)
        status = make_memory(dnn, product, dnnl_query_scratchpad_md, 0, scratchpad, &o->scratchpad);
    return status;
}

swin_status sw_dnn_thread_create(const sw_dnn *dnn, sw_dnn_thread **thread, swin_error *err)
{
    size_t scratchpad_bytes = 0;
    for (int32_t i = 0; i < dnn->count; i++) {
        if (dnn->products[i]->scratchpad_bytes > scratchpad_bytes)
            scratchpad_bytes = dnn->products[i]->scratchpad_bytes;
    }
    sw_dnn_thread *t = sw_alloc_zeroed(1, sizeof *t);
    if (t == NULL)
        return sw_fail_memory(err, sizeof *t, "a thread's oneDNN context");
    t->count = dnn->count;
    t->operands = sw_alloc_zeroed((size_t)dnn->count, sizeof *t->operands);
    t->scratchpad = sw_alloc(scratchpad_bytes, 1);
    if (t->operands == NULL || t->scratchpad == NULL) {
        sw_dnn_thread_destroy(t);
        return sw_fail_memory(err, scratchpad_bytes, "oneDNN's scratchpad");
    }
    dnnl_status_t status = dnnl_stream_create(&t->stream, dnn->engine, dnnl_stream_default_flags);
    for (int32_t i = 0; i < dnn->count && status == dnnl_success; i++)
        status = make_operands(dnn, dnn->products[i], t->scratchpad, &t->operands[i]);
    if (status != dnnl_success) {
        sw_dnn_thread_destroy(t);
        return sw_fail_backend(err, (int)status, "to make memory objects");
    }
    *thread = t;
    return SWIN_OK;
}

static void destroy_memory(dnnl_memory_t memory)
{
    if (memory != NULL)
        dnnl_memory_destroy(memory);
}

void sw_dnn_thread_destroy(sw_dnn_thread *thread)
{
    if (thread == NULL)
        return;
    for (int32_t i = 0; thread->operands != NULL && i < thread->count; i++) {
        const operands *o = &thread->operands[i];
        destroy_memory(o->a);
        destroy_memory(o->b);
        destroy_memory(o->bias);
        destroy_memory(o->c);
        destroy_memory(o->scratchpad);
    }
    if (thread->stream != NULL)
        dnnl_stream_destroy(thread->stream);
    sw_free(thread->operands);
    sw_free(thread->scratchpad);
    sw_free(thread);
}

/* oneDNN takes operands as non-const pointers; it writes to `c` alone. */
static dnnl_status_t point_at(dnnl_memory_t memory, const void *data)
{
    return dnnl_memory_set_data_handle(memory, (void *)data);
}

swin_status sw_product_linear(const sw_product *product, sw_dnn_thread *thread, const void *a, const sw_weights *w,
                              const float *bias, void *c)
{
    const operands *o = &thread->operands[product->index];
    dnnl_exec_arg_t args[5] = {{DNNL_ARG_SRC, o->a},
                               {DNNL_ARG_WEIGHTS, w->memory},
                               {DNNL_ARG_DST, o->c},
                               {DNNL_ARG_SCRATCHPAD, o->scratchpad}};
    int count = 4;
    dnnl_status_t status = point_at(o->a, a);
    if (status == dnnl_success)
        status = point_at(o->c, c);
    if (status == dnnl_success && o->bias != NULL) {
        status = point_at(o->bias, bias);
        args[count++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, o->bias};
    }
    if (status == dnnl_success)
        status = dnnl_primitive_execute(product->primitive, thread->stream, count, args);
    return status == dnnl_success ? SWIN_OK : SWIN_ERR_BACKEND;
}

swin_status sw_product_attention(const sw_product *product, sw_dnn_thread *thread, const void *a, const void *b,
                                 void *c)
{
    const operands *o = &thread->operands[product->index];
    const dnnl_exec_arg_t args[4] = {{DNNL_ARG_SRC, o->a},
                                     {DNNL_ARG_WEIGHTS, o->b},
                                     {DNNL_ARG_DST, o->c},
                                     {DNNL_ARG_SCRATCHPAD, o->scratchpad}};
    dnnl_status_t status = point_at(o->a, a);
    if (status == dnnl_success)
        status = point_at(o->b, b);
    if (status == dnnl_success)
        status = point_at(o->c, c);
    if (status == dnnl_success)
        status = dnnl_primitive_execute(product->primitive, thread->stream, 4, args);
    return status == dnnl_success ? SWIN_OK : SWIN_ERR_BACKEND;
}
