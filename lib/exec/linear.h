/* SPDX-License-Identifier: MIT */
/*
 * linear.h - a linear layer with packed weights, cut into blocks of input and output columns.
 *
 * Input and output are panels (kernels/panels.h). Panel j of the output is the sum over the input panels i of
 * input_i * W(j, i)^T. The pieces serve two ends: threads share the output panels where there are few rows, and each piece of
 * weights fits a core's cache.
 *
 * The number of rows of a product is fixed when it is made; a layer has one for each entry of its stage's menu, and rows
 * beyond those that are asked for are computed and ignored.
 */
#ifndef SW_EXEC_LINEAR_H
#define SW_EXEC_LINEAR_H

#include "../dnn/dnn.h"
#include "../kernels/panels.h"
#include "../model/model.h"

/* Row counts that products exist for, rising. */
#define SW_MENU_MAX 6

typedef struct sw_menu {
    int32_t count;
    int32_t rows[SW_MENU_MAX];
} sw_menu;

/* The smallest entry that holds `rows`; the last one where none does. */
int32_t sw_menu_choose(const sw_menu *menu, int32_t rows);

typedef struct sw_linear {
    int32_t in_width, in_panels;   /* columns per input panel, and how many  */
    int32_t out_width, out_panels; /* likewise of the output                 */
    sw_type type, out_type;
    float *bias;          /* [out], or NULL                                   */
    sw_weights **weights; /* [out_panels][in_panels]                          */
    const sw_product *first[SW_MENU_MAX]; /* the first input panel, with the bias */
    const sw_product *more[SW_MENU_MAX];  /* each further one, adding to it       */
} sw_linear;

/* What a layer is made of. */
typedef struct sw_linear_spec {
    int32_t in, in_panels, out, out_panels;
    sw_type type, out_type;
    sw_tensor_id weight;
    const sw_tensor_id *bias; /* NULL: none */
    /* The first `scaled` output rows are multiplied by `scale`: the attention's 1/sqrt(d), folded into the query. */
    int32_t scaled;
    float scale;
} sw_linear_spec;

/* Makes the products (all layers of a network, before sw_linear_pack()). */
swin_status sw_linear_plan(sw_linear *linear, sw_dnn *dnn, const sw_menu *menu, const sw_linear_spec *spec,
                           swin_error *err);

/* Reads and packs the weights. `scratch` is resized as needed by the caller: in * ceil(out / out_panels) floats. Different
 * layers may be packed by different threads. */
swin_status sw_linear_pack(sw_linear *linear, sw_dnn *dnn, const sw_model *model, const sw_linear_spec *spec,
                           float *scratch, swin_error *err);

/* Floats that sw_linear_pack() needs. */
size_t sw_linear_scratch(const sw_linear *linear);

void sw_linear_destroy(sw_linear *linear);
size_t sw_linear_bytes(const sw_linear *linear);

/* out panel j += or = (the sum over the input panels first_in .. first_in + count_in - 1); the sum begins with the bias where
 * first_in is 0, and is added to what is there otherwise. */
swin_status sw_linear_run(const sw_linear *linear, sw_dnn_thread *thread, int32_t menu_index, const sw_panels *in,
                          int32_t first_in, int32_t count_in, const sw_panels *out, int32_t out_panel);

#endif
