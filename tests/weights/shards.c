/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory_counted.h"
#include "tensor_file.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"

#define LIMIT SW_DEFAULT_MAX_HEADER_BYTES

static void write_index(const char *text)
{
    write_bytes(in_directory("model.safetensors.index.json"), text, strlen(text));
}

static const char *index_path(void)
{
    return in_directory("model.safetensors.index.json");
}

static void must_fail(swin_status expected, const char *words)
{
    sw_checkpoint checkpoint;
    swin_error err = {0};
    const swin_status status = sw_checkpoint_open(index_path(), LIMIT, &checkpoint, &err);
    if (status != expected || strstr(err.message, words) == NULL)
        fail_msg("status %d, expected %d with \"%s\": %s", status, expected, words, err.message);
    assert_null(checkpoint.files);
    assert_int_equal(memory_live_blocks(), 0);
}

static int set_up(void **state)
{
    (void)state;
    static const float a = 1.0f, b[2] = {2.0f, 3.0f}, c = 4.0f;
    make_directory();
    tensor_file first = {0}, second = {0};
    tensor_file_add_f32(&first, "a", &a, 1, 1);
    tensor_file_add_f32(&first, "c", &c, 1, 1);
    tensor_file_add_f32(&second, "b", b, 1, 2);
    tensor_file_write(&first, in_directory("one.safetensors"));
    tensor_file_write(&second, in_directory("two.safetensors"));
    tensor_file_free(&first);
    tensor_file_free(&second);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_directory();
    return memory_live_blocks() == 0 ? 0 : -1;
}

#define GOOD                                                                                                         \
    "{\"metadata\":{\"total_size\":16},\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\","          \
    "\"c\":\"one.safetensors\"}}"

static void tensors_of_all_shards_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t count;
        float values[2];
    } cases[] = {{"a", 1, {1.0f}}, {"b", 2, {2.0f, 3.0f}}, {"c", 1, {4.0f}}};
    sw_checkpoint checkpoint;
    write_index(GOOD);
    assert_int_equal(sw_checkpoint_open(index_path(), LIMIT, &checkpoint, NULL), SWIN_OK);
    assert_int_equal(checkpoint.file_count, 2);
    assert_int_equal(checkpoint.table.count, 3);
    for (int i = 0; i < 3; i++) {
        float values[2];
        const sw_tensor *tensor = sw_tensor_table_find(&checkpoint.table, cases[i].name);
        assert_non_null(tensor);
        assert_int_equal(sw_checkpoint_read(&checkpoint, tensor, 0, cases[i].count, values, NULL), SWIN_OK);
        assert_memory_equal(values, cases[i].values, cases[i].count * sizeof(float));
    }
    sw_checkpoint_close(&checkpoint);
}

static void broken_indices_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        swin_status status;
        const char *words;
    } cases[] = {
        {"", SWIN_ERR_FORMAT, "broken"},
        {"[]", SWIN_ERR_FORMAT, "object"},
        {"{}", SWIN_ERR_FORMAT, "weight_map"},
        {"{\"weight_map\":[]}", SWIN_ERR_FORMAT, "weight_map"},
        {"{\"weight_map\":{}}", SWIN_ERR_FORMAT, "weight_map"},
        {"{\"weight_map\":{\"a\":1}}", SWIN_ERR_FORMAT, "\"a\""},
        {"{\"weight_map\":{\"a\":\"\"}}", SWIN_ERR_FORMAT, "plain file name"},
        {"{\"weight_map\":{\"a\":\"..\"}}", SWIN_ERR_FORMAT, "plain file name"},
        {"{\"weight_map\":{\"a\":\"../one.safetensors\"}}", SWIN_ERR_FORMAT, "plain file name"},
        {"{\"weight_map\":{\"a\":\"/etc/passwd\"}}", SWIN_ERR_FORMAT, "plain file name"},
        {"{\"weight_map\":{\"a\":\"x\\\\one.safetensors\"}}", SWIN_ERR_FORMAT, "plain file name"},
        {"{\"weight_map\":{\"a\":\"three.safetensors\"}}", SWIN_ERR_IO, "three.safetensors"},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"a\":\"one.safetensors\"}}", SWIN_ERR_FORMAT, "broken"},
        /* The index leaves out c, puts a in the wrong shard, or knows a tensor that is nowhere. */
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}}", SWIN_ERR_FORMAT, "\"c\""},
        {"{\"weight_map\":{\"a\":\"two.safetensors\",\"b\":\"two.safetensors\",\"c\":\"one.safetensors\"}}",
         SWIN_ERR_FORMAT, "\"a\""},
        {"{\"weight_map\":{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\",\"c\":\"one.safetensors\","
         "\"d\":\"two.safetensors\"}}", SWIN_ERR_FORMAT, "\"d\""},
        {"{\"weight_map\":{\"a\":{\"b\":{\"c\":{}}}}}", SWIN_ERR_FORMAT, "nests"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_index(cases[i].text);
        must_fail(cases[i].status, cases[i].words);
    }
}

static void the_same_tensor_in_two_shards_is_refused(void **state)
{
    (void)state;
    static const float a = 9.0f;
    tensor_file third = {0};
    tensor_file_add_f32(&third, "a", &a, 1, 1);
    tensor_file_write(&third, in_directory("three.safetensors"));
    tensor_file_free(&third);
    write_index("{\"weight_map\":{\"a\":\"one.safetensors\",\"c\":\"one.safetensors\",\"b\":\"three.safetensors\"}}");
    must_fail(SWIN_ERR_FORMAT, "\"a\" occurs twice");
}

/* The second shard is not even looked for. */
static void shards_are_read_as_far_as_the_index_goes(void **state)
{
    (void)state;
    tensor_file large = {0};
    for (int i = 0; i < 3; i++) {
        const char name[2] = {(char)('p' + i), '\0'};
        tensor_file_add_f32(&large, name, NULL, 1, 1);
    }
    tensor_file_write(&large, in_directory("large.safetensors"));
    tensor_file_free(&large);
    write_index("{\"weight_map\":{\"p\":\"large.safetensors\",\"q\":\"missing.safetensors\"}}");
    must_fail(SWIN_ERR_FORMAT, "tensor \"q\" lies in large.safetensors");
}

/* A path may be no more than a name. */
static void an_index_is_found_in_the_working_directory(void **state)
{
    (void)state;
    sw_checkpoint checkpoint;
    char *before = getcwd(NULL, 0);
    write_index(GOOD);
    assert_non_null(before);
    assert_int_equal(chdir(in_directory("")), 0);
    const swin_status status = sw_checkpoint_open("model.safetensors.index.json", LIMIT, &checkpoint, NULL);
    assert_int_equal(chdir(before), 0);
    free(before);
    assert_int_equal(status, SWIN_OK);
    assert_int_equal(checkpoint.file_count, 2);
    sw_checkpoint_close(&checkpoint);
}

static void a_broken_shard_is_named(void **state)
{
    (void)state;
    write_index(GOOD);
    assert_int_equal(truncate(in_directory("two.safetensors"), 40), 0);
    must_fail(SWIN_ERR_FORMAT, "two.safetensors");
    write_bytes(in_directory("two.safetensors"), "PK\3\4", 4);
    must_fail(SWIN_ERR_FORMAT, "python3 -m libswin convert");
    assert_int_equal(unlink(in_directory("two.safetensors")), 0);
    must_fail(SWIN_ERR_IO, "No such file");
    make_subdirectory("two.safetensors");
    must_fail(SWIN_ERR_IO, "two.safetensors is a directory, expected a regular file");
}

static void a_long_index_hits_the_limit(void **state)
{
    (void)state;
    sw_checkpoint checkpoint;
    write_index(GOOD);
    assert_int_equal(sw_checkpoint_open(index_path(), strlen(GOOD) - 1, &checkpoint, NULL), SWIN_ERR_LIMIT);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    sw_checkpoint checkpoint;
    long count = 0;
    write_index(GOOD);
    for (;; count++) {
        memory_fail_after(count);
        const swin_status status = sw_checkpoint_open(index_path(), LIMIT, &checkpoint, NULL);
        assert_int_equal(memory_fail_no_more(), status != SWIN_OK);
        if (status == SWIN_OK)
            break;
        assert_int_equal(status, SWIN_ERR_NO_MEMORY);
        assert_int_equal(memory_live_blocks(), 0);
    }
    assert_true(count > 8);
    sw_checkpoint_close(&checkpoint);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tensors_of_all_shards_are_read),
        TEST(broken_indices_are_refused),
        TEST(the_same_tensor_in_two_shards_is_refused),
        TEST(shards_are_read_as_far_as_the_index_goes),
        TEST(an_index_is_found_in_the_working_directory),
        TEST(a_broken_shard_is_named),
        TEST(a_long_index_hits_the_limit),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
