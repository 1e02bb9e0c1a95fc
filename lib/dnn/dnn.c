/* SPDX-License-Identifier: MIT */
#include "dnn.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "backend.h"

typedef enum product_kind { LINEAR, SCORES, CONTEXT } product_kind;

struct sw_product {
    int32_t index; /* in its sw_dnn, and in every thread's list of memory objects */
    product_kind kind;
    union {
        sw_linear_shape linear;
        sw_attention_shape attention;
    } shape;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    const char *name;
    size_t scratchpad_bytes;
};

struct sw_dnn {
    dnnl_engine_t engine;
    sw_product **products;
    int32_t count, capacity;
};

struct sw_weights {
    dnnl_memory_t memory;
    void *data;
    size_t bytes;
};

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

swin_status sw_dnn_create(sw_dnn **dnn, swin_error *err)
{
    sw_dnn *d = sw_alloc_zeroed(1, sizeof *d);
    if (d == NULL)
        return sw_fail_memory(err, sizeof *d, "the oneDNN engine");
    const dnnl_status_t status = dnnl_engine_create(&d->engine, dnnl_cpu, 0);
    if (status != dnnl_success) {
        sw_free(d);
        return sw_fail_backend(err, (int)status, "to make a CPU engine");
    }
    *dnn = d;
    return SWIN_OK;
}

static void destroy_product(sw_product *product)
{
    if (product == NULL)
        return;
    if (product->primitive != NULL)
        dnnl_primitive_destroy(product->primitive);
    if (product->desc != NULL)
        dnnl_primitive_desc_destroy(product->desc);
    sw_free(product);
}

void sw_dnn_destroy(sw_dnn *dnn)
{
    if (dnn == NULL)
        return;
    for (int32_t i = 0; i < dnn->count; i++)
        destroy_product(dnn->products[i]);
    sw_free(dnn->products);
    dnnl_engine_destroy(dnn->engine);
    sw_free(dnn);
}

void sw_dnn_version(char *text)
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, 32, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
}

bool sw_dnn_uses_amx_bf16(void)
{
    /* the values are sets of features */
    const unsigned effective = (unsigned)dnnl_get_effective_cpu_isa(), wanted = (unsigned)dnnl_cpu_isa_avx512_core_amx;
    return (effective & wanted) == wanted;
}

int32_t sw_dnn_product_count(const sw_dnn *dnn)
{
    return dnn->count;
}

int32_t sw_dnn_single_thread(void)
{
    const int before = omp_get_max_threads();
    if (before != 1)
        omp_set_num_threads(1);
    return before;
}

void sw_dnn_restore_threads(int32_t threads)
{
    if (threads != 1)
        omp_set_num_threads(threads);
}

static dnnl_data_type_t data_type(sw_type type)
{
    return type == SW_BF16 ? dnnl_bf16 : dnnl_f32;
}

static sw_backend_tensor matrix(int64_t rows, int64_t columns, sw_type type)
{
    return (sw_backend_tensor){
        .ndims = 2, .dims = {rows, columns}, .strides = {columns, 1}, .type = data_type(type)};
}

static sw_backend_desc weights_of(const sw_product *product)
{
    return dnnl_primitive_desc_query_md(product->desc, dnnl_query_weights_md, 0);
}

static sw_backend_matmul describe_linear(const sw_linear_shape *s, const sw_product *like)
{
    sw_backend_matmul matmul = {.a = matrix(s->m, s->k, s->type),
                                .b = matrix(s->k, s->n, s->type),
                                .c = matrix(s->m, s->n, s->out_type),
                                .accumulate = s->accumulate};
    matmul.b.any = true;
    if (like != NULL)
        matmul.b.same_as = weights_of(like);
    if (s->bias)
        matmul.bias = matrix(1, s->n, SW_F32);
    return matmul;
}

/* [windows, heads, rows, d] of a panel [windows * window_rows, heads * d], or split by head. */
static sw_backend_tensor heads_of(const sw_attention_shape *s, int64_t rows)
{
    const int64_t d = s->head_channels, width = d * s->heads;
    sw_backend_tensor t = {.ndims = 4, .dims = {s->windows, s->heads, rows, d}, .type = data_type(s->type)};
    if (s->split)
        memcpy(t.strides, (dnnl_dims_t){s->heads * rows * d, rows * d, d, 1}, sizeof t.strides);
    else
        memcpy(t.strides, (dnnl_dims_t){rows * width, d, width, 1}, sizeof t.strides);
    return t;
}

static sw_backend_tensor transposed(sw_backend_tensor t)
{
    const int64_t rows = t.dims[2], stride = t.strides[2];
    t.dims[2] = t.dims[3];
    t.strides[2] = t.strides[3];
    t.dims[3] = rows;
    t.strides[3] = stride;
    return t;
}

/* [windows, heads, queries, T] */
static sw_backend_tensor scores_of(const sw_attention_shape *s, sw_type type)
{
    const int64_t matrix_size = (int64_t)s->queries * s->tokens;
    return (sw_backend_tensor){.ndims = 4,
                               .dims = {s->windows, s->heads, s->queries, s->tokens},
                               .strides = {s->heads * matrix_size, matrix_size, s->tokens, 1},
                               .type = data_type(type)};
}

static sw_backend_matmul describe_attention(const sw_product *product)
{
    const sw_attention_shape *s = &product->shape.attention;
    if (product->kind == SCORES)
        return (sw_backend_matmul){.a = heads_of(s, s->queries),
                                   .b = transposed(heads_of(s, s->tokens)),
                                   .c = scores_of(s, SW_F32)};
    return (sw_backend_matmul){.a = scores_of(s, s->type),
                               .b = heads_of(s, s->tokens),
                               .c = heads_of(s, s->queries)};
}

static bool same_linear(const sw_linear_shape *a, const sw_linear_shape *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->type == b->type && a->out_type == b->out_type &&
           a->bias == b->bias && a->accumulate == b->accumulate;
}

static bool same_attention(const sw_attention_shape *a, const sw_attention_shape *b)
{
    return a->windows == b->windows && a->heads == b->heads && a->queries == b->queries && a->tokens == b->tokens &&
           a->head_channels == b->head_channels && a->type == b->type && a->split == b->split;
}

static const sw_product *find_product(const sw_dnn *dnn, const sw_product *wanted, const sw_product *like)
{
    for (int32_t i = 0; i < dnn->count; i++) {
        const sw_product *p = dnn->products[i];
        if (p->kind == wanted->kind &&
            (p->kind == LINEAR ? same_linear(&p->shape.linear, &wanted->shape.linear)
                               : same_attention(&p->shape.attention, &wanted->shape.attention)) &&
            (like == NULL || dnnl_memory_desc_equal(weights_of(p), weights_of(like))))
            return p;
    }
    return NULL;
}

static swin_status make_room(sw_dnn *dnn, swin_error *err)
{
    if (dnn->count < dnn->capacity)
        return SWIN_OK;
    const int32_t capacity = dnn->capacity == 0 ? 64 : 2 * dnn->capacity;
    sw_product **products = sw_alloc((size_t)capacity, sizeof *products);
    if (products == NULL)
        return sw_fail_memory(err, (size_t)capacity * sizeof *products, "the list of products");
    if (dnn->count > 0)
        memcpy(products, dnn->products, (size_t)dnn->count * sizeof *products);
    sw_free(dnn->products);
    dnn->products = products;
    dnn->capacity = capacity;
    return SWIN_OK;
}

static void name_product(const sw_product *p, char *text, size_t size)
{
    if (p->kind == LINEAR)
        snprintf(text, size, "a linear product of m %d, n %d, k %d, %s", p->shape.linear.m, p->shape.linear.n,
                 p->shape.linear.k, p->shape.linear.type == SW_BF16 ? "bf16" : "float32");
    else
        snprintf(text, size, "an attention product of %d windows, %d heads, %d x %d tokens, %s",
                 p->shape.attention.windows, p->shape.attention.heads, p->shape.attention.queries,
                 p->shape.attention.tokens, p->shape.attention.type == SW_BF16 ? "bf16" : "float32");
}

/* Makes the product that `wanted` describes, for one thread. */
static swin_status make_product(sw_dnn *dnn, const sw_product *wanted, const sw_product *like,
                                const sw_product **product, swin_error *err)
{
    const sw_product *found = find_product(dnn, wanted, like);
    if (found != NULL) {
        *product = found;
        return SWIN_OK;
    }
    SW_TRY(make_room(dnn, err));
    sw_product *p = sw_alloc(1, sizeof *p);
    if (p == NULL)
        return sw_fail_memory(err, sizeof *p, "a matrix product");
    *p = *wanted;
    p->index = dnn->count;

    char what[160];
    name_product(p, what, sizeof what);
    const sw_backend_matmul matmul =
        p->kind == LINEAR ? describe_linear(&p->shape.linear, like) : describe_attention(p);
    const int32_t threads = sw_dnn_single_thread();
    dnnl_status_t status = sw_backend_matmul_create(dnn->engine, &matmul, &p->desc);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&p->primitive, p->desc);
    sw_dnn_restore_threads(threads);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_query(p->desc, dnnl_query_impl_info_str, 0, (void *)&p->name);
    if (status != dnnl_success) {
        destroy_product(p);
        return sw_fail_backend(err, (int)status, what);
    }
    if (strncmp(p->name, "ref", 3) == 0) {
        sw_fail(err, SWIN_ERR_BACKEND, "oneDNN has only a reference implementation (%s) for %s", p->name, what);
        destroy_product(p);
        return SWIN_ERR_BACKEND;
    }
    p->scratchpad_bytes = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(p->desc, dnnl_query_scratchpad_md, 0));
    dnn->products[dnn->count++] = p;
    *product = p;
    return SWIN_OK;
}

swin_status sw_dnn_linear(sw_dnn *dnn, const sw_linear_shape *shape, const sw_product *like,
                          const sw_product **product, swin_error *err)
{
    const sw_product wanted = {.kind = LINEAR, .shape.linear = *shape};
    return make_product(dnn, &wanted, like, product, err);
}

swin_status sw_dnn_scores(sw_dnn *dnn, const sw_attention_shape *shape, const sw_product **product, swin_error *err)
{
    const sw_product wanted = {.kind = SCORES, .shape.attention = *shape};
    return make_product(dnn, &wanted, NULL, product, err);
}

swin_status sw_dnn_context(sw_dnn *dnn, const sw_attention_shape *shape, const sw_product **product, swin_error *err)
{
    const sw_product wanted = {.kind = CONTEXT, .shape.attention = *shape};
    return make_product(dnn, &wanted, NULL, product, err);
}

const char *sw_product_name(const sw_product *product)
{
    return product->name;
}

static dnnl_status_t reorder(sw_dnn *dnn, const sw_product *product, const float *w, dnnl_memory_t packed)
{
    const sw_linear_shape *s = &product->shape.linear;
    /* [k, n] of the row-major [n, k] */
    const sw_backend_tensor from = {
        .ndims = 2, .dims = {s->k, s->n}, .strides = {1, s->k}, .type = dnnl_f32};
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_memory_t source = NULL;
    dnnl_status_t status = sw_backend_reorder_create(
        dnn->engine, &from, weights_of(product), &desc);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&primitive, desc);
    if (status == dnnl_success)
        status = dnnl_stream_create(&stream, dnn->engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = sw_backend_memory_create(dnn->engine, &from, (void *)w, &source);
    if (status == dnnl_success) {
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, packed}};
        status = dnnl_primitive_execute(primitive, stream, 2, args);
    }
    if (status == dnnl_success)
        status = dnnl_stream_wait(stream);
    if (source != NULL)
        dnnl_memory_destroy(source);
    if (stream != NULL)
        dnnl_stream_destroy(stream);
    if (primitive != NULL)
        dnnl_primitive_destroy(primitive);
    if (desc != NULL)
        dnnl_primitive_desc_destroy(desc);
    return status;
}

swin_status sw_weights_create(sw_dnn *dnn, const sw_product *product, const float *w, sw_weights **weights,
                              swin_error *err)
{
    sw_backend_desc layout = weights_of(product);
    const size_t bytes = dnnl_memory_desc_get_size(layout);
    sw_weights *packed = sw_alloc_zeroed(1, sizeof *packed);
    void *data = sw_alloc(bytes, 1);
    if (packed == NULL || data == NULL) {
        sw_free(packed);
        sw_free(data);
        return sw_fail_memory(err, bytes, "packed weights");
    }
    packed->data = data;
    packed->bytes = bytes;
    dnnl_status_t status = dnnl_memory_create(&packed->memory, layout, dnn->engine, data);
    if (status == dnnl_success) {
        const int32_t threads = sw_dnn_single_thread();
        status = reorder(dnn, product, w, packed->memory);
        sw_dnn_restore_threads(threads);
    }
    if (status != dnnl_success) {
        sw_weights_destroy(packed);
        return sw_fail_backend(err, (int)status, "to pack weights");
    }
    *weights = packed;
    return SWIN_OK;
}

void sw_weights_destroy(sw_weights *weights)
{
    if (weights == NULL)
        return;
    if (weights->memory != NULL)
        dnnl_memory_destroy(weights->memory);
    sw_free(weights->data);
    sw_free(weights);
}

size_t sw_weights_bytes(const sw_weights *weights)
{
    return weights->bytes;
}

static dnnl_status_t make_memory(const sw_dnn *dnn, const sw_product *product, dnnl_query_t what, int index, void *data,
                                 dnnl_memory_t *memory)
{
    return dnnl_memory_create(memory, dnnl_primitive_desc_query_md(product->desc, what, index), dnn->engine, data);
}

static dnnl_status_t make_operands(const sw_dnn *dnn, const sw_product *product, void *scratchpad, operands *o)
{
    dnnl_status_t status = make_memory(dnn, product, dnnl_query_src_md, 0, NULL, &o->a);
    if (status == dnnl_success && product->kind != LINEAR)
        status = make_memory(dnn, product, dnnl_query_weights_md, 0, NULL, &o->b);
    if (status == dnnl_success && product->kind == LINEAR && product->shape.linear.bias)
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
