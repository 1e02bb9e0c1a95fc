/* SPDX-License-Identifier: MIT */
#include "../base/memory.h"
#include "product.h"
#include "widen.h"

static dnnl_status_t reorder(sw_dnn *dnn, const sw_product *product, const float *w, dnnl_memory_t packed)
{
    const sw_linear_shape *s = &product->shape.linear;
    /* [k, n] of the row-major [n, k] */
    const sw_backend_tensor from = {.ndims = 2, .dims = {s->k, s->n}, .strides = {1, s->k}, .type = dnnl_f32};
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t primitive = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_memory_t source = NULL;
    dnnl_status_t status = sw_backend_reorder_create(dnn->engine, &from, sw_product_weights(product), &desc);
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

/* W as bf16 has it, for a product that computes in float32; NULL without memory. */
static float *round_weights(const sw_product *product, const float *w)
{
    const size_t count = sw_product_measure(product).b;
    float *rounded = sw_alloc(count, sizeof *rounded);
    for (size_t i = 0; rounded != NULL && i < count; i++) {
        uint16_t half;
        sw_narrow(&half, &w[i], 1);
        sw_widen(&rounded[i], &half, 1);
    }
    return rounded;
}

static swin_status pack(sw_dnn *dnn, const sw_product *product, const float *w, sw_weights **weights, swin_error *err)
{
    sw_backend_desc layout = sw_product_weights(product);
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

swin_status sw_weights_create(sw_dnn *dnn, const sw_product *product, const float *w, sw_weights **weights,
                              swin_error *err)
{
    if (!product->widened)
        return pack(dnn, product, w, weights, err);
    float *rounded = round_weights(product, w);
    if (rounded == NULL)
        return sw_fail_memory(err, sw_product_measure(product).b * sizeof *rounded, "rounded weights");
    const swin_status status = pack(dnn, product, rounded, weights, err);
    sw_free(rounded);
    return status;
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
