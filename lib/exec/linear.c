/* SPDX-License-Identifier: MIT */
#include "linear.h"

#include <string.h>

#include "../base/memory.h"

swin_status sw_linear_plan(sw_linear *linear, sw_dnn *dnn, const sw_menu *menu, const sw_linear_spec *spec,
                           swin_error *err)
{
    linear->in_width = spec->in / spec->in_parts;
    linear->in_parts = spec->in_parts;
    linear->out_width = spec->out / spec->out_parts;
    linear->out_parts = spec->out_parts;
    linear->type = spec->type;
    linear->out_type = spec->out_type;
    linear->amx = spec->amx;
    linear->gelu = spec->gelu && spec->amx;
    if (spec->amx)
        return SWIN_OK;
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
        if (spec->in_parts > 1) {
            sw_linear_shape more = shape;
            more.bias = false;
            more.accumulate = true;
            SW_TRY(sw_dnn_linear(dnn, &more, like, &linear->more[i], err));
        }
    }
    return SWIN_OK;
}

/* With AMX: of 32 columns of the output. */
static size_t strip_bytes(const sw_linear *linear)
{
    return sw_amx_strip_bytes(linear->type, linear->in_width, linear->in_parts);
}

size_t sw_linear_tile_bytes(const sw_linear *linear)
{
    return linear->amx ? (size_t)(linear->out_width * linear->out_parts / SW_AMX_WIDTH) * strip_bytes(linear) : 0;
}

size_t sw_linear_scratch(const sw_linear *linear)
{
    const size_t rows = (size_t)linear->out_width, columns = (size_t)linear->in_width * (size_t)linear->in_parts;
    /* a panel's rows as read, and one piece of them cut out */
    return rows * columns + (linear->in_parts > 1 ? rows * (size_t)linear->in_width : 0);
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

/* Rows of W that stand in `scratch`, the first of them row `first`. */
static void scale_rows(const sw_linear_spec *spec, float *scratch, int32_t first, int32_t rows)
{
    for (int32_t r = 0; r < rows && first + r < spec->scaled; r++) {
        for (int32_t c = 0; c < spec->in; c++)
            scratch[(size_t)r * (size_t)spec->in + (size_t)c] *= spec->scale;
    }
}

static swin_status pack_tiles(sw_linear *linear, const sw_model *model, const sw_linear_spec *spec, float *scratch,
                              swin_error *err)
{
    const size_t strip = strip_bytes(linear);
    const int32_t rows = linear->out_width;
    for (int32_t j = 0; j < linear->out_parts; j++) {
        SW_TRY(sw_model_read(model, spec->weight, j * rows, rows, scratch, err));
        scale_rows(spec, scratch, j * rows, rows);
        sw_amx_pack(linear->tiles + (size_t)(j * rows / SW_AMX_WIDTH) * strip, spec->type, scratch, rows,
                    linear->in_width, linear->in_parts);
    }
    return SWIN_OK;
}

swin_status sw_linear_pack(sw_linear *linear, sw_dnn *dnn, const sw_model *model, const sw_linear_spec *spec,
                           float *scratch, swin_error *err)
{
    if (spec->bias != NULL)
        SW_TRY(read_bias(linear, model, spec, err));
    if (spec->amx)
        return pack_tiles(linear, model, spec, scratch, err);
    const size_t pieces = (size_t)linear->out_parts * (size_t)linear->in_parts;
    linear->weights = sw_alloc_zeroed(pieces, sizeof *linear->weights);
    if (linear->weights == NULL)
        return sw_fail_memory(err, pieces * sizeof *linear->weights, "a list of weights");

    const int32_t rows = linear->out_width, in = spec->in, width = linear->in_width;
    float *piece = scratch + (size_t)rows * (size_t)in;
    for (int32_t j = 0; j < linear->out_parts; j++) {
        SW_TRY(sw_model_read(model, spec->weight, j * rows, rows, scratch, err));
        scale_rows(spec, scratch, j * rows, rows);
        for (int32_t i = 0; i < linear->in_parts; i++) {
            const float *w = scratch;
            if (linear->in_parts > 1) {
                for (int32_t r = 0; r < rows; r++)
                    memcpy(piece + (size_t)r * (size_t)width, scratch + (size_t)r * (size_t)in + (size_t)(i * width),
                           (size_t)width * sizeof *piece);
                w = piece;
            }
            SW_TRY(sw_weights_create(dnn, linear->first[0], w, &linear->weights[j * linear->in_parts + i], err));
        }
    }
    return SWIN_OK;
}

void sw_linear_destroy(sw_linear *linear)
{
    for (int32_t i = 0; linear->weights != NULL && i < linear->out_parts * linear->in_parts; i++)
        sw_weights_destroy(linear->weights[i]);
    sw_free(linear->weights);
    sw_free(linear->bias);
    sw_free(linear->normalise);
}

size_t sw_linear_bytes(const sw_linear *linear)
{
    size_t bytes = 0;
    for (int32_t i = 0; linear->weights != NULL && i < linear->out_parts * linear->in_parts; i++)
        bytes += sw_weights_bytes(linear->weights[i]);
    bytes += sw_linear_tile_bytes(linear);
    if (linear->bias != NULL)
        bytes += (size_t)linear->out_width * (size_t)linear->out_parts * sizeof *linear->bias;
    return bytes;
}

const char *sw_linear_kernel(const sw_linear *linear)
{
    if (linear->amx)
        return linear->type == SW_BF16 ? "swin:amx_bf16" : "swin:amx_int8x8";
    return sw_product_name(linear->first[0]);
}

sw_panels sw_linear_part(const sw_linear *linear, const sw_panels *whole, int32_t out_part)
{
    sw_panels part = *whole;
    const size_t panels = (size_t)(out_part * (linear->out_width / whole->width));
    part.data = (char *)whole->data + panels * whole->stride * sw_type_size(whole->type);
    return part;
}

static int32_t strips_of_part(const sw_linear *linear)
{
    return linear->out_width / SW_AMX_WIDTH;
}

static int32_t normalised_strips(const sw_linear *linear)
{
    return linear->normalised * strips_of_part(linear);
}

static sw_amx_finish finish_of(const sw_linear *linear, int32_t first_in, int32_t strip)
{
    if (strip < normalised_strips(linear))
        return SW_AMX_NORMALISE;
    if (linear->gelu)
        return SW_AMX_GELU;
    if (linear->out_type == SW_BF16)
        return SW_AMX_NARROW;
    return first_in > 0 ? SW_AMX_ADD : SW_AMX_STORE;
}

/* Strips first .. first + count - 1 of the output, all finished alike, to `out`, where the first of them belongs. */
static void run_strips(const sw_linear *linear, void *scratch, int32_t rows, const sw_panels *in, int32_t first_in,
                       int32_t count_in, const sw_panels *out, int32_t first, int32_t count)
{
    const int32_t steps = linear->in_width / SW_AMX_WIDTH;
    /* float32 takes the input chunk by chunk */
    const int32_t chunks = linear->type == SW_F32 ? 1 : count_in;
    for (int32_t i = first_in; i < first_in + count_in; i += chunks) {
        const sw_amx_linear run = {
            .type = linear->type,
            .rows = rows,
            .a = (const char *)in->data +
                 (size_t)((i - first_in) * steps) * in->stride * sw_type_size(linear->type),
            .a_stride = in->stride,
            .k_count = chunks * steps,
            .b = linear->tiles + (size_t)first * strip_bytes(linear),
            .b_stride = strip_bytes(linear),
            .b_at = sw_amx_chunk_at(linear->type, linear->in_width, i),
            .n_count = count,
            .bias = linear->bias == NULL || i > 0 ? NULL : linear->bias + first * SW_AMX_WIDTH,
            .scale = first < normalised_strips(linear) ? linear->normalise + first : NULL,
            .finish = finish_of(linear, i, first),
            .c = out->data,
            .c_stride = out->stride,
            .scratch = scratch,
        };
        sw_amx_linear_run(&run);
    }
}

/* Strips first .. end - 1 of the output, each to its place in `out`, which is the whole. */
static void run_range(const sw_linear *linear, void *scratch, int32_t rows, const sw_panels *in, int32_t first_in,
                      int32_t count_in, const sw_panels *out, int32_t first, int32_t end)
{
    while (first < end) {
        const int32_t border = normalised_strips(linear), stop = first < border && border < end ? border : end;
        sw_panels place = *out;
        place.data = (char *)out->data + (size_t)first * out->stride * sw_type_size(out->type);
        run_strips(linear, scratch, rows, in, first_in, count_in, &place, first, stop - first);
        first = stop;
    }
}

swin_status sw_linear_run(const sw_linear *linear, const sw_linear_thread *thread, int32_t menu_index, int32_t rows,
                          const sw_panels *in, int32_t first_in, int32_t count_in, const sw_panels *out,
                          int32_t out_part)
{
    if (linear->amx) {
        const int32_t strips = strips_of_part(linear);
        run_strips(linear, thread->scratch, rows, in, first_in, count_in, out, out_part * strips, strips);
        return SWIN_OK;
    }
    const float *bias = linear->bias == NULL ? NULL : linear->bias + (size_t)out_part * (size_t)linear->out_width;
    for (int32_t i = first_in; i < first_in + count_in; i++) {
        const sw_product *product = i == 0 ? linear->first[menu_index] : linear->more[menu_index];
        const char *a = (const char *)in->data + (size_t)(i - first_in) * in->stride * sw_type_size(in->type);
        SW_TRY(sw_product_linear(product, thread->dnn, a, linear->weights[out_part * linear->in_parts + i], bias,
                                 out->data));
    }
    return SWIN_OK;
}

swin_status sw_linear_run_all(const sw_linear *linear, const sw_linear_thread *thread, int32_t menu_index, int32_t rows,
                              const sw_panels *in, int32_t first_in, int32_t count_in, const sw_panels *out)
{
    if (linear->amx) {
        run_range(linear, thread->scratch, rows, in, first_in, count_in, out, 0,
                  linear->out_parts * strips_of_part(linear));
        return SWIN_OK;
    }
    for (int32_t j = 0; j < linear->out_parts; j++) {
        const sw_panels part = sw_linear_part(linear, out, j);
        SW_TRY(sw_linear_run(linear, thread, menu_index, rows, in, first_in, count_in, &part, j));
    }
    return SWIN_OK;
}

int32_t sw_linear_shares(const sw_linear *linear, int32_t wanted)
{
    const int32_t most = linear->out_parts * (linear->amx ? strips_of_part(linear) : 1);
    return wanted < most && linear->amx ? wanted : most;
}

swin_status sw_linear_run_share(const sw_linear *linear, const sw_linear_thread *thread, int32_t menu_index,
                                int32_t rows, const sw_panels *in, const sw_panels *out, int32_t share, int32_t shares)
{
    if (!linear->amx) {
        const sw_panels part = sw_linear_part(linear, out, share);
        return sw_linear_run(linear, thread, menu_index, rows, in, 0, linear->in_parts, &part, share);
    }
    const int32_t strips = linear->out_parts * strips_of_part(linear);
    run_range(linear, thread->scratch, rows, in, 0, linear->in_parts, out, share * strips / shares,
              (share + 1) * strips / shares);
    return SWIN_OK;
}
