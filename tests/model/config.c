/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "memory_counted.h"
#include "model/model.h"

static swin_config tiny(void)
{
    swin_config config;
    assert_int_equal(sw_config_preset(&config, "swin_tiny_patch4_window7_224", NULL), SWIN_OK);
    return config;
}

static swin_config tiny_v2(void)
{
    swin_config config;
    assert_int_equal(sw_config_preset(&config, "swinv2_tiny_patch4_window8_256", NULL), SWIN_OK);
    return config;
}

static void every_preset_is_possible_and_recognised(void **state)
{
    (void)state;
    size_t count = 0;
    for (const char *name; (name = sw_config_preset_name(count)) != NULL; count++) {
        swin_config config, twin;
        swin_error err = {0};
        assert_int_equal(sw_config_preset(&config, name, &err), SWIN_OK);
        assert_int_equal(sw_config_check(&config, &err), SWIN_OK);
        assert_int_equal(config.lineage, SWIN_LINEAGE_DETECTION);
        assert_int_equal(config.out_norm, 0);
        /* The nearest preset is of the same sizes, if not of the same name. */
        const char *nearest = sw_config_nearest_preset(&config);
        assert_int_equal(sw_config_preset(&twin, nearest, &err), SWIN_OK);
        assert_memory_equal(twin.window, config.window, sizeof config.window);
        assert_int_equal(twin.embed_dim, config.embed_dim);
        for (size_t other = 0; other < count; other++)
            assert_string_not_equal(name, sw_config_preset_name(other));
    }
    assert_true(count > 30);
    assert_null(sw_config_preset_name(SIZE_MAX));
}

static void unknown_preset_is_refused(void **state)
{
    (void)state;
    swin_config config;
    swin_error err = {0};
    assert_int_equal(sw_config_preset(&config, "swin_tiny", &err), SWIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "\"swin_tiny\""));
}

/* Parameters without classifier and final norm, published (see the papers' repositories) or counted with their code. */
static void parameter_counts_are_the_published_ones(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t out_norm;
        uint64_t count;
    } cases[] = {
        {"swin_tiny_patch4_window7_224", 15, 27520698},  {"swin_small_patch4_window7_224", 15, 48838602},
        {"swin_base_patch4_window7_224", 15, 86745016},  {"swin_large_patch4_window7_224", 15, 194998164},
        /* 28 347 154 with a head of 1000 classes and the final norm. */
        {"swinv2_tiny_patch4_window8_256", 0, 28347154 - 769000 - 1536},
        {"swinv2_base_patch4_window8_256", 0, 87918816 - 1025000 - 2048},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        swin_config config;
        sw_model *model;
        swin_model_info info;
        assert_int_equal(sw_config_preset(&config, cases[i].name, NULL), SWIN_OK);
        config.out_norm = cases[i].out_norm;
        assert_int_equal(sw_model_create_random(&config, 1, &model, NULL), SWIN_OK);
        sw_model_info(model, &info);
        assert_int_equal(info.parameter_count, cases[i].count);
        assert_string_equal(info.name, cases[i].name);
        assert_string_equal(info.dialect, "random");
        sw_model_destroy(model);
    }
}

/* One change of a good configuration, and a word of the message that it must draw. */
static void impossible_configurations_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        size_t offset;
        int32_t value;
        int version;
    } cases[] = {
#define FIELD(field) offsetof(swin_config, field)
        {"version", FIELD(version), 0, 1},
        {"version", FIELD(version), 3, 1},
        {"lineage", FIELD(lineage), 7, 1},
        {"lineage", FIELD(lineage), -1, 1},
        {"patch_size", FIELD(patch_size), 0, 1},
        {"patch_size", FIELD(patch_size), 65, 1},
        {"embed_dim", FIELD(embed_dim), 0, 1},
        {"embed_dim", FIELD(embed_dim), INT32_MAX, 1},
        {"stages", FIELD(stages), 0, 1},
        {"stages", FIELD(stages), 6, 1},
        {"stage 3", FIELD(stages), 3, 1},
        {"depths", FIELD(depths[2]), 0, 1},
        {"depths", FIELD(depths[2]), INT32_MAX, 1},
        {"heads", FIELD(heads[1]), 0, 1},
        {"heads", FIELD(heads[1]), 5, 1},
        {"window", FIELD(window[0][0]), 0, 1},
        {"window", FIELD(window[3][1]), 129, 1},
        {"pretrained_window", FIELD(pretrained_window[0][0]), 7, 1},
        {"pretrained_window", FIELD(pretrained_window[0][0]), 7, 2},
        {"qkv_bias", FIELD(qkv_bias), 2, 1},
        {"patch_norm", FIELD(patch_norm), -1, 1},
        {"out_norm", FIELD(out_norm), 16, 1},
        {"absolute_position", FIELD(absolute_position[0]), 3, 1},
        {"image_size", FIELD(image_size[0]), -1, 1},
        {"block_norm_period", FIELD(block_norm_period), 6, 1},
        {"block_norm_period", FIELD(block_norm_period), -6, 2},
        {"block_norm_last", FIELD(block_norm_last), 16, 2},
#undef FIELD
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        swin_config config = cases[i].version == 1 ? tiny() : tiny_v2();
        swin_error err = {0};
        sw_model *model;
        memcpy((char *)&config + cases[i].offset, &cases[i].value, sizeof cases[i].value);
        assert_int_equal(sw_config_check(&config, &err), SWIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, cases[i].word));
        assert_int_equal(sw_model_create_random(&config, 1, &model, NULL), SWIN_ERR_ARGUMENT);
        assert_null(model);
    }
    static const double ratios[] = {0.0, -4.0, 1e-3, 1e9, 0.0 / 0.0, 1.0 / 0.0};
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        swin_config config = tiny();
        swin_error err = {0};
        config.mlp_ratio = ratios[i];
        assert_int_equal(sw_config_check(&config, &err), SWIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "mlp_ratio"));
    }
    swin_config config = tiny_v2();
    config.pretrained_window[1][0] = config.pretrained_window[1][1] = 1;
    assert_int_equal(sw_config_check(&config, NULL), SWIN_ERR_ARGUMENT);
}

static void block_norms_follow_the_period(void **state)
{
    (void)state;
    swin_config config;
    assert_int_equal(sw_config_preset(&config, "swinv2_huge_patch4_window12_192", NULL), SWIN_OK);
    for (int32_t stage = 0; stage < 4; stage++) {
        for (int32_t block = 0; block < config.depths[stage]; block++)
            assert_int_equal(sw_config_has_block_norm(&config, stage, block), stage == 2 && block % 6 == 5);
    }
    config.block_norm_last = 1 << 3;
    assert_true(sw_config_has_block_norm(&config, 3, 1));
    assert_false(sw_config_has_block_norm(&config, 3, 0));
}

/* Values that any machine must make: they follow from the formula in random.h, computed apart. */
static void random_weights_are_pinned(void **state)
{
    (void)state;
    const swin_config config = tiny();
    sw_model *model;
    float values[4], again[2], whole[96];
    assert_int_equal(sw_model_create_random(&config, 1, &model, NULL), SWIN_OK);

    const sw_tensor_id qkv = {SW_QKV_WEIGHT, 1, 1};
    float row[192], part[192];
    assert_int_equal(sw_model_read(model, qkv, 7, 1, row, NULL), SWIN_OK);
    assert_int_equal(sw_model_read(model, qkv, 7, 1, part, NULL), SWIN_OK);
    assert_memory_equal(row, part, sizeof row);

    const sw_tensor_id norm = {SW_PATCH_NORM_WEIGHT, 0, 0};
    assert_int_equal(sw_model_read(model, norm, 0, 96, whole, NULL), SWIN_OK);
    assert_int_equal(sw_model_read(model, norm, 40, 2, again, NULL), SWIN_OK);
    assert_memory_equal(again, whole + 40, sizeof again);
    memcpy(values, whole, sizeof values);
    static const float expected[4] = {0x1.a3c9a8p-1f, 0x1.b7ad8cp-1f, 0x1.11f2bcp+0f, 0x1.2fc4p+0f};
    assert_memory_equal(values, expected, sizeof expected);
    sw_model_destroy(model);
}

static void random_v2_has_no_key_bias(void **state)
{
    (void)state;
    const swin_config config = tiny_v2();
    sw_model *model;
    float bias[288];
    assert_int_equal(sw_model_create_random(&config, 5, &model, NULL), SWIN_OK);
    assert_int_equal(sw_model_read(model, (sw_tensor_id){SW_QKV_BIAS, 0, 1}, 0, 288, bias, NULL), SWIN_OK);
    for (int i = 0; i < 288; i++)
        assert_int_equal(bias[i] == 0.0f, i >= 96 && i < 192);
    sw_model_destroy(model);
}

static void reads_outside_a_tensor_are_refused(void **state)
{
    (void)state;
    const swin_config config = tiny();
    sw_model *model;
    float value[1];
    assert_int_equal(sw_model_create_random(&config, 1, &model, NULL), SWIN_OK);
    static const struct {
        sw_tensor_id id;
        int32_t first, count;
    } cases[] = {
        {{SW_PATCH_BIAS, 0, 0}, 96, 1},    {{SW_PATCH_BIAS, 0, 0}, -1, 1},    {{SW_PATCH_BIAS, 0, 0}, 0, 97},
        {{SW_LOGIT_SCALE, 0, 0}, 0, 1},    {{SW_QKV_BIAS, 0, 2}, 0, 1},       {{SW_QKV_BIAS, 4, 0}, 0, 1},
        {{SW_MERGE_WEIGHT, 3, 0}, 0, 1},   {{SW_OUT_NORM_BIAS, 0, 0}, 0, 1},  {{SW_ABSOLUTE_POSITION, 0, 0}, 0, 1},
        {{SW_PATCH_BIAS, 0, 0}, INT32_MAX, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(sw_model_read(model, cases[i].id, cases[i].first, cases[i].count, value, NULL),
                         SWIN_ERR_INTERNAL);
    assert_int_equal(sw_model_position_bias(model, 4, 0, 7, 7, value, NULL), SWIN_ERR_INTERNAL);
    sw_model_destroy(model);
}

static int nothing_leaks(void **state)
{
    (void)state;
    return memory_live_blocks() == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_preset_is_possible_and_recognised, nothing_leaks),
        cmocka_unit_test_teardown(unknown_preset_is_refused, nothing_leaks),
        cmocka_unit_test_teardown(parameter_counts_are_the_published_ones, nothing_leaks),
        cmocka_unit_test_teardown(impossible_configurations_are_refused, nothing_leaks),
        cmocka_unit_test_teardown(block_norms_follow_the_period, nothing_leaks),
        cmocka_unit_test_teardown(random_weights_are_pinned, nothing_leaks),
        cmocka_unit_test_teardown(random_v2_has_no_key_bias, nothing_leaks),
        cmocka_unit_test_teardown(reads_outside_a_tensor_are_refused, nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
