/* SPDX-License-Identifier: MIT */
#include "safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/checked.h"
#include "../base/memory.h"
#include "advice.h"
#include "json.h"

/* The document, a tensor's object, its arrays. */
#define HEADER_DEPTH 3

swin_status sw_safetensors_sniff(const sw_file *file, swin_error *err)
{
    static const struct kind {
        const char *what;
        const char *bytes;
        size_t length;
    } pickled[] = {
        {"a zip archive, as torch.save() writes it", "PK\3\4", 4},
        {"a zip archive, as torch.save() writes it", "PK\5\6", 4},
        {"a pickle", "\x80\x02", 2},
        {"a pickle", "\x80\x03", 2},
        {"a pickle", "\x80\x04", 2},
        {"a pickle", "\x80\x05", 2},
        {"a pickle", "(dp", 3},
    };
    static const struct kind others[] = {
        {"a Git LFS pointer (git lfs pull fetches the file itself)", "version h", 9},
        {"an HDF5 file", "\x89HDF\r\n\x1a\n", 8},
        {"a PNG picture", "\x89PNG\r\n\x1a\n", 8},
        {"a JPEG picture", "\xff\xd8\xff", 3},
        {"a web page (was the download redirected?)", "<!DOCTYPE", 9},
        {"a web page (was the download redirected?)", "<!doctype", 9},
        {"a web page (was the download redirected?)", "<html", 5},
        {"a GGUF file", "GGUF", 4},
    };
    char head[9] = {0};
    const size_t length = file->size < sizeof head ? (size_t)file->size : sizeof head;
    SW_TRY(sw_file_read(file, 0, head, length, err));
    if (length > 0 && head[0] == '{' && head[8] != '{')
        return sw_fail(err, SWIN_ERR_FORMAT,
                       "%.200s looks like JSON, expected a safetensors file or a *.safetensors.index.json", file->path);
    /* A header length may look like anything, but a header begins with a brace. */
    if (length == sizeof head && head[8] == '{')
        return SWIN_OK;
    for (size_t i = 0; i < sizeof pickled / sizeof pickled[0]; i++) {
        if (length >= pickled[i].length && memcmp(head, pickled[i].bytes, pickled[i].length) == 0)
            return sw_fail_pickled(file->path, pickled[i].what, err);
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (length >= others[i].length && memcmp(head, others[i].bytes, others[i].length) == 0)
            return sw_fail(err, SWIN_ERR_FORMAT, "%.300s is %s, expected a safetensors file", file->path,
                           others[i].what);
    }
    return SWIN_OK;
}

struct header {
    const sw_file *file;
    size_t number;
    uint64_t data_offset;
    uint64_t data_bytes;
};

static swin_status fail_tensor(swin_error *err, const struct header *header, const char *name, const char *problem)
{
    return sw_fail(err, SWIN_ERR_FORMAT, "tensor \"%.200s\" of %.150s %s", name, header->file->path, problem);
}

static swin_status read_shape(const struct header *header, const sw_json *value, sw_tensor *tensor, swin_error *err)
{
    if (!sw_json_is(value, SW_JSON_ARRAY))
        return fail_tensor(err, header, tensor->name, "has no array \"shape\"");
    if (sw_json_count(value) > SW_MAX_RANK)
        return sw_fail(err, SWIN_ERR_UNSUPPORTED, "tensor \"%.200s\" has %zu dimensions, expected at most %d",
                       tensor->name, sw_json_count(value), SW_MAX_RANK);
    tensor->rank = (int32_t)sw_json_count(value);
    tensor->elements = 1;
    for (int32_t i = 0; i < tensor->rank; i++) {
        const sw_json *side = sw_json_element(value, (size_t)i);
        if (!sw_json_is(side, SW_JSON_INTEGER) || sw_json_integer(side) < 0)
            return fail_tensor(err, header, tensor->name, "has a shape with something that is no count");
        tensor->shape[i] = (uint64_t)sw_json_integer(side);
    }
    for (int32_t i = 0; i < tensor->rank; i++) {
        char shape[128];
        if (__builtin_mul_overflow(tensor->elements, tensor->shape[i], &tensor->elements))
            return sw_fail(err, SWIN_ERR_FORMAT,
                           "tensor \"%.150s\" of %.150s has shape %s, expected fewer than 2^64 elements", tensor->name,
                           header->file->path, sw_tensor_shape_text(tensor, shape, sizeof shape));
    }
    return SWIN_OK;
}

static swin_status read_offsets(const struct header *header, const sw_json *value, sw_tensor *tensor, swin_error *err)
{
    const sw_json *first = sw_json_element(value, 0), *second = sw_json_element(value, 1);
    if (sw_json_count(value) != 2 || !sw_json_is(first, SW_JSON_INTEGER) || !sw_json_is(second, SW_JSON_INTEGER))
        return fail_tensor(err, header, tensor->name, "has no \"data_offsets\" of two integers");
    const int64_t begin = sw_json_integer(first), end = sw_json_integer(second);
    if (begin < 0 || end < begin || (uint64_t)end > header->data_bytes)
        return sw_fail(err, SWIN_ERR_FORMAT,
                       "tensor \"%.200s\" lies at %" PRId64 " to %" PRId64 ", expected a range within the %" PRIu64
                       " bytes of data of %.120s",
                       tensor->name, (int64_t)begin, (int64_t)end, header->data_bytes, header->file->path);
    tensor->offset = header->data_offset + (uint64_t)begin;
    tensor->bytes = (uint64_t)(end - begin);

    uint64_t bits;
    if (__builtin_mul_overflow(tensor->elements, sw_dtype_bits(tensor->dtype), &bits) || bits % 8 != 0 ||
        bits / 8 != tensor->bytes) {
        char shape[96];
        return sw_fail(err, SWIN_ERR_FORMAT,
                       "tensor \"%.200s\" has %" PRIu64 " bytes, which is not the size of %s of type %s", tensor->name,
                       tensor->bytes, sw_tensor_shape_text(tensor, shape, sizeof shape), sw_dtype_name(tensor->dtype));
    }
    return SWIN_OK;
}

static swin_status read_tensor(const struct header *header, const char *name, const sw_json *value, sw_tensor *tensor,
                               swin_error *err)
{
    *tensor = (sw_tensor){.name = name, .file = header->number};
    const sw_json *dtype = sw_json_member(value, "dtype");
    if (!sw_json_is(dtype, SW_JSON_STRING))
        return fail_tensor(err, header, name, "has no string \"dtype\"");
    if (!sw_dtype_find(sw_json_text(dtype), &tensor->dtype))
        return sw_fail(err, SWIN_ERR_UNSUPPORTED,
                       "tensor \"%.200s\" has type \"%.40s\", expected one of safetensors, such as F32 or BF16", name,
                       sw_json_text(dtype));
    SW_TRY(read_shape(header, sw_json_member(value, "shape"), tensor, err));
    return read_offsets(header, sw_json_member(value, "data_offsets"), tensor, err);
}

static swin_status check_metadata(const struct header *header, const sw_json *metadata, swin_error *err)
{
    if (!sw_json_is(metadata, SW_JSON_OBJECT))
        return sw_fail(err, SWIN_ERR_FORMAT, "\"__metadata__\" of %.300s is no object", header->file->path);
    for (const sw_json *value = metadata->first; value != NULL; value = value->next) {
        if (!sw_json_is(value, SW_JSON_STRING))
            return sw_fail(err, SWIN_ERR_FORMAT, "\"%.200s\" in \"__metadata__\" of %.200s is no string", value->name,
                           header->file->path);
    }
    return SWIN_OK;
}

static swin_status read_tensors(const struct header *header, const sw_json *root, sw_tensor_table *table,
                                swin_error *err)
{
    size_t name_bytes = 0;
    for (const sw_json *value = root->first; value != NULL; value = value->next)
        name_bytes += strlen(value->name) + 1;
    SW_TRY(sw_tensor_table_reserve(table, sw_json_count(root), name_bytes, err));
    for (const sw_json *value = root->first; value != NULL; value = value->next) {
        sw_tensor tensor;
        if (strcmp(value->name, "__metadata__") == 0) {
            SW_TRY(check_metadata(header, value, err));
            continue;
        }
        SW_TRY(read_tensor(header, value->name, value, &tensor, err));
        sw_tensor_table_add(table, &tensor);
    }
    return SWIN_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const sw_tensor *x = *(const sw_tensor *const *)a, *y = *(const sw_tensor *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static swin_status check_overlaps(const sw_tensor *tensors, size_t count, swin_error *err)
{
    const sw_tensor **order = sw_alloc(count, sizeof *order);
    if (order == NULL)
        return sw_fail_memory(err, count * sizeof *order, "checking tensors for overlaps");
    for (size_t i = 0; i < count; i++)
        order[i] = &tensors[i];
    qsort(order, count, sizeof *order, compare_offsets);
    swin_status status = SWIN_OK;
    for (size_t i = 1; i < count; i++) {
        if (order[i]->offset < order[i - 1]->offset + order[i - 1]->bytes) {
            status = sw_fail(err, SWIN_ERR_FORMAT, "tensors \"%.200s\" and \"%.200s\" overlap in the file",
                             order[i - 1]->name, order[i]->name);
            break;
        }
    }
    sw_free(order);
    return status;
}

swin_status sw_safetensors_read_header(const sw_file *file, size_t number, uint64_t max_header_bytes,
                                       sw_tensor_table *table, swin_error *err)
{
    uint64_t length;
    if (file->size < sizeof length)
        return sw_fail(err, SWIN_ERR_FORMAT, "%.300s is no safetensors file: it has %" PRIu64 " bytes", file->path,
                       file->size);
    SW_TRY(sw_file_read(file, 0, &length, sizeof length, err));
    if (length > file->size - sizeof length || length < 2)
        return sw_fail(err, SWIN_ERR_FORMAT,
                       "%.200s is no safetensors file, or cut: its header would have %" PRIu64 " bytes, the file has %"
                       PRIu64, file->path, length, file->size);
    if (length > max_header_bytes)
        return sw_fail(err, SWIN_ERR_LIMIT, "the header of %.200s has %" PRIu64 " bytes, expected at most %" PRIu64
                       " (max_header_bytes)", file->path, length, max_header_bytes);

    const struct header header = {file, number, sizeof length + length, file->size - sizeof length - length};
    const size_t before = table->count;
    swin_status status;
    sw_json *root = NULL;
    char what[256];
    char *text = sw_alloc((size_t)length, 1);
    if (text == NULL)
        return sw_fail_memory(err, (size_t)length, "the header of a safetensors file");
    snprintf(what, sizeof what, "the header of %.230s", file->path);
    SW_TRY_OR_FAIL(sw_file_read(file, sizeof length, text, (size_t)length, err));
    if (text[0] != '{') {
        status = sw_fail(err, SWIN_ERR_FORMAT, "%.300s is no safetensors file: its header does not begin with {",
                         file->path);
        goto fail;
    }
    SW_TRY_OR_FAIL(sw_json_parse(text, (size_t)length, HEADER_DEPTH, what, &root, err));
    SW_TRY_OR_FAIL(read_tensors(&header, root, table, err));
    if (table->count > before)
        status = check_overlaps(table->tensors + before, table->count - before, err);

fail:
    sw_free(root);
    sw_free(text);
    return status;
}
