/* SPDX-License-Identifier: MIT */
#include "linear.h"

#include <string.h>

#include "../base/memory.h"

int32_t sw_menu_choose(const sw_menu *menu, int32_t rows)
{
    for (int32_t i = 0; i < menu->count; i++) {
        if (menu->rows[i] >= rows)
            return i;
    }
    return menu->count - 1;
}

swin_status sw_linear_plan(sw_linear *linear, sw_dnn *dnn, const sw_menu *menu, const sw_linear_spec *spec,
                           swin_error *err)
{
    linear->in_width = spec->in / spec->in_panels;
    linear->in_panels = spec->in_panels;
    linear->out_width = spec->out / spec->out_panels;
    linear->out_panels = spec->out_panels;
    linear->type = spec->type;
    linear->out_type = spec->out_type;
    sw_linear_shape shape = {.n = linear->out_width,
                             .k = linear->in_width,
                             .type = spec->type,
                             .out_type = spec->out_type,
                             .bias = spec->bias != NULL};
    /* The layout of the weights is chosen by the product that does most of the work: the one of the most rows. */
    const sw_product *like = NULL;
    for (int32_t i = menu->count - 1; i >= 0; i--) {
        shape.m = menu->rows[i];
        SW_TRY(sw_dnn_linear(dnn, &shape, like, &linear->first[i], err));
        like = linear->first[menu->count - 1];
        if (spec->in_panels > 1) {
            sw_linear_shape more = shape;
            more.bias = false;
            more.accumulate = true;
            SW_TRY(sw_dnn_linear(dnn, &more, like, &linear->more[i], err));
        }
    }
    return SWIN_OK;
}

size_t sw_linear_scratch(const sw_linear *linear)
{
    const size_t rows = (size_t)linear->out_width, columns = (size_t)linear->in_width * (size_t)linear->in_panels;
    /* a panel's rows as read, and one piece of them cut out */
    return rows * columns + (linear->in_panels > 1 ? rows * (size_t)linear->in_width : 0);
}

static swin_status read_bias(sw_linear *linear, const sw_model *model, const sw_linear_spec *spec, swin_error *err)
{
    linear->bias = sw_alloc((size_t)spec->out, sizeof *linear->bias);
    if (linear->bias == NULL)
        return sw_fail_memory(err, (size_t)spec->out * sizeof *linear->bias, "a bias");
    SW_TRY(sw_model_read(model, *spec->bias, 0, spec->out, linear->bias, err));
    for (int32_t i = 0; i < spec->scaled; i++)
        linear->bias[i] *= spec->scale;
    return SWIN_OK;
}

swin_status sw_linear_pack(sw_linear *linear, sw_dnn *dnn, const sw_model *model, const sw_linear_spec *spec,
                           float *scratch, swin_error *err)
{
    if (spec->bias != NULL)
        SW_TRY(read_bias(linear, model, spec, err));
    const size_t pieces = (size_t)linear->out_panels * (size_t)linear->in_panels;
    linear->weights = sw_alloc_zeroed(pieces, sizeof *linear->weights);
    if (linear->weights == NULL)
        return sw_fail_memory(err, pieces * sizeof *linear->weights, "a list of weights");

    const int32_t rows = linear->out_width, in = spec->in, width = linear->in_width;
    float *piece = scratch + (size_t)rows * (size_t)in;
    for (int32_t j = 0; j < linear->out_panels; j++) {
        SW_TRY(sw_model_read(model, spec->weight, j * rows, rows, scratch, err));
        for (int32_t r = 0; r < rows && j * rows + r < spec->scaled; r++) {
            for (int32_t c = 0; c < in; c++)
                scratch[(size_t)r * (size_t)in + (size_t)c] *= spec->scale;
        }
        for (int32_t i = 0; i < linear->in_panels; i++) {
            const float *w = scratch;
            if (linear->in_panels > 1) {
                for (int32_t r = 0; r < rows; r++)
                    memcpy(piece + (size_t)r * (size_t)width, scratch + (size_t)r * (size_t)in + (size_t)(i * width),
                           (size_t)width * sizeof *piece);
                w = piece;
            }
            SW_TRY(sw_weights_create(dnn, linear->first[0], w, &linear->weights[j * linear->in_panels + i], err));
        }
    }
    return SWIN_OK;
}

void sw_linear_destroy(sw_linear *linear)
{
    for (int32_t i = 0; linear->weights != NULL && i < linear->out_panels * linear->in_panels; i++)
        sw_weights_destroy(linear->weights[i]);
    sw_free(linear->weights);
    sw_free(linear->bias);
}

size_t sw_linear_bytes(const sw_linear *linear)
{
    size_t bytes = 0;
    for (int32_t i = 0; linear->weights != NULL && i < linear->out_panels * linear->in_panels; i++)
        bytes += sw_weights_bytes(linear->weights[i]);
    if (linear->bias != NULL)
        bytes += (size_t)linear->out_width * (size_t)linear->out_panels * sizeof *linear->bias;
    return bytes;
}

swin_status sw_linear_run(const sw_linear *linear, sw_dnn_thread *thread, int32_t menu_index, const sw_panels *in,
                          int32_t first_in, int32_t count_in, const sw_panels *out, int32_t out_panel)
{
    char *c = (char *)out->data + (size_t)out_panel * out->stride * sw_type_size(out->type);
    const float *bias = linear->bias == NULL ? NULL : linear->bias + (size_t)out_panel * (size_t)linear->out_width;
    for (int32_t i = first_in; i < first_in + count_in; i++) {
        const sw_product *product = i == 0 ? linear->first[menu_index] : linear->more[menu_index];
        const char *a = (const char *)in->data + (size_t)(i - first_in) * in->stride * sw_type_size(in->type);
        SW_TRY(sw_product_linear(product, thread, a, linear->weights[out_panel * linear->in_panels + i], bias, c));
    }
    return SWIN_OK;
}
