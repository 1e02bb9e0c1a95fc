/* SPDX-License-Identifier: MIT */
#include "../base/memory.h"
#include "product.h"
#include "widen.h"

/* The memory objects of one product for one thread; only their data pointers change. */
typedef struct operands {
    dnnl_memory_t a, b, bias, c, scratchpad;
} operands;

struct sw_dnn_thread {
    dnnl_stream_t stream;
    operands *operands;
    int32_t count;
    void *scratchpad;
    float *wide[3]; /* operands and result of widened products; empty where there are none */
};

/* Bytes that a thread needs for whichever product it executes. */
typedef struct needs {
    size_t scratchpad;
    size_t wide[3];
} needs;

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static needs measure(const sw_dnn *dnn)
{
    needs n = {0};
    for (int32_t i = 0; i < dnn->count; i++) {
        const sw_product *product = dnn->products[i];
        n.scratchpad = larger(n.scratchpad, product->scratchpad_bytes);
        if (!product->widened)
            continue;
        const sw_product_sizes sizes = sw_product_measure(product);
        n.wide[0] = larger(n.wide[0], sizes.a * sizeof(float));
        if (product->kind != SW_LINEAR)
            n.wide[1] = larger(n.wide[1], sizes.b * sizeof(float));
        n.wide[2] = larger(n.wide[2], sizes.c * sizeof(float));
    }
    return n;
}

size_t sw_dnn_thread_bytes(const sw_dnn *dnn)
{
    const needs n = measure(dnn);
    return sizeof(sw_dnn_thread) + (size_t)dnn->count * sizeof(operands) + n.scratchpad + n.wide[0] + n.wide[1] +
           n.wide[2];
}

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
    const needs n = measure(dnn);
    sw_dnn_thread *t = sw_alloc_zeroed(1, sizeof *t);
    if (t == NULL)
        return sw_fail_memory(err, sizeof *t, "a thread's oneDNN context");
    t->count = dnn->count;
    t->operands = sw_alloc_zeroed((size_t)dnn->count, sizeof *t->operands);
    t->scratchpad = sw_alloc(n.scratchpad, 1);
    bool complete = t->operands != NULL && t->scratchpad != NULL;
    for (int i = 0; i < 3; i++) {
        t->wide[i] = sw_alloc(n.wide[i], 1);
        complete = complete && t->wide[i] != NULL;
    }
    if (!complete) {
        sw_dnn_thread_destroy(t);
        return sw_fail_memory(err, sw_dnn_thread_bytes(dnn), "a thread's oneDNN context");
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
    for (int i = 0; i < 3; i++)
        sw_free(thread->wide[i]);
    sw_free(thread);
}

/* oneDNN takes operands as non-const pointers; it writes to `c` alone. */
static dnnl_status_t point_at(dnnl_memory_t memory, const void *data)
{
    return dnnl_memory_set_data_handle(memory, (void *)data);
}

/* Where the primitive finds an operand: a widened product gets a float32 copy. */
static const void *take(const sw_product *product, const sw_dnn_thread *thread, int which, const void *data,
                        size_t count)
{
    if (!product->widened)
        return data;
    sw_widen(thread->wide[which], data, count);
    return thread->wide[which];
}

/* Where it leaves the result: a bf16 one of a widened product is rounded afterwards. */
static bool is_narrowed(const sw_product *product)
{
    return product->widened &&
           (product->kind == SW_CONTEXT || (product->kind == SW_LINEAR && product->shape.linear.out_type == SW_BF16));
}

swin_status sw_product_linear(const sw_product *product, sw_dnn_thread *thread, const void *a, const sw_weights *w,
                              const float *bias, void *c)
{
    const operands *o = &thread->operands[product->index];
    const sw_product_sizes sizes = sw_product_measure(product);
    const bool narrowed = is_narrowed(product);
    dnnl_exec_arg_t args[5] = {{DNNL_ARG_SRC, o->a},
                               {DNNL_ARG_WEIGHTS, w->memory},
                               {DNNL_ARG_DST, o->c},
                               {DNNL_ARG_SCRATCHPAD, o->scratchpad}};
    int count = 4;
    dnnl_status_t status = point_at(o->a, take(product, thread, 0, a, sizes.a));
    if (status == dnnl_success)
        status = point_at(o->c, narrowed ? thread->wide[2] : c);
    if (status == dnnl_success && o->bias != NULL) {
        status = point_at(o->bias, bias);
        args[count++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, o->bias};
    }
    if (status == dnnl_success)
        status = dnnl_primitive_execute(product->primitive, thread->stream, count, args);
    if (status == dnnl_success && narrowed)
        sw_narrow(c, thread->wide[2], sizes.c);
    return status == dnnl_success ? SWIN_OK : SWIN_ERR_BACKEND;
}

swin_status sw_product_attention(const sw_product *product, sw_dnn_thread *thread, const void *a, const void *b,
                                 void *c)
{
    const operands *o = &thread->operands[product->index];
    const sw_product_sizes sizes = sw_product_measure(product);
    const bool narrowed = is_narrowed(product);
    const dnnl_exec_arg_t args[4] = {
        {DNNL_ARG_SRC, o->a}, {DNNL_ARG_WEIGHTS, o->b}, {DNNL_ARG_DST, o->c}, {DNNL_ARG_SCRATCHPAD, o->scratchpad}};
    dnnl_status_t status = point_at(o->a, take(product, thread, 0, a, sizes.a));
    if (status == dnnl_success)
        status = point_at(o->b, take(product, thread, 1, b, sizes.b));
    if (status == dnnl_success)
        status = point_at(o->c, narrowed ? thread->wide[2] : c);
    if (status == dnnl_success)
        status = dnnl_primitive_execute(product->primitive, thread->stream, 4, args);
    if (status == dnnl_success && narrowed)
        sw_narrow(c, thread->wide[2], sizes.c);
    return status == dnnl_success ? SWIN_OK : SWIN_ERR_BACKEND;
}
