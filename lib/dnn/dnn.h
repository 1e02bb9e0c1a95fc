/* SPDX-License-Identifier: MIT */
/*
 * dnn.h - matrix products by oneDNN: the only door to it.
 *
 * A product is a oneDNN primitive of fixed shape, made for one thread, with its scratchpad supplied by the caller; any
 * number of threads may execute it at the same time, each with a context of its own. Products are made when a network
 * is built and never in a run.
 *
 * oneDNN's slow paths are refused: a product whose implementation is a reference one ("ref") is an error. A CPU for
 * which oneDNN has no fast bf16 product (no AVX-512) computes bf16 operands in float32: correct, no faster than
 * float32.
 */
#ifndef SW_DNN_DNN_H
#define SW_DNN_DNN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/status.h"
#include "../base/type.h"

/* Engine and products; immutable between sw_dnn_create() and the last product made, then shared. */
typedef struct sw_dnn sw_dnn;
/* One product, owned by its sw_dnn. */
typedef struct sw_product sw_product;
/* A weight matrix in the layout its product asked for. */
typedef struct sw_weights sw_weights;
/* What one thread needs to execute products of one sw_dnn. */
typedef struct sw_dnn_thread sw_dnn_thread;

swin_status sw_dnn_create(sw_dnn **dnn, swin_error *err);
void sw_dnn_destroy(sw_dnn *dnn);

/* "oneDNN 2.6.3": the library loaded, not the one compiled against. `text` has room for 32 bytes. */
void sw_dnn_version(char *text);

/* Whether oneDNN would use AMX with bf16 here: the CPU has it, and nobody has told oneDNN to do without. */
bool sw_dnn_uses_amx_bf16(void);

/* How many products exist: what a test counts. */
int32_t sw_dnn_product_count(const sw_dnn *dnn);

/* Makes oneDNN use one thread in the calling thread from now on; returns what it used before. */
int32_t sw_dnn_single_thread(void);
void sw_dnn_restore_threads(int32_t threads);

/* C [m, n] = A [m, k] W^T + bias, or C += A W^T; W is [n, k] and packed. All dense, row-major. */
typedef struct sw_linear_shape {
    int32_t m, n, k;
    sw_type type;     /* of A and W                                  */
    sw_type out_type; /* of C                                        */
    bool bias;        /* float32 [n]                                 */
    bool accumulate;  /* C is added to; float32 only, without a bias */
} sw_linear_shape;

/* The attention products of `windows` windows and `heads` heads at once. T tokens, d channels per head; q, k, v and the
 * context are panels: rows of one window after the other, [windows * T, heads * d], heads side by side. With `split`
 * they are [windows, heads, T, d] instead. `queries` rows of q make the rows of the scores [windows, heads, queries,
 * T]; fewer than T only with one window and one head. */
typedef struct sw_attention_shape {
    int32_t windows, heads, queries, tokens, head_channels;
    sw_type type; /* of q, k, v, probabilities and context; scores are float32 */
    bool split;
} sw_attention_shape;

/* Each returns an existing product where one of that shape was made before. `like`, where not NULL, is a product of the
 * same n, k and type whose packed weights this one shall take too: an existing product is returned only where it does.
 */
swin_status sw_dnn_linear(sw_dnn *dnn, const sw_linear_shape *shape, const sw_product *like, const sw_product **product,
                          swin_error *err);
swin_status sw_dnn_scores(sw_dnn *dnn, const sw_attention_shape *shape, const sw_product **product, swin_error *err);
swin_status sw_dnn_context(sw_dnn *dnn, const sw_attention_shape *shape, const sw_product **product, swin_error *err);

/* oneDNN's name of the implementation, e.g. "brg:avx512_core_amx_bf16". */
const char *sw_product_name(const sw_product *product);

/* Packs W [n, k] float32 for a linear product and those made like it. */
swin_status sw_weights_create(sw_dnn *dnn, const sw_product *product, const float *w, sw_weights **weights,
                              swin_error *err);
void sw_weights_destroy(sw_weights *weights);
size_t sw_weights_bytes(const sw_weights *weights);

/* Made after the last product. */
swin_status sw_dnn_thread_create(const sw_dnn *dnn, sw_dnn_thread **thread, swin_error *err);
void sw_dnn_thread_destroy(sw_dnn_thread *thread);

/* Bytes of such a context. */
size_t sw_dnn_thread_bytes(const sw_dnn *dnn);

/* linear: c = a w^T (+ bias). */
swin_status sw_product_linear(const sw_product *product, sw_dnn_thread *thread, const void *a, const sw_weights *w,
                              const float *bias, void *c);

/* scores: c = q k^T; context: c = p v. Without allocation by this library. */
swin_status sw_product_attention(const sw_product *product, sw_dnn_thread *thread, const void *a, const void *b,
                                 void *c);

#endif
