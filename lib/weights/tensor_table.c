/* SPDX-License-Identifier: MIT */
#include "tensor_table.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/checked.h"
#include "../base/memory.h"

/* One block of names per file. */
struct sw_names {
    struct sw_names *previous;
    size_t used;
    size_t size;
    char text[];
};

swin_status sw_tensor_table_reserve(sw_tensor_table *table, size_t count, size_t name_bytes, swin_error *err)
{
    size_t capacity, bytes;
    if (!sw_add(table->count, count, &capacity) || !sw_add(sizeof *table->names, name_bytes, &bytes))
        return sw_fail(err, SWIN_ERR_LIMIT, "too many tensors: %zu and %zu more", table->count, count);
    struct sw_names *names = sw_alloc(bytes, 1);
    if (names == NULL)
        return sw_fail_memory(err, bytes, "the names of tensors");
    if (capacity > table->capacity) {
        /* A half more than there is: a checkpoint may come in a thousand small files. */
        if (capacity < table->capacity + table->capacity / 2)
            capacity = table->capacity + table->capacity / 2;
        sw_tensor *tensors = sw_alloc(capacity, sizeof *tensors);
        if (tensors == NULL) {
            sw_free(names);
            return sw_fail_memory(err, capacity * sizeof *tensors, "the table of tensors");
        }
        if (table->count > 0)
            memcpy(tensors, table->tensors, table->count * sizeof *tensors);
        sw_free(table->tensors);
        table->tensors = tensors;
        table->capacity = capacity;
    }
    names->previous = table->names;
    names->used = 0;
    names->size = name_bytes;
    table->names = names;
    return SWIN_OK;
}

void sw_tensor_table_add(sw_tensor_table *table, const sw_tensor *tensor)
{
    const size_t length = strlen(tensor->name) + 1;
    assert(table->count < table->capacity && length <= table->names->size - table->names->used);
    char *name = table->names->text + table->names->used;
    memcpy(name, tensor->name, length);
    table->names->used += length;
    table->tensors[table->count] = *tensor;
    table->tensors[table->count].name = name;
    table->count++;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const sw_tensor *)a)->name, ((const sw_tensor *)b)->name);
}

swin_status sw_tensor_table_sort(sw_tensor_table *table, swin_error *err)
{
    if (table->count == 0)
        return SWIN_OK;
    qsort(table->tensors, table->count, sizeof *table->tensors, compare_names);
    for (size_t i = 1; i < table->count; i++) {
        if (strcmp(table->tensors[i - 1].name, table->tensors[i].name) == 0)
            return sw_fail(err, SWIN_ERR_FORMAT, "tensor \"%.200s\" occurs twice, expected once",
                           table->tensors[i].name);
    }
    return SWIN_OK;
}

const sw_tensor *sw_tensor_table_find(const sw_tensor_table *table, const char *name)
{
    if (table->count == 0)
        return NULL;
    const sw_tensor key = {.name = name};
    return bsearch(&key, table->tensors, table->count, sizeof *table->tensors, compare_names);
}

void sw_tensor_table_release(sw_tensor_table *table)
{
    while (table->names != NULL) {
        struct sw_names *previous = table->names->previous;
        sw_free(table->names);
        table->names = previous;
    }
    sw_free(table->tensors);
    *table = (sw_tensor_table){0};
}

const char *sw_tensor_shape_text(const sw_tensor *tensor, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int32_t i = 0; i < tensor->rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRIu64, i == 0 ? "[" : ", ", tensor->shape[i]);
    if (used < size)
        snprintf(text + used, size - used, tensor->rank == 0 ? "[]" : "]");
    return text;
}
