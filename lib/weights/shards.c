/* SPDX-License-Identifier: MIT */
#include "shards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "json.h"
#include "safetensors.h"

/* The document, its weight_map; its metadata may hold a list or an object. */
#define INDEX_DEPTH 4

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A name that stays in the index's own directory. */
static bool is_plain_name(const char *name)
{
    return name[0] != '\0' && strchr(name, '/') == NULL && strchr(name, '\\') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* names[0 .. *count - 1] become the shards' names, sorted, each once; they belong to the map. */
static swin_status list_shards(const char *index_path, const sw_json *map, const char **names, size_t *count,
                               swin_error *err)
{
    size_t n = 0;
    for (const sw_json *shard = map->first; shard != NULL; shard = shard->next) {
        if (shard->text == NULL)
            return sw_fail(err, SWIN_ERR_FORMAT,
                           "%.150s: the file of tensor \"%.150s\" is no string, expected a file name",
                           index_path, shard->name);
        if (!is_plain_name(shard->text))
            return sw_fail(err, SWIN_ERR_FORMAT,
                           "%.150s puts tensor \"%.150s\" into \"%.60s\", expected a plain file name", index_path,
                           shard->name, shard->text);
        names[n++] = shard->text;
    }
    qsort(names, n, sizeof *names, compare_strings);
    size_t unique = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            names[unique++] = names[i];
    }
    if (unique > SW_MAX_SHARDS)
        return sw_fail(err, SWIN_ERR_LIMIT, "%.200s lists %zu shards, expected at most %d", index_path, unique,
                       SW_MAX_SHARDS);
    *count = unique;
    return SWIN_OK;
}

static swin_status open_shard(const char *index_path, const char *name, uint64_t max_header_bytes,
                              sw_checkpoint *checkpoint, swin_error *err)
{
    const char *slash = strrchr(index_path, '/');
    const size_t directory = slash == NULL ? 0 : (size_t)(slash - index_path) + 1;
    const size_t size = directory + strlen(name) + 1;
    char *path = sw_alloc(size, 1);
    if (path == NULL)
        return sw_fail_memory(err, size, "the name of a shard");
    memcpy(path, index_path, directory);
    memcpy(path + directory, name, size - directory);

    sw_file *file = &checkpoint->files[checkpoint->file_count];
    swin_status status = sw_file_open(path, file, err);
    if (status == SWIN_OK) {
        const size_t number = checkpoint->file_count++;
        status = sw_safetensors_sniff(file, err);
        if (status == SWIN_OK)
            status = sw_safetensors_read_header(file, number, max_header_bytes, &checkpoint->table, err);
    }
    sw_free(path);
    return status;
}

/* The shard that a tensor lies in must be the one that the index says, and the index must know every tensor. */
static swin_status check_agreement(const char *index_path, const sw_json *map, const char *const *names,
                                   const sw_checkpoint *checkpoint, swin_error *err)
{
    for (size_t i = 0; i < checkpoint->table.count; i++) {
        const sw_tensor *tensor = &checkpoint->table.tensors[i];
        const sw_json *shard = sw_json_member(map, tensor->name);
        if (shard == NULL || strcmp(sw_json_text(shard), names[tensor->file]) != 0)
            return sw_fail(err, SWIN_ERR_FORMAT, "tensor \"%.150s\" lies in %.80s, but %.150s says %.80s", tensor->name,
                           names[tensor->file], index_path, shard == NULL ? "nothing" : sw_json_text(shard));
    }
    if (sw_json_count(map) == checkpoint->table.count)
        return SWIN_OK;

    for (const sw_json *shard = map->first; shard != NULL; shard = shard->next) {
        if (sw_tensor_table_find(&checkpoint->table, shard->name) == NULL)
            return sw_fail(err, SWIN_ERR_FORMAT, "tensor \"%.150s\" is not in %.80s, where %.150s puts it",
                           shard->name, shard->text, index_path);
    }
    return SWIN_OK;
}

swin_status sw_shards_open(const char *index_path, uint64_t max_header_bytes, sw_checkpoint *checkpoint,
                           swin_error *err)
{
    char *text = NULL;
    size_t length = 0, count = 0;
    sw_json *root = NULL;
    const char **names = NULL;
    swin_status status;

    if (max_header_bytes > SIZE_MAX)
        max_header_bytes = SIZE_MAX;
    SW_TRY_OR_FAIL(sw_file_load(index_path, (size_t)max_header_bytes, &text, &length, err));
    SW_TRY_OR_FAIL(sw_json_parse(text, length, INDEX_DEPTH, index_path, &root, err));
    const sw_json *map = sw_json_member(root, "weight_map");
    if (!sw_json_is(map, SW_JSON_OBJECT) || sw_json_count(map) == 0) {
        status = sw_fail(err, SWIN_ERR_FORMAT, "%.300s has no object \"weight_map\"", index_path);
        goto fail;
    }
    names = sw_alloc(sw_json_count(map), sizeof *names);
    if (names == NULL) {
        status = sw_fail_memory(err, sw_json_count(map) * sizeof *names, "the names of shards");
        goto fail;
    }
    SW_TRY_OR_FAIL(list_shards(index_path, map, names, &count, err));
    checkpoint->files = sw_alloc(count, sizeof *checkpoint->files);
    if (checkpoint->files == NULL) {
        status = sw_fail_memory(err, count * sizeof *checkpoint->files, "the shards");
        goto fail;
    }
    /* No further than the index goes: a thousand names may stand for one large file. What is too much is told below. */
    for (size_t i = 0; i < count && checkpoint->table.count <= sw_json_count(map); i++)
        SW_TRY_OR_FAIL(open_shard(index_path, names[i], max_header_bytes, checkpoint, err));
    SW_TRY_OR_FAIL(sw_tensor_table_sort(&checkpoint->table, err));
    status = check_agreement(index_path, map, names, checkpoint, err);

fail:
    sw_free(names);
    sw_free(root);
    sw_free(text);
    return status;
}
