/* SPDX-License-Identifier: MIT */
/*
 * product.h - what lies behind the handles of dnn.h, for the files of lib/dnn alone: dnn.c makes products, weights.c packs
 * weights for them, execute.c runs them.
 */
#ifndef SW_DNN_PRODUCT_H
#define SW_DNN_PRODUCT_H

#include "backend.h"
#include "dnn.h"

typedef enum sw_product_kind { SW_LINEAR, SW_SCORES, SW_CONTEXT } sw_product_kind;

struct sw_product {
    int32_t index; /* in its sw_dnn, and in every thread's list of memory objects */
    sw_product_kind kind;
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

/* The layout in which a product wants its second operand. */
static inline sw_backend_desc sw_product_weights(const sw_product *product)
{
    return dnnl_primitive_desc_query_md(product->desc, dnnl_query_weights_md, 0);
}

#endif
