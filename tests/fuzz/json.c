/* SPDX-License-Identifier: MIT */
/*
 * The input is what lies beside tensors. Its first byte says what the rest is:
 *
 *   'c'  config.json
 *   'n'  the name of a file, or of a directory where there is a slash
 *   else an index of shards: one.safetensors has the tensors a and c, two.safetensors has b
 */
#include <stdlib.h>
#include <string.h>

#include "config_of.h"
#include "memory_counted.h"
#include "model/hints.h"
#include "target.h"
#include "weights/checkpoint.h"

enum { HEADER_LIMIT = 1 << 16 };

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
    for (int s = 0; s < SWIN_MAX_STAGES; s++)
        TARGET_REQUIRE(hints->pretrained[s] >= 0 && hints->pretrained[s] <= SW_MAX_IMAGE_SIZE);
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
    if (data[0] == 'c' || data[0] == 'n')
        hints(data[0] == 'n', data + 1, size - 1);
    else
        index_of_shards(data + 1, size - 1);
    TARGET_REQUIRE(memory_live_blocks() == 0);
    return 0;
}
