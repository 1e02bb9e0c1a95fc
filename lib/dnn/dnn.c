/* SPDX-License-Identifier: MIT */
#include "product.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"

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

static void destroy_primitive(sw_product *p)
{
    if (p->primitive != NULL)
        dnnl_primitive_destroy(p->primitive);
    if (p->desc != NULL)
        dnnl_primitive_desc_destroy(p->desc);
    p->primitive = NULL;
    p->desc = NULL;
}

static void destroy_product(sw_product *product)
{
    destroy_primitive(product);
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
    return (sw_backend_tensor){.ndims = 2, .dims = {rows, columns}, .strides = {columns, 1}, .type = data_type(type)};
}

static sw_backend_matmul describe_linear(const sw_linear_shape *s, const sw_product *like)
{
    sw_backend_matmul matmul = {.a = matrix(s->m, s->k, s->type),
                                .b = matrix(s->k, s->n, s->type),
                                .c = matrix(s->m, s->n, s->out_type),
                                .accumulate = s->accumulate};
    matmul.b.any = true;
    if (like != NULL)
        matmul.b.same_as = sw_product_weights(like);
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

static sw_backend_matmul describe_attention(const sw_attention_shape *s, sw_product_kind kind)
{
    if (kind == SW_SCORES)
        return (sw_backend_matmul){
            .a = heads_of(s, s->queries), .b = transposed(heads_of(s, s->tokens)), .c = scores_of(s, SW_F32)};
    return (sw_backend_matmul){.a = scores_of(s, s->type), .b = heads_of(s, s->tokens), .c = heads_of(s, s->queries)};
}

/* What oneDNN is asked for: float32 throughout where the product is widened. */
static sw_backend_matmul describe(const sw_product *product, const sw_product *like)
{
    if (product->kind == SW_LINEAR) {
        sw_linear_shape shape = product->shape.linear;
        if (product->widened)
            shape.type = shape.out_type = SW_F32;
        return describe_linear(&shape, like);
    }
    sw_attention_shape shape = product->shape.attention;
    if (product->widened)
        shape.type = SW_F32;
    return describe_attention(&shape, product->kind);
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
            (p->kind == SW_LINEAR ? same_linear(&p->shape.linear, &wanted->shape.linear)
                                  : same_attention(&p->shape.attention, &wanted->shape.attention)) &&
            (like == NULL || dnnl_memory_desc_equal(sw_product_weights(p), sw_product_weights(like))))
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
    if (p->kind == SW_LINEAR)
        snprintf(text, size, "a linear product of m %d, n %d, k %d, %s", p->shape.linear.m, p->shape.linear.n,
                 p->shape.linear.k, p->shape.linear.type == SW_BF16 ? "bf16" : "float32");
    else
        snprintf(text, size, "an attention product of %d windows, %d heads, %d x %d tokens, %s",
                 p->shape.attention.windows, p->shape.attention.heads, p->shape.attention.queries,
                 p->shape.attention.tokens, p->shape.attention.type == SW_BF16 ? "bf16" : "float32");
}

static sw_type type_of(const sw_product *p)
{
    return p->kind == SW_LINEAR ? p->shape.linear.type : p->shape.attention.type;
}

static dnnl_status_t make_primitive(const sw_dnn *dnn, sw_product *p, const sw_product *like)
{
    const sw_backend_matmul matmul = describe(p, like);
    const int32_t threads = sw_dnn_single_thread();
    dnnl_status_t status = sw_backend_matmul_create(dnn->engine, &matmul, &p->desc);
    if (status == dnnl_success)
        status = dnnl_primitive_create(&p->primitive, p->desc);
    sw_dnn_restore_threads(threads);
    if (status == dnnl_success)
        status = dnnl_primitive_desc_query(p->desc, dnnl_query_impl_info_str, 0, (void *)&p->name);
    return status;
}

static bool is_reference(const sw_product *p)
{
    return strncmp(p->name, "ref", 3) == 0;
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
    dnnl_status_t status = make_primitive(dnn, p, like);
    if (type_of(p) == SW_BF16 && (status == dnnl_unimplemented || (status == dnnl_success && is_reference(p)))) {
        destroy_primitive(p);
        p->widened = true;
        status = make_primitive(dnn, p, like);
    }
    if (status != dnnl_success) {
        destroy_product(p);
        return sw_fail_backend(err, (int)status, what);
    }
    if (is_reference(p)) {
        sw_fail(err, SWIN_ERR_BACKEND, "oneDNN has only a reference implementation (%s) for %s", p->name, what);
        destroy_product(p);
        return SWIN_ERR_BACKEND;
    }
    p->scratchpad_bytes = dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(p->desc, dnnl_query_scratchpad_md, 0));
    dnn->products[dnn->count++] = p;
    *product = p;
    return SWIN_OK;
}

swin_status sw_dnn_linear(sw_dnn *dnn, const sw_linear_shape *shape, const sw_product *like, const sw_product **product,
                          swin_error *err)
{
    const sw_product wanted = {.kind = SW_LINEAR, .shape.linear = *shape};
    return make_product(dnn, &wanted, like, product, err);
}

swin_status sw_dnn_scores(sw_dnn *dnn, const sw_attention_shape *shape, const sw_product **product, swin_error *err)
{
    const sw_product wanted = {.kind = SW_SCORES, .shape.attention = *shape};
    return make_product(dnn, &wanted, NULL, product, err);
}

swin_status sw_dnn_context(sw_dnn *dnn, const sw_attention_shape *shape, const sw_product **product, swin_error *err)
{
    const sw_product wanted = {.kind = SW_CONTEXT, .shape.attention = *shape};
    return make_product(dnn, &wanted, NULL, product, err);
}

const char *sw_product_name(const sw_product *product)
{
    return product->name;
}
