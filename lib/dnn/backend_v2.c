/* SPDX-License-Identifier: MIT */
/*
 * oneDNN 2.6 and later 2.x: memory descriptions are plain structs, operations have descriptions of their own.
 */
#include "backend.h"

static dnnl_status_t describe(const sw_backend_tensor *tensor, dnnl_memory_desc_t *desc)
{
    if (tensor->same_as != NULL) {
        *desc = *tensor->same_as;
        return dnnl_success;
    }
    if (tensor->any)
        return dnnl_memory_desc_init_by_tag(desc, tensor->ndims, tensor->dims, tensor->type, dnnl_format_tag_any);
    return dnnl_memory_desc_init_by_strides(desc, tensor->ndims, tensor->dims, tensor->type, tensor->strides);
}

dnnl_status_t sw_backend_matmul_create(dnnl_engine_t engine, const sw_backend_matmul *matmul,
                                       dnnl_primitive_desc_t *desc)
{
    dnnl_memory_desc_t a, b, bias, c;
    dnnl_status_t status;
    if ((status = describe(&matmul->a, &a)) != dnnl_success || (status = describe(&matmul->b, &b)) != dnnl_success ||
        (status = describe(&matmul->c, &c)) != dnnl_success)
        return status;
    const bool has_bias = matmul->bias.ndims > 0;
    if (has_bias && (status = describe(&matmul->bias, &bias)) != dnnl_success)
        return status;

    dnnl_matmul_desc_t operation;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t post_ops = NULL;
    status = dnnl_matmul_desc_init(&operation, &a, &b, has_bias ? &bias : NULL, &c);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && matmul->accumulate) {
        status = dnnl_post_ops_create(&post_ops);
        if (status == dnnl_success)
            status = dnnl_post_ops_append_sum(post_ops, 1.0f);
        if (status == dnnl_success)
            status = dnnl_primitive_attr_set_post_ops(attr, post_ops);
    }
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(desc, &operation, attr, engine, NULL);
    if (post_ops != NULL)
        dnnl_post_ops_destroy(post_ops);
    if (attr != NULL)
        dnnl_primitive_attr_destroy(attr);
    return status;
}

dnnl_status_t sw_backend_reorder_create(dnnl_engine_t engine, const sw_backend_tensor *from, sw_backend_desc to,
                                        dnnl_primitive_desc_t *desc)
{
    dnnl_memory_desc_t source;
    const dnnl_status_t status = describe(from, &source);
    if (status != dnnl_success)
        return status;
    return dnnl_reorder_primitive_desc_create(desc, &source, engine, to, engine, NULL);
}

dnnl_status_t sw_backend_memory_create(dnnl_engine_t engine, const sw_backend_tensor *tensor, void *data,
                                       dnnl_memory_t *memory)
{
    dnnl_memory_desc_t desc;
    const dnnl_status_t status = describe(tensor, &desc);
    if (status != dnnl_success)
        return status;
    return dnnl_memory_create(memory, &desc, engine, data);
}
