/* SPDX-License-Identifier: MIT */
/*
 * The input is what lies beside tensors. Its first byte says what the rest is:
 *
 *   'p'  any JSON, which another parser must take for the same
 *   'c'  config.json
 *   'n'  the name of a file, or of a directory where there is a slash
 *   else an index of shards: one.safetensors has the tensors a and c, two.safetensors has b
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "config_of.h"
#include "memory_counted.h"
#include "model/hints.h"
#include "target.h"
#include "weights/checkpoint.h"
#include "weights/json.h"

enum { HEADER_LIMIT = 1 << 16, MAX_DEPTH = 12 };

static void compare(const sw_json *ours, json_t *theirs)
{
    size_t index = 0;
    switch (json_typeof(theirs)) {
    case JSON_OBJECT:
        TARGET_REQUIRE(ours->type == SW_JSON_OBJECT && ours->count == json_object_size(theirs));
        for (const sw_json *member = ours->first; member != NULL; member = member->next, index++) {
            json_t *other = json_object_get(theirs, member->name);
            TARGET_REQUIRE(other != NULL && sw_json_member(ours, member->name) == member);
            compare(member, other);
        }
        TARGET_REQUIRE(index == ours->count && sw_json_member(ours, "no such name") == NULL);
        break;
    case JSON_ARRAY:
        TARGET_REQUIRE(ours->type == SW_JSON_ARRAY && ours->count == json_array_size(theirs));
        for (; index < ours->count; index++)
            compare(sw_json_element(ours, index), json_array_get(theirs, index));
        TARGET_REQUIRE(sw_json_element(ours, index) == NULL);
        break;
    case JSON_STRING:
        TARGET_REQUIRE(ours->type == SW_JSON_STRING && strcmp(ours->text, json_string_value(theirs)) == 0);
        break;
    case JSON_INTEGER:
        TARGET_REQUIRE(ours->type == SW_JSON_INTEGER && ours->integer == json_integer_value(theirs));
        break;
    case JSON_REAL:
        TARGET_REQUIRE(ours->type == SW_JSON_NUMBER);
        break;
    case JSON_NULL:
        TARGET_REQUIRE(ours->type == SW_JSON_NULL);
        break;
    default:
        TARGET_REQUIRE(ours->type == SW_JSON_BOOLEAN);
    }
}

static void document(const uint8_t *data, size_t size)
{
    swin_error err;
    sw_json *ours;
    sw_error_reset(&err);
    char *text = malloc(size + (size == 0));
    TARGET_REQUIRE(text != NULL);
    memcpy(text, data, size);
    json_error_t detail = {.text = ""};
    json_t *theirs = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &detail);
    const swin_status status = sw_json_parse(text, size, MAX_DEPTH, "it", &ours, &err);
    if (memchr(data, 0, size) != NULL) {
        TARGET_REQUIRE(status != SWIN_OK); /* jansson reads over it in places */
    } else if (status == SWIN_OK) {
        /* A number that no double can hold is a number all the same. */
        TARGET_REQUIRE(theirs != NULL || strstr(detail.text, "real number overflow") != NULL);
        if (theirs != NULL)
            compare(ours, theirs);
    } else {
        TARGET_REQUIRE(theirs == NULL || !json_is_object(theirs) || strstr(err.message, "nests deeper") != NULL);
    }
    sw_free(ours);
    json_decref(theirs);
    free(text);
}

static void make_shard(const char *name, const char *header)
{
    char bytes[512] = {0};
    const uint64_t length = strlen(header);
    memcpy(bytes, &length, sizeof length);
    memcpy(bytes + sizeof length, header, length);
    target_file(name, bytes, sizeof length + length + 8);
}

static void index_of_shards(const uint8_t *data, size_t size)
{
    static bool made;
    sw_checkpoint checkpoint;
    swin_error err;
    if (!made) {
        make_shard("one.safetensors", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                                      "\"c\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[4,8]}}");
        make_shard("two.safetensors", "{\"b\":{\"dtype\":\"F16\",\"shape\":[2,2],\"data_offsets\":[0,8]}}");
        made = true;
    }
    const char *path = target_file("model.safetensors.index.json", data, size);
    sw_error_reset(&err);
    const swin_status status = sw_checkpoint_open(path, HEADER_LIMIT, &checkpoint, &err);
    TARGET_REQUIRE((status == SWIN_OK) == (err.message[0] == '\0'));
    if (status == SWIN_OK) {
        TARGET_REQUIRE(checkpoint.file_count >= 1 && checkpoint.file_count <= 2 && checkpoint.table.count <= 3);
        /* Beside the index, and by no way around. */
        const size_t directory = strlen(path) - strlen(strrchr(path, '/'));
        for (size_t i = 0; i < checkpoint.file_count; i++)
            TARGET_REQUIRE(strrchr(checkpoint.files[i].path, '/') == checkpoint.files[i].path + directory);
        sw_checkpoint_close(&checkpoint);
    }
}

static void check_hints(const sw_hints *hints)
{
    if (!hints->known)
        return;
    TARGET_REQUIRE(hints->window[0] >= 0 && hints->window[0] <= SW_MAX_IMAGE_SIZE);
    TARGET_REQUIRE(hints->window[1] >= 0 && hints->window[1] <= SW_MAX_IMAGE_SIZE);
    TARGET_REQUIRE(hints->image_size[0] >= 0 && hints->image_size[0] <= SW_MAX_IMAGE_SIZE);
    TARGET_REQUIRE(hints->image_size[1] >= 0 && hints->image_size[1] <= SW_MAX_IMAGE_SIZE);
    /* Pre-training windows that are too large are kept, for the message that refuses them. */
    for (int s = 0; s < SWIN_MAX_STAGES; s++)
        TARGET_REQUIRE(hints->pretrained[s] >= 0 || hints->pretrained[s] == SW_HINT_WRONG);
}

static void hints(bool named, const uint8_t *data, size_t size)
{
    swin_config config = config_of(2, 4, 96, 3, 8);
    const int32_t depths[4] = {2, 2, 6, 2};
    memcpy(config.depths, depths, sizeof depths);
    sw_hints hints = {0};
    if (named) {
        char *name = malloc(size + 1);
        TARGET_REQUIRE(name != NULL);
        memcpy(name, data, size);
        name[size] = '\0';
        sw_hints_from_path(name, &config, &hints);
        check_hints(&hints);
        hints = (sw_hints){0};
        sw_hints_from_name(name, size, &config, &hints);
        free(name);
    } else {
        const char *path = target_file("config.json", data, size);
        char *beside = strdup(path);
        TARGET_REQUIRE(beside != NULL);
        memcpy(beside + strlen(beside) - strlen("config.json"), "model.bin", sizeof "model.bin");
        TARGET_REQUIRE(sw_hints_from_config(beside, &config, &hints, NULL) == SWIN_OK);
        free(beside);
    }
    check_hints(&hints);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] == 'p')
        document(data + 1, size - 1);
    else if (data[0] == 'c' || data[0] == 'n')
        hints(data[0] == 'n', data + 1, size - 1);
    else
        index_of_shards(data + 1, size - 1);
    TARGET_REQUIRE(memory_live_blocks() == 0);
    return 0;
}
