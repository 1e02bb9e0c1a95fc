/* SPDX-License-Identifier: MIT */
/*
 * backend.h - what differs between the generations of oneDNN: how memory is described and how a primitive is described.
 * backend_v2.c and backend_v3.c implement it, dnn.c is written on top of it.
 */
#ifndef SW_DNN_BACKEND_H
#define SW_DNN_BACKEND_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>

/* A memory description that somebody else owns. */
#if DNNL_VERSION_MAJOR == 2
typedef const dnnl_memory_desc_t *sw_backend_desc;
#else
typedef const_dnnl_memory_desc_t sw_backend_desc;
#endif

/* A dense or strided tensor; with `any`, oneDNN chooses the layout. */
typedef struct sw_backend_tensor {
    int ndims; /* 0: there is none */
    dnnl_dims_t dims;
    dnnl_dims_t strides;
    dnnl_data_type_t type;
    bool any;
    sw_backend_desc same_as; /* where not NULL: exactly this layout, all else ignored */
} sw_backend_tensor;

typedef struct sw_backend_matmul {
    sw_backend_tensor a, b, bias, c;
    bool accumulate; /* c is added to */
} sw_backend_matmul;

/* A matmul with a scratchpad of the caller's. */
dnnl_status_t sw_backend_matmul_create(dnnl_engine_t engine, const sw_backend_matmul *matmul,
                                       dnnl_primitive_desc_t *desc);

/* A reorder from a plain tensor into the layout of `to`. */
dnnl_status_t sw_backend_reorder_create(dnnl_engine_t engine, const sw_backend_tensor *from, sw_backend_desc to,
                                        dnnl_primitive_desc_t *desc);

/* Memory of a plain tensor at `data`. */
dnnl_status_t sw_backend_memory_create(dnnl_engine_t engine, const sw_backend_tensor *tensor, void *data,
                                       dnnl_memory_t *memory);

#endif
