/* SPDX-License-Identifier: MIT */
/* What is read: values that are no numbers, files that change meanwhile, memory that is not there; and bad parameters.
 * */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "memory_counted.h"
#include "naming_writer.h"

#define SEED 7

static tensor_file detection_file(int version, const char *prefix)
{
    swin_config config = version == 1 ? small_v1() : small_v2();
    tensor_file file = {0};
    config.out_norm = 15;
    naming_write(NAMING_DETECTION, &config, SEED, prefix, &file);
    return file;
}

static const char *write_and_free(tensor_file *file)
{
    tensor_file_write(file, in_directory("a"));
    tensor_file_free(file);
    return in_directory("a");
}

static void values_that_are_no_numbers_are_counted_or_refused(void **state)
{
    (void)state;
    float values[24];
    swin_model_info info;
    tensor_file file = detection_file(1, "");
    for (int i = 0; i < 24; i++)
        values[i] = i % 3 == 0 ? NAN : INFINITY;
    tensor_file_remove(&file, "layers.1.blocks.0.norm2.bias");
    tensor_file_add_f32(&file, "layers.1.blocks.0.norm2.bias", values, 1, 24);
    sw_model *model = must_open(write_and_free(&file), NULL);
    const sw_tensor_id id = {SW_NORM2_BIAS, 1, 0};
    for (int time = 0; time < 3; time++) {
        for (int32_t first = 0; first < 24; first += 8)
            assert_int_equal(sw_model_read(model, id, first, 8, values, NULL), SWIN_OK);
        sw_model_info(model, &info);
        assert_int_equal(info.nonfinite_count, 24);
    }
    sw_model_destroy(model);

    file = detection_file(2, "");
    const float scales[6] = {2.0f, 9.0f, -3.0f, NAN, 1.0f, 0.0f};
    tensor_file_remove(&file, "layers.2.blocks.0.attn.logit_scale");
    tensor_file_add_f32(&file, "layers.2.blocks.0.attn.logit_scale", scales, 3, 6, 1, 1);
    model = must_open(write_and_free(&file), NULL);
    swin_error err = {0};
    const sw_tensor_id scale = {SW_LOGIT_SCALE, 2, 0};
    assert_int_equal(sw_model_read(model, scale, 0, 6, values, &err), SWIN_ERR_MISMATCH);
    assert_non_null(strstr(err.message, "\"layers.2.blocks.0.attn.logit_scale\""));
    /* exp(min(stored, ln 100)). */
    assert_int_equal(sw_model_read(model, scale, 0, 3, values, NULL), SWIN_OK);
    assert_true(fabs((double)values[0] - exp(2.0)) < 1e-6 && values[1] == 100.0f);
    assert_true(fabs((double)values[2] - exp(-3.0)) < 1e-8);
    sw_model_destroy(model);
}

/* Of the tensors that are used: buffers of integers do not count. */
static void the_type_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *dtype;
        size_t bytes;
    } types[] = {{"F16", 2}, {"BF16", 2}, {"F64", 8}};
    for (int t = 0; t < 3; t++) {
        swin_model_info info;
        tensor_file file = detection_file(1, "");
        tensor_file_retype(&file, "layers.0.blocks.0.norm1.weight", types[t].dtype, types[t].bytes);
        tensor_file_write(&file, in_directory("a"));
        sw_model *model = must_open(in_directory("a"), NULL);
        sw_model_info(model, &info);
        assert_string_equal(info.dtype, "mixed");
        sw_model_destroy(model);
        for (size_t i = 0; i < file.count; i++) {
            const char *name = tensor_file_name(&file, i);
            if (strstr(name, "relative_position_index") == NULL)
                tensor_file_retype(&file, name, types[t].dtype, types[t].bytes);
        }
        model = must_open(write_and_free(&file), NULL);
        sw_model_info(model, &info);
        assert_string_equal(info.dtype, types[t].dtype);
        sw_model_destroy(model);
    }
}

static void a_file_that_changes_is_noticed(void **state)
{
    (void)state;
    float values[36 * 12];
    tensor_file file = detection_file(1, "");
    tensor_file_write(&file, in_directory("a"));
    sw_model *model = must_open(in_directory("a"), NULL);
    const sw_tensor_id id = {SW_QKV_WEIGHT, 0, 0};
    assert_int_equal(sw_model_read(model, id, 0, 36, values, NULL), SWIN_OK);
    tensor_file_remove(&file, "norm3.bias");
    tensor_file_write(&file, in_directory("a"));
    assert_int_equal(sw_model_read(model, id, 0, 36, values, NULL), SWIN_ERR_IO);
    float bias[49];
    assert_int_equal(sw_model_position_bias(model, 0, 0, 4, 4, bias, NULL), SWIN_ERR_IO);
    sw_model_destroy(model);
    tensor_file_free(&file);
}

static void bad_params_are_refused(void **state)
{
    (void)state;
    tensor_file file = detection_file(2, "");
    tensor_file_write(&file, in_directory("a"));
    tensor_file_free(&file);
    static const struct {
        swin_model_params params;
        const char *words;
    } cases[] = {
        {{.version = 3}, "params.version"},
        {{.version = -1}, "params.version"},
        {{.lineage = 7}, "params.lineage"},
        {{.lineage = -1}, "params.lineage"},
        {{.out_norm = 3}, "params.out_norm"},
        {{.window = {{0, 0}, {0, 7}}}, "window of stage 1"},
        {{.window = {{-7, -7}}}, "window of stage 0"},
        {{.window = {{129, 7}}}, "window of stage 0"},
        {{.pretrained_window = {{0, 0}, {0, 0}, {7, 0}}}, "pretrained_window of stage 2"},
        {{.image_size = {224, 0}}, "image_size"},
        {{.image_size = {-1, -1}}, "image_size"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        must_refuse(in_directory("a"), &cases[i].params, SWIN_ERR_ARGUMENT, cases[i].words);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const enum naming namings[] = {NAMING_DETECTION, NAMING_MMDETECTION, NAMING_HUGGINGFACE5, NAMING_PADDLE};
    for (int n = 0; n < 4; n++) {
        swin_config config = n == 1 ? small_v2() : small_v1();
        config.out_norm = n == 2 ? 0 : 15;
        tensor_file file = {0};
        naming_write(namings[n], &config, SEED, "", &file);
        tensor_file_write(&file, in_directory("a"));
        tensor_file_free(&file);
        write_bytes(in_directory("config.json"), "{\"model_type\":\"swin\"}", 21);
        sw_model *model = NULL;
        long count = 0;
        for (;; count++) {
            swin_error err = {0};
            memory_fail_after(count);
            const swin_status status = sw_model_open(in_directory("a"), NULL, &model, &err);
            assert_int_equal(memory_fail_no_more(), status != SWIN_OK);
            if (status == SWIN_OK)
                break;
            assert_int_equal(status, SWIN_ERR_NO_MEMORY);
            assert_int_equal(err.status, SWIN_ERR_NO_MEMORY);
            assert_null(model);
            assert_int_equal(memory_live_blocks(), 0);
        }
        assert_true(count > 10);

        /* And in every kind of read. */
        const size_t live = memory_live_blocks();
        float values[96 * 48], bias[81 * 6];
        for (count = 0; count < 20; count++) {
            memory_fail_after(count);
            swin_status status = sw_model_read(model, (sw_tensor_id){SW_MERGE_WEIGHT, 2, 0}, 3, 10, values, NULL);
            if (status == SWIN_OK)
                status = sw_model_read(model, (sw_tensor_id){SW_MERGE_NORM_BIAS, 2, 0}, 3, 10, values, NULL);
            if (status == SWIN_OK)
                status = sw_model_position_bias(model, 2, 1, 4, 5, bias, NULL);
            assert_int_equal(memory_fail_no_more(), status != SWIN_OK);
            assert_int_equal(memory_live_blocks(), live);
            if (status == SWIN_OK)
                break;
            assert_int_equal(status, SWIN_ERR_NO_MEMORY);
        }
        assert_in_range(count, 1, 19);
        sw_model_destroy(model);
    }
}

static int set_up(void **state)
{
    (void)state;
    make_directory();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_directory();
    return memory_live_blocks() == 0 ? 0 : -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_that_are_no_numbers_are_counted_or_refused),
        TEST(the_type_is_told),
        TEST(a_file_that_changes_is_noticed),
        TEST(bad_params_are_refused),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
