/* SPDX-License-Identifier: MIT */
/*
 * oneDNN 3.x: memory descriptions are handles to be destroyed, primitives are described in one call.
 */
#include "backend.h"

static dnnl_status_t describe(const sw_backend_tensor *tensor, dnnl_memory_desc_t *desc)
{
    if (tensor->same_as != NULL)
        return dnnl_memory_desc_clone(desc, tensor->same_as);
    if (tensor->any)
        return dnnl_memory_desc_create_with_tag(desc, tensor->ndims, tensor->dims, tensor->type, dnnl_format_tag_any);
    return dnnl_memory_desc_create_with_strides(desc, tensor->ndims, tensor->dims, tensor->type, tensor->strides);
}

static void forget(dnnl_memory_desc_t desc)
{
    if (desc != NULL)
        dnnl_memory_desc_destroy(desc);
}

static dnnl_status_t make_attributes(bool accumulate, dnnl_primitive_attr_t *attr)
{
    dnnl_post_ops_t post_ops = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && accumulate) {
        status = dnnl_post_ops_create(&post_ops);
        if (status == dnnl_success)
            status = dnnl_post_ops_append_sum(post_ops, 1.0f, 0, dnnl_data_type_undef);
        if (status == dnnl_success)
            status = dnnl_primitive_attr_set_post_ops(*attr, post_ops);
    }
    if (post_ops != NULL)
        dnnl_post_ops_destroy(post_ops);
    return status;
}

dnnl_status_t sw_backend_matmul_create(dnnl_engine_t engine, const sw_backend_matmul *matmul,
                                       dnnl_primitive_desc_t *desc)
{
    dnnl_memory_desc_t a = NULL, b = NULL, bias = NULL, c = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t status = describe(&matmul->a, &a);
    if (status == dnnl_success)
        status = describe(&matmul->b, &b);
    if (status == dnnl_success)
        status = describe(&matmul->c, &c);
    if (status == dnnl_success && matmul->bias.ndims > 0)
        status = describe(&matmul->bias, &bias);
    if (status == dnnl_success)
        status = make_attributes(matmul->accumulate, &attr);
    if (status == dnnl_success)
        status = dnnl_matmul_primitive_desc_create(desc, engine, a, b, bias, c, attr);
    if (attr != NULL)
        dnnl_primitive_attr_destroy(attr);
    forget(a);
    forget(b);
    forget(bias);
    forget(c);
    return status;
}

dnnl_status_t sw_backend_reorder_create(dnnl_engine_t engine, const sw_backend_tensor *from, sw_backend_desc to,
                                        dnnl_primitive_desc_t *desc)
{
    dnnl_memory_desc_t source = NULL;
    dnnl_status_t status = describe(from, &source);
    if (status == dnnl_success)
        status = dnnl_reorder_primitive_desc_create(desc, source, engine, to, engine, NULL);
    forget(source);
    return status;
}

dnnl_status_t sw_backend_memory_create(dnnl_engine_t engine, const sw_backend_tensor *tensor, void *data,
                                       dnnl_memory_t *memory)
{
    dnnl_memory_desc_t desc = NULL;
    dnnl_status_t status = describe(tensor, &desc);
    if (status == dnnl_success)
        status = dnnl_memory_create(memory, desc, engine, data);
    forget(desc);
    return status;
}
