/* SPDX-License-Identifier: MIT */
/*
 * product.h - what lies behind the handles of dnn.h, for the files of lib/dnn alone: dnn.c makes products, weights.c
 * packs weights for them, execute.c runs them.
 */
#ifndef SW_DNN_PRODUCT_H
#define SW_DNN_PRODUCT_H

#include "backend.h"
#include "dnn.h"

typedef enum sw_product_kind { SW_LINEAR, SW_SCORES, SW_CONTEXT } sw_product_kind;

struct sw_product {
    int32_t index; /* in its sw_dnn, and in every thread's list of memory objects */
    sw_product_kind kind;
    bool widened; /* bf16 of which oneDNN has no fast product here: operands are bf16, the primitive computes in float32
                   */
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

/* Elements of the operands and the result. */
typedef struct sw_product_sizes {
    size_t a, b, c;
} sw_product_sizes;

static inline sw_product_sizes sw_product_measure(const sw_product *product)
{
    if (product->kind == SW_LINEAR) {
        const sw_linear_shape *l = &product->shape.linear;
        const size_t m = (size_t)l->m, n = (size_t)l->n, k = (size_t)l->k;
        return (sw_product_sizes){m * k, n * k, m * n};
    }
    const sw_attention_shape *s = &product->shape.attention;
    const size_t groups = (size_t)s->windows * (size_t)s->heads, d = (size_t)s->head_channels;
    const size_t queries = groups * (size_t)s->queries * d, keys = groups * (size_t)s->tokens * d;
    const size_t scores = groups * (size_t)s->queries * (size_t)s->tokens;
    return product->kind == SW_SCORES ? (sw_product_sizes){queries, keys, scores}
                                      : (sw_product_sizes){scores, keys, queries};
}

/* The layout in which a product wants its second operand. */
static inline sw_backend_desc sw_product_weights(const sw_product *product)
{
    return dnnl_primitive_desc_query_md(product->desc, dnnl_query_weights_md, 0);
}

#endif
