/* SPDX-License-Identifier: MIT */
/* Every allocation fails once wherever a checkpoint has JSON: in a header, an index of shards, a config.json. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <swin/swin.h>

#include "../model/naming_writer.h"
#include "memory_counted.h"
#include "tensor_file.h"

/* A V2 file without buffers: its windows stand in the config.json. */
static void write_v2(const char *name)
{
    tensor_file file = {0};
    swin_config config = small_v2();
    config.lineage = SWIN_LINEAGE_HUGGINGFACE;
    for (int s = 0; s < config.stages; s++)
        config.window[s][0] = config.window[s][1] = 4;
    naming_write(NAMING_HUGGINGFACE5, &config, 1, "", &file);
    tensor_file_write(&file, in_directory(name));
    tensor_file_free(&file);
    const char *text = "{\"model_type\":\"swinv2\",\"embed_dim\":12,\"depths\":[2,1,3,2],\"num_heads\":[1,2,6,4],"
                       "\"patch_size\":2,\"image_size\":64,\"window_size\":4,\"pretrained_window_sizes\":[6,6,0,3]}";
    write_bytes(in_directory("config.json"), text, strlen(text));
}

static void write_index(const char *shard)
{
    tensor_file file = {0};
    swin_config config = small_v1();
    char *text = NULL;
    size_t length = 0;
    naming_write(NAMING_DETECTION, &config, 1, "", &file);
    tensor_file_write(&file, in_directory(shard));
    FILE *index = open_memstream(&text, &length);
    assert_non_null(index);
    fputs("{\"weight_map\":{", index);
    for (size_t i = 0; i < file.count; i++)
        fprintf(index, "%s\"%s\":\"%s\"", i == 0 ? "" : ",", tensor_file_name(&file, i), shard);
    fputs("}}", index);
    assert_int_equal(fclose(index), 0);
    write_bytes(in_directory("a.safetensors.index.json"), text, length);
    free(text);
    tensor_file_free(&file);
}

static int set_up(void **state)
{
    (void)state;
    make_directory();
    write_v2("model.safetensors");
    write_index("shard.safetensors");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_directory();
    return memory_live_blocks() == 0 ? 0 : -1;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    const char *const names[] = {"model.safetensors", "shard.safetensors", "a.safetensors.index.json"};
    long failed = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        swin_status status = SWIN_ERR_INTERNAL;
        for (long call = 0; status != SWIN_OK; call++) {
            swin_model *model = NULL;
            swin_error err;
            memory_fail_after(call);
            status = swin_model_open(in_directory(names[i]), NULL, &model, &err);
            memory_fail_after(-1);
            if (status == SWIN_OK)
                assert_true(call > 100);
            else if (status != SWIN_ERR_NO_MEMORY || model != NULL)
                fail_msg("%s, allocation %ld: status %d, %s", names[i], call, (int)status, err.message);
            swin_model_destroy(model);
            assert_int_equal(memory_live_blocks(), 0);
            failed += status != SWIN_OK;
        }
    }
    print_message("%ld allocations failed\n", failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(every_allocation_may_fail, set_up, tear_down)};
    return cmocka_run_group_tests_name("opening without memory", tests, NULL, NULL);
}
