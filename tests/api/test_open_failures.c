/* SPDX-License-Identifier: MIT */
/*
 * Every allocation and every call of the operating system fails once, wherever a checkpoint is more than one file: an
 * index with its shard, a model with its config.json. Reads come in pieces, and are interrupted.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <swin/swin.h>

#include "../model/naming_writer.h"
#include "memory_counted.h"
#include "tensor_file.h"

/* The linker puts these in front of the C library's (--wrap); a build may know either name. Weights are read by several
 * threads. */
static atomic_long calls_left = -1; /* before one fails */
static int failure;
static size_t piece;      /* the most that one read returns; 0: all    */
static int interruptions; /* before each read, and each opened file    */

/* Whether a call is one that fails or is interrupted; errno says how. */
static bool fails(void)
{
    const bool now = atomic_fetch_sub(&calls_left, 1) == 0;
    if (now)
        errno = failure;
    return now;
}

static bool is_interrupted(void)
{
    static _Thread_local int interrupted;
    if (interrupted++ < interruptions) {
        errno = EINTR;
        return true;
    }
    interrupted = 0;
    return false;
}

#define WRAP_READ(name)                                                                        \
    ssize_t __real_##name(int descriptor, void *dst, size_t count, off_t at);                  \
    ssize_t __wrap_##name(int descriptor, void *dst, size_t count, off_t at);                  \
    ssize_t __wrap_##name(int descriptor, void *dst, size_t count, off_t at)                   \
    {                                                                                          \
        if (is_interrupted() || fails())                                                       \
            return -1;                                                                         \
        return __real_##name(descriptor, dst, piece > 0 && count > piece ? piece : count, at); \
    }
WRAP_READ(pread)
WRAP_READ(pread64)

#define WRAP_EXAMINE(name)                                \
    int __real_##name(int descriptor, struct stat *info); \
    int __wrap_##name(int descriptor, struct stat *info); \
    int __wrap_##name(int descriptor, struct stat *info)  \
    {                                                     \
        if (fails())                                      \
            return -1;                                    \
        return __real_##name(descriptor, info);           \
    }
WRAP_EXAMINE(fstat)
WRAP_EXAMINE(fstat64)

#define WRAP_OPEN(name)                                  \
    int __real_##name(const char *path, int flags, ...); \
    int __wrap_##name(const char *path, int flags, ...); \
    int __wrap_##name(const char *path, int flags, ...)  \
    {                                                    \
        if (is_interrupted() || fails())                 \
            return -1;                                   \
        return __real_##name(path, flags);               \
    }
WRAP_OPEN(open)
WRAP_OPEN(open64)

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
            assert_int_equal(memory_fail_no_more(), status != SWIN_OK);
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

static void every_call_of_the_system_may_fail(void **state)
{
    (void)state;
    static const int errors[] = {EIO, ENOMEM};
    const char *const names[] = {"model.safetensors", "a.safetensors.index.json"};
    long failed = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        for (int e = 0; e < 2; e++) {
            bool reached = true;
            for (long call = 0; reached; call++) {
                swin_model *model = NULL;
                swin_error err;
                calls_left = call;
                failure = errors[e];
                const swin_status status = swin_model_open(in_directory(names[i]), NULL, &model, &err);
                reached = calls_left < 0;
                calls_left = -1;
                /* A config.json that cannot be read says nothing, unless memory is what lacks; the V2 needs it. */
                const bool possible = status == (e == 0 ? SWIN_ERR_IO : SWIN_ERR_NO_MEMORY) ||
                                      (e == 0 && status == (i == 0 ? SWIN_ERR_MISMATCH : SWIN_OK));
                if (reached ? !possible : status != SWIN_OK || call < 100)
                    fail_msg("%s, call %ld, error %d: status %d, %s", names[i], call, errors[e], (int)status,
                             err.message);
                assert_int_equal(status == SWIN_OK, model != NULL);
                swin_model_destroy(model);
                assert_int_equal(memory_live_blocks(), 0);
                failed += reached;
            }
        }
    }
    print_message("%ld calls failed\n", failed);
}

static void reads_may_come_in_pieces(void **state)
{
    (void)state;
    swin_model *model;
    swin_error err;
    swin_model_info info;
    piece = 7;
    interruptions = 2;
    const swin_status status = swin_model_open(in_directory("a.safetensors.index.json"), NULL, &model, &err);
    piece = 0;
    interruptions = 0;
    if (status != SWIN_OK)
        fail_msg("%s", err.message);
    assert_int_equal(swin_model_get_info(model, &info, sizeof info, NULL), SWIN_OK);
    assert_int_equal(info.nonfinite_count, 0);
    swin_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_call_of_the_system_may_fail),
        cmocka_unit_test(reads_may_come_in_pieces),
    };
    return cmocka_run_group_tests_name("opening without memory or files", tests, set_up, tear_down);
}
