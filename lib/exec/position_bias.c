/* SPDX-License-Identifier: MIT */
#include "position_bias.h"

#include <string.h>

#include "../base/memory.h"

/* Largest window, in slots, whose bias is kept expanded: 12 x 12. */
#define EXPANDED_SLOTS 144

static size_t table_size(const sw_position_bias *bias)
{
    return (size_t)(2 * bias->window[0] - 1) * (size_t)(2 * bias->window[1] - 1);
}

static size_t value_count(const sw_position_bias *bias)
{
    const size_t slots = (size_t)bias->window[0] * (size_t)bias->window[1];
    return (size_t)bias->heads * (bias->expanded ? slots * slots : table_size(bias));
}

/* A window's rows are too short for a call of memcpy() to pay: a beginning and an end of fixed size, which may overlap,
 * take half the time. */
static inline void copy_row(float *dst, const float *src, int32_t columns)
{
    enum { PART = 16 };
    if (columns < PART || columns > 2 * PART) {
        memcpy(dst, src, (size_t)columns * sizeof *dst);
        return;
    }
    memcpy(dst, src, PART * sizeof *dst);
    memcpy(dst + columns - PART, src + columns - PART, PART * sizeof *dst);
}

/* Lays out rows of queries. In the reversed table, the entries of the keys of one window row stand in the order of
 * the keys. */
static void lay_out(float *dst, const float *reversed, const int32_t window[2], int32_t first, int32_t rows)
{
    const int32_t columns = window[1], span = 2 * columns - 1;
    for (int32_t i = first; i < first + rows; i++) {
        const int32_t y = i / columns, x = i % columns;
        for (int32_t key_row = 0; key_row < window[0]; key_row++, dst += columns)
            copy_row(dst, reversed + (size_t)(window[0] - 1 - y + key_row) * (size_t)span + (size_t)(columns - 1 - x),
                     columns);
    }
}

swin_status sw_position_bias_create(sw_position_bias *bias, const sw_model *model, int32_t stage, int32_t block,
                                    int32_t heads, const int32_t window[2], swin_error *err)
{
    const int32_t slots = window[0] * window[1];
    *bias = (sw_position_bias){
        .window = {window[0], window[1]}, .heads = heads, .expanded = slots <= EXPANDED_SLOTS};
    const size_t size = table_size(bias);
    float *tables = sw_alloc((size_t)heads * size, sizeof *tables);
    if (tables == NULL)
        return sw_fail_memory(err, (size_t)heads * size * sizeof *tables, "position bias tables");
    const swin_status status = sw_model_position_bias(model, stage, block, window[0], window[1], tables, err);
    if (status != SWIN_OK) {
        sw_free(tables);
        return status;
    }
    for (int32_t head = 0; head < heads; head++) {
        float *table = tables + (size_t)head * size;
        for (size_t i = 0; i < size / 2; i++) {
            const float value = table[i];
            table[i] = table[size - 1 - i];
            table[size - 1 - i] = value;
        }
    }
    if (!bias->expanded) {
        bias->values = tables;
        return SWIN_OK;
    }
    bias->values = sw_alloc(value_count(bias), sizeof *bias->values);
    if (bias->values == NULL) {
        sw_free(tables);
        return sw_fail_memory(err, value_count(bias) * sizeof *bias->values, "position biases");
    }
    for (int32_t head = 0; head < heads; head++)
        lay_out(bias->values + (size_t)head * (size_t)slots * (size_t)slots, tables + (size_t)head * size, window, 0,
                slots);
    sw_free(tables);
    return SWIN_OK;
}

void sw_position_bias_destroy(sw_position_bias *bias)
{
    sw_free(bias->values);
    bias->values = NULL;
}

size_t sw_position_bias_bytes(const sw_position_bias *bias)
{
    return bias->values == NULL ? 0 : value_count(bias) * sizeof *bias->values;
}

const float *sw_position_bias_rows(const sw_position_bias *bias, int32_t head, int32_t first, int32_t rows,
                                   float *scratch)
{
    const size_t slots = (size_t)bias->window[0] * (size_t)bias->window[1];
    if (bias->expanded)
        return bias->values + ((size_t)head * slots + (size_t)first) * slots;
    lay_out(scratch, bias->values + (size_t)head * table_size(bias), bias->window, first, rows);
    return scratch;
}
