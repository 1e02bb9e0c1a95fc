/* SPDX-License-Identifier: MIT */
/* Position biases against what published code makes of them; published.py wrote the files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory_counted.h"
#include "model/position_bias.h"
#include "model/resample.h"
#include "naming_writer.h"
#include "weights/checkpoint.h"
#include "weights/safetensors.h"

#define SEED 11

static sw_checkpoint open_published(const char *name)
{
    sw_checkpoint checkpoint;
    swin_error err = {0};
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.safetensors", PUBLISHED_DIRECTORY, name);
    if (sw_checkpoint_open(path, SW_DEFAULT_MAX_HEADER_BYTES, &checkpoint, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    return checkpoint;
}

static float *read_tensor(const sw_checkpoint *checkpoint, const char *name)
{
    const sw_tensor *tensor = sw_tensor_table_find(&checkpoint->table, name);
    if (tensor == NULL)
        fail_msg("no tensor %s", name);
    float *values = malloc((size_t)tensor->elements * sizeof *values + 1);
    assert_non_null(values);
    assert_int_equal(sw_checkpoint_read(checkpoint, tensor, 0, (size_t)tensor->elements, values, NULL), SWIN_OK);
    return values;
}

/* Compares every table of a rule. Both sides compute in double and are rounded to float32 here, which may differ by one
 * unit in the last place of values below 4; `extra` is what the published code loses besides. */
static size_t check_rule(const char *file, const char *name, sw_resample_rule rule, double extra)
{
    sw_checkpoint checkpoint = open_published(file);
    size_t count = 0;
    for (size_t i = 0; i < checkpoint.table.count; i++) {
        int old_rows, old_columns, rows, columns, length = 0;
        const char *source = checkpoint.table.tensors[i].name;
        char format[64], expect[128];
        snprintf(format, sizeof format, "%s.%%dx%%d.%%dx%%d.source%%n", name);
        if (sscanf(source, format, &old_rows, &old_columns, &rows, &columns, &length) != 4 || length == 0)
            continue;
        snprintf(expect, sizeof expect, "%.*sexpect", (int)strlen(source) - 6, source);
        float *table = read_tensor(&checkpoint, source), *wanted = read_tensor(&checkpoint, expect);
        const size_t entries = 2 * (size_t)rows * (size_t)columns;
        float *made = malloc(entries * sizeof *made);
        assert_non_null(made);
        assert_int_equal(sw_resample_table(rule, table, 2, old_rows, old_columns, rows, columns, made, NULL), SWIN_OK);
        for (size_t e = 0; e < entries; e++) {
            const double difference = fabs((double)made[e] - (double)wanted[e]);
            if (!(difference <= 0x1p-22 + extra))
                fail_msg("%s: entry %zu is %.9g, expected %.9g", source, e, (double)made[e], (double)wanted[e]);
        }
        free(table);
        free(wanted);
        free(made);
        count++;
    }
    sw_checkpoint_close(&checkpoint);
    return count;
}

static void bicubic_tables_are_torchs(void **state)
{
    (void)state;
    assert_int_equal(check_rule("torch", "bicubic", SW_RESAMPLE_BICUBIC, 0.0), 9);
}

/* The geometric grids reach 13 steps; a spline through values of size 1 moves by less than 4 per step, so positions
 * that agree to 1e-12 change nothing. */
static void spline_tables_are_scipys(void **state)
{
    (void)state;
    assert_int_equal(check_rule("scipy", "spline", SW_RESAMPLE_SPLINE, 0.0), 7);
}

/* timm computes in float32: positions up to 13 are off by 2^-21, between entries that differ by up to 2.6 and lie at
 * least 1 apart; then weights and sums of products below 4 are rounded, some six times, by 2^-22 each. */
static void linear_tables_are_timms(void **state)
{
    (void)state;
    assert_int_equal(check_rule("torch", "linear", SW_RESAMPLE_LINEAR, 2.0 * 2.6 * 0x1p-21 + 6.0 * 0x1p-22), 11);
}

static void continuous_biases_are_timms(void **state)
{
    (void)state;
    static const int cases[][3] = {{4, 4, 0}, {8, 8, 6}, {16, 16, 12}, {4, 6, 0}, {2, 2, 0}, {7, 7, 12}};
    sw_checkpoint checkpoint = open_published("torch");
    float *weight1 = read_tensor(&checkpoint, "continuous.weight1");
    float *bias1 = read_tensor(&checkpoint, "continuous.bias1");
    float *weight2 = read_tensor(&checkpoint, "continuous.weight2");

    /* timm's coordinates, of size 1.21 at most, are float32 numbers; how far that reaches follows from the network: the
     * ReLU passes on no more than it gets, the sigmoid's slope is at most 1/4. Sixteen at most are rounded to float32.
     * */
    double reach = 0.0;
    for (int head = 0; head < 3; head++) {
        double sum = 0.0;
        for (int k = 0; k < SW_CPB_HIDDEN; k++)
            sum += fabs((double)weight2[head * SW_CPB_HIDDEN + k]) *
                   (fabs((double)weight1[2 * k]) + fabs((double)weight1[2 * k + 1]));
        reach = fmax(reach, 16.0 / 4.0 * sum);
    }
    const double tolerance = reach * 4.0 * 0x1p-24 + 0x1p-20;

    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const int rows = cases[c][0], columns = cases[c][1], pretrained = cases[c][2];
        const size_t entries = 3 * (size_t)(2 * rows - 1) * (size_t)(2 * columns - 1);
        const sw_cpb cpb = {weight1, bias1, weight2, 3, {pretrained, pretrained}};
        char name[64];
        snprintf(name, sizeof name, "continuous.%dx%d.%d", rows, columns, pretrained);
        float *wanted = read_tensor(&checkpoint, name), *made = malloc(entries * sizeof *made);
        assert_non_null(made);
        assert_int_equal(sw_cpb_bias(&cpb, rows, columns, made, NULL), SWIN_OK);
        for (size_t e = 0; e < entries; e++) {
            const double difference = fabs((double)made[e] - (double)wanted[e]);
            if (!(difference <= tolerance))
                fail_msg("%s: entry %zu is %.9g, expected %.9g", name, e, (double)made[e], (double)wanted[e]);
        }
        free(wanted);
        free(made);
    }
    free(weight1);
    free(bias1);
    free(weight2);
    sw_checkpoint_close(&checkpoint);
}

/* A window of one token has one distance, at which the published formula divides zero by zero. */
static void a_window_of_one_token_has_a_bias(void **state)
{
    (void)state;
    swin_config config = small_v2();
    config.window[0][0] = config.window[0][1] = 1;
    config.pretrained_window[0][0] = config.pretrained_window[0][1] = 0;
    sw_model *model = must_create(&config, SEED);
    float narrow[1], wide[7];
    assert_int_equal(sw_model_position_bias(model, 0, 0, 1, 1, narrow, NULL), SWIN_OK);
    assert_int_equal(sw_model_position_bias(model, 0, 0, 1, 4, wide, NULL), SWIN_OK);
    assert_true(narrow[0] > 0.0f && narrow[0] < 16.0f);
    assert_true(narrow[0] == wide[3]);
    for (int i = 0; i < 7; i++)
        assert_true(isfinite(wide[i]));
    sw_model_destroy(model);
}

/* Rows come first: a window of one row looks along columns. */
static void entries_are_ordered_by_row_then_column(void **state)
{
    (void)state;
    const swin_config config = small_v1();
    sw_model *model = must_create(&config, SEED);
    float bias[7 * 7 * 1];
    assert_int_equal(sw_model_position_bias(model, 0, 0, 4, 4, bias, NULL), SWIN_OK);
    tensor_file file = {0};
    naming_write(NAMING_DETECTION, &config, SEED, "", &file);
    tensor_file_write(&file, in_directory("a"));
    tensor_file_free(&file);
    sw_checkpoint checkpoint;
    assert_int_equal(sw_checkpoint_open(in_directory("a"), SW_DEFAULT_MAX_HEADER_BYTES, &checkpoint, NULL), SWIN_OK);
    float *table = read_tensor(&checkpoint, "layers.0.blocks.0.attn.relative_position_bias_table");
    assert_memory_equal(bias, table, sizeof bias);
    free(table);
    float *two = read_tensor(&checkpoint, "layers.1.blocks.0.attn.relative_position_bias_table");
    float heads[2 * 25];
    assert_int_equal(sw_model_position_bias(model, 1, 0, 3, 3, heads, NULL), SWIN_OK);
    for (int i = 0; i < 25; i++)
        assert_true(heads[i] == two[2 * i] && heads[25 + i] == two[2 * i + 1]);
    free(two);
    sw_checkpoint_close(&checkpoint);
    sw_model_destroy(model);
}

/* Which rule a model resizes its tables by. */
static void the_rule_follows_the_lineage(void **state)
{
    (void)state;
    static const struct {
        enum naming naming;
        int32_t lineage; /* 0: the naming's own */
        sw_resample_rule rule;
    } cases[] = {
        {NAMING_DETECTION, 0, SW_RESAMPLE_BICUBIC},
        {NAMING_MICROSOFT, 0, SW_RESAMPLE_BICUBIC},
        {NAMING_MMDETECTION, 0, SW_RESAMPLE_BICUBIC},
        {NAMING_HUGGINGFACE4, 0, SW_RESAMPLE_BICUBIC},
        {NAMING_TORCHVISION, 0, SW_RESAMPLE_BICUBIC},
        {NAMING_SIMMIM, 0, SW_RESAMPLE_SPLINE},
        {NAMING_MMPRETRAIN, 0, SW_RESAMPLE_SPLINE},
        {NAMING_TIMM, 0, SW_RESAMPLE_LINEAR},
        {NAMING_TIMM, SWIN_LINEAGE_DETECTION, SW_RESAMPLE_BICUBIC},
        {NAMING_DETECTION, SWIN_LINEAGE_TIMM, SW_RESAMPLE_LINEAR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const swin_config config = small_v1();
        swin_model_params params = {.struct_size = sizeof params, .lineage = cases[i].lineage};
        float made[13 * 13], wanted[13 * 13], source[9 * 9];
        /* Stage 2 has windows of 5, its six heads' tables lie one behind the other in a bias. */
        params.window[2][0] = params.window[2][1] = 7;
        tensor_file file = {0};
        naming_write(cases[i].naming, &config, SEED, "", &file);
        tensor_file_write(&file, in_directory("a"));
        tensor_file_free(&file);
        sw_model *model = must_open(in_directory("a"), &params);
        swin_model_info info;
        sw_model_info(model, &info);
        assert_int_equal(sw_model_config(model)->window[2][0], 7);
        assert_int_equal(sw_model_config(model)->window[1][0], 3);
        float all[6 * 13 * 13], plain[6 * 9 * 9];
        assert_int_equal(sw_model_position_bias(model, 2, 1, 7, 7, all, NULL), SWIN_OK);
        assert_int_equal(sw_model_position_bias(model, 2, 1, 5, 5, plain, NULL), SWIN_OK);
        for (int head = 0; head < 6; head++) {
            memcpy(source, plain + head * 81, sizeof source);
            assert_int_equal(sw_resample_table(cases[i].rule, source, 1, 9, 9, 13, 13, wanted, NULL), SWIN_OK);
            memcpy(made, all + head * 169, sizeof made);
            assert_memory_equal(made, wanted, sizeof made);
        }
        sw_model_destroy(model);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    static const float src[25] = {1.0f};
    float dst[81];
    for (int rule = 0; rule < 3; rule++) {
        long count = 0;
        swin_status status;
        do {
            memory_fail_after(count++);
            status = sw_resample_table((sw_resample_rule)rule, src, 1, 5, 5, 9, 9, dst, NULL);
            assert_int_equal(memory_fail_no_more(), status != SWIN_OK);
            assert_int_equal(memory_live_blocks(), 0);
            assert_true(status == SWIN_OK || status == SWIN_ERR_NO_MEMORY);
        } while (status != SWIN_OK);
        assert_in_range(count, 4, 6);
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
        TEST(bicubic_tables_are_torchs),
        TEST(spline_tables_are_scipys),
        TEST(linear_tables_are_timms),
        TEST(continuous_biases_are_timms),
        TEST(a_window_of_one_token_has_a_bias),
        TEST(entries_are_ordered_by_row_then_column),
        TEST(the_rule_follows_the_lineage),
        TEST(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
