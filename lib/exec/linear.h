/* SPDX-License-Identifier: MIT */
/*
 * linear.h - a linear layer with packed weights, cut into blocks of input and output columns.
 *
 * Input and output are panels (kernels/panels.h). Panel j of the output is the sum over the input panels i of input_i
 * * W(j, i)^T. The pieces serve two ends: threads share the output panels where there are few rows, and each piece of
 * weights fits a core's cache.
 *
 * Two ways to compute it. oneDNN's products have a fixed number of rows; a layer has one for each entry of its
 * stage's menu, and rows beyond those that are asked for are computed and ignored. With AMX our own kernel
 * takes any number of rows and does what follows the product on the way (kernels/amx.h); its panels are 32 columns
 * wide, and a part of the output or input is several of them.
 */
#ifndef SW_EXEC_LINEAR_H
#define SW_EXEC_LINEAR_H

#include "../dnn/dnn.h"
#include "../kernels/amx.h"
#include "../kernels/panels.h"
#include "../model/model.h"
#include "menu.h"

/* What a thread needs to compute layers. */
typedef struct sw_linear_thread {
    sw_dnn_thread *dnn;
    void *scratch; /* AMX with float32: sw_layer_scratch() bytes */
} sw_linear_thread;

typedef struct sw_linear {
    int32_t in_width, in_parts;   /* columns per part of the input, and how many parts */
    int32_t out_width, out_parts; /* likewise of the output                            */
    sw_type type, out_type;
    float *bias;          /* [out], or NULL                                        */

    sw_weights **weights; /* oneDNN: [out_parts][in_parts]                         */
    const sw_product *first[SW_MENU_MAX]; /* the first part of the input, with the bias */
    const sw_product *more[SW_MENU_MAX];  /* each further one, adding to it             */

    bool amx;             /* our own kernel, not oneDNN                            */
    char *tiles;          /* AMX: packed weights, in memory of the network's       */
    bool gelu;            /* AMX: the output passes GELU on the way                */
    float *normalise;     /* AMX: per panel of the output, the scale of SW_AMX_NORMALISE; NULL: none */
    int32_t normalised;   /* parts of the output that are normalised: the first ones */
} sw_linear;

/* What a layer is made of. */
typedef struct sw_linear_spec {
    int32_t in, in_parts, out, out_parts;
    sw_type type, out_type;
    bool amx;
    sw_tensor_id weight;
    const sw_tensor_id *bias; /* NULL: none */
    /* The first `scaled` output rows are multiplied by `scale`: the attention's 1/sqrt(d), folded into the query. */
    int32_t scaled;
    float scale;
    bool gelu; /* the output passes GELU: done here with AMX, left to the caller otherwise */
} sw_linear_spec;

/* Makes the products, where there are any (all layers of a network, before sw_linear_pack()). */
swin_status sw_linear_plan(sw_linear *linear, sw_dnn *dnn, const sw_menu *menu, const sw_linear_spec *spec,
                           swin_error *err);

/* AMX: bytes at `tiles`, which are to be there before sw_linear_pack(). 0 for oneDNN. */
size_t sw_linear_tile_bytes(const sw_linear *linear);

/* Reads and packs the weights. `scratch` has room for sw_linear_scratch() floats. Different
 * layers may be packed by different threads. */
swin_status sw_linear_pack(sw_linear *linear, sw_dnn *dnn, const sw_model *model, const sw_linear_spec *spec,
                           float *scratch, swin_error *err);

/* Floats that sw_linear_pack() needs. */
size_t sw_linear_scratch(const sw_linear *linear);

void sw_linear_destroy(sw_linear *linear);
size_t sw_linear_bytes(const sw_linear *linear);

/* What computes it: oneDNN's name of its kernel, or ours. */
const char *sw_linear_kernel(const sw_linear *linear);

/* Where a part of the output lies in the panels of the whole. */
sw_panels sw_linear_part(const sw_linear *linear, const sw_panels *whole, int32_t out_part);

 /* Part `out_part` of the output, of parts first_in .. first_in + count_in - 1 of the input: `in` begins at the first
  * of these, `out` is the part's own place. The sum begins with the bias where first_in is 0, and is added to what is
  * there otherwise. */
swin_status sw_linear_run(const sw_linear *linear, const sw_linear_thread *thread, int32_t menu_index, int32_t rows,
                          const sw_panels *in, int32_t first_in, int32_t count_in, const sw_panels *out,
                          int32_t out_part);

/* The same for all parts of the output. */
swin_status sw_linear_run_all(const sw_linear *linear, const sw_linear_thread *thread, int32_t menu_index, int32_t rows,
                              const sw_panels *in, int32_t first_in, int32_t count_in, const sw_panels *out);

/* The whole output cut among threads: how many shares there are, `wanted` of them where the layer can be cut so, and
 * one of these, from the whole input. */
int32_t sw_linear_shares(const sw_linear *linear, int32_t wanted);
swin_status sw_linear_run_share(const sw_linear *linear, const sw_linear_thread *thread, int32_t menu_index,
                                int32_t rows, const sw_panels *in, const sw_panels *out, int32_t share, int32_t shares);

#endif
