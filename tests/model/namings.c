/* SPDX-License-Identifier: MIT */
/* One set of weights written in every naming, read back equal from each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "memory_counted.h"
#include "naming_writer.h"

#define SEED 42

static const char *const prefixes[] = {"", "backbone.", "module.model.", "model.pixel_level_module.encoder."};

static swin_config config_for(enum naming naming, int version)
{
    swin_config config = version == 1 ? small_v1() : small_v2();
    const int32_t last = 1 << (config.stages - 1);
    if (naming_has_out_norms(naming))
        config.out_norm = naming == NAMING_MMPRETRAIN ? last : 2 * last - 1;
    return config;
}

/* V2's windows must be given where the codebase stores no buffer. */
static swin_model_params params_for(enum naming naming, const swin_config *config)
{
    swin_model_params params = {.struct_size = sizeof params};
    if (config->version == 2 && !naming_has_buffers(naming)) {
        memcpy(params.window, config->window, sizeof params.window);
        memcpy(params.pretrained_window, config->pretrained_window, sizeof params.pretrained_window);
    }
    return params;
}

static bool exists(enum naming naming, int version)
{
    if (version == 1)
        return true;
    /* No V2 in PaddleDetection, in MaskFormer's own copy and with norms in Hugging Face's backbone. */
    return naming != NAMING_PADDLE && naming != NAMING_MASKFORMER && naming != NAMING_HUGGINGFACE4_BACKBONE &&
           naming != NAMING_HUGGINGFACE5_BACKBONE;
}

static void every_naming_reads_back_equal(void **state)
{
    (void)state;
    for (int version = 1; version <= 2; version++) {
        for (int n = 0; n < NAMING_COUNT; n++) {
            const enum naming naming = (enum naming)n;
            if (!exists(naming, version))
                continue;
            swin_config config = config_for(naming, version);
            const swin_model_params params = params_for(naming, &config);
            sw_model *seeded = must_create(&config, SEED);
            for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++) {
                tensor_file file = {0};
                swin_model_info info;
                naming_write(naming, &config, SEED, prefixes[p], &file);
                tensor_file_write(&file, in_directory("model.safetensors"));
                sw_model *model = must_open(in_directory("model.safetensors"), &params);
                sw_model_info(model, &info);
                assert_string_equal(info.dialect, naming_dialect(naming));
                assert_int_equal(sw_model_config(model)->lineage, naming_lineage(naming));
                assert_int_equal(strncmp(info.prefix, prefixes[p], strlen(prefixes[p])), 0);
                assert_int_equal(info.unknown_count, 0);
                assert_string_equal(info.dtype, "F32");
                assert_int_equal(info.used_count + info.ignored_count + info.foreign_count, file.count);

                swin_config found = *sw_model_config(model);
                found.lineage = config.lineage;
                assert_memory_equal(&found, &config, sizeof config);
                assert_models_equal(seeded, model);
                sw_model_info(model, &info);
                assert_int_equal(info.nonfinite_count, 0);
                sw_model_destroy(model);
                tensor_file_free(&file);
            }
            sw_model_destroy(seeded);
        }
    }
}

/* Other options than the published models', where a naming can say them. */
static void options_are_recognised(void **state)
{
    (void)state;
    for (int option = 0; option < 6; option++) {
        swin_config config = option == 5 ? small_v2() : small_v1();
        config.out_norm = option == 4 ? 6 : 15;
        if (option == 0)
            config.qkv_bias = 0;
        if (option == 1)
            config.patch_norm = 0;
        if (option == 2)
            config.mlp_ratio = 8.0 / 3.0;
        if (option == 3) {
            config.stages = 3;
            config.out_norm = 7;
            config.depths[3] = config.heads[3] = config.window[3][0] = config.window[3][1] = 0;
        }
        if (option == 5) {
            config.block_norm_period = 2;
            config.block_norm_last = 1 << 1;
        }
        sw_model *seeded = must_create(&config, SEED);
        tensor_file file = {0};
        naming_write(NAMING_DETECTION, &config, SEED, "", &file);
        tensor_file_write(&file, in_directory("a"));
        sw_model *model = must_open(in_directory("a"), NULL);
        swin_config found = *sw_model_config(model);
        /* Any ratio that gives the same widths will do. */
        for (int32_t stage = 0; stage < config.stages; stage++)
            assert_int_equal(sw_config_hidden(&found, stage), sw_config_hidden(&config, stage));
        found.mlp_ratio = config.mlp_ratio;
        assert_memory_equal(&found, &config, sizeof config);
        assert_models_equal(seeded, model);
        sw_model_destroy(model);
        sw_model_destroy(seeded);
        tensor_file_free(&file);
    }
}

/* Detectors: tensors beside the backbone are counted and nothing else. */
static void tensors_beside_the_backbone_are_foreign(void **state)
{
    (void)state;
    static const char *const beside[] = {
        "neck.lateral_convs.0.conv.weight", "rpn_head.rpn_conv.weight", "roi_head.bbox_head.0.fc_cls.weight",
        "decoder.layers.0.norm1.weight",    "input_proj.0.0.weight",    "label_enc.weight",
    };
    static const float value[4] = {0};
    for (int with_prefix = 0; with_prefix < 2; with_prefix++) {
        swin_config config = small_v1();
        tensor_file file = {0};
        swin_model_info info;
        config.out_norm = 15;
        naming_write(NAMING_DETECTION, &config, SEED, with_prefix ? "backbone." : "", &file);
        for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++)
            tensor_file_add_f32(&file, beside[i], value, 1, 4);
        tensor_file_add_f32(&file, with_prefix ? "backbone.layers.0.blocks.0.attn.extra" : "layers.0.blocks.0.extra",
                            value, 1, 4);
        tensor_file_write(&file, in_directory("detector"));
        sw_model *model = must_open(in_directory("detector"), NULL);
        sw_model_info(model, &info);
        assert_int_equal(info.foreign_count, 6);
        assert_int_equal(info.unknown_count, 1);
        assert_non_null(strstr(sw_model_tensor_name(model, SWIN_TENSOR_UNKNOWN, 0), "extra"));
        assert_null(sw_model_tensor_name(model, SWIN_TENSOR_UNKNOWN, 1));
        assert_null(sw_model_tensor_name(model, (swin_tensor_use)4, 0));
        assert_null(sw_model_tensor_name(model, (swin_tensor_use)-1, 0));
        for (size_t i = 0; i < 6; i++) {
            bool found = false;
            for (size_t j = 0; j < 6; j++)
                found |= strcmp(sw_model_tensor_name(model, SWIN_TENSOR_FOREIGN, j), beside[i]) == 0;
            assert_true(found);
        }
        sw_model_destroy(model);
        tensor_file_free(&file);
    }
}

static void level_norms_follow_the_caller(void **state)
{
    (void)state;
    swin_config config = small_v1();
    config.out_norm = 1 << 2;
    tensor_file file = {0};
    naming_write(NAMING_DETECTION, &config, SEED, "", &file);
    tensor_file_write(&file, in_directory("a"));
    const size_t count = file.count;
    tensor_file_free(&file);

    sw_model *seeded = must_create(&config, SEED);
    swin_model_params params = {.struct_size = sizeof params, .out_norm = SWIN_OUT_NORM_ON};
    sw_model *model = must_open(in_directory("a"), &params);
    assert_int_equal(sw_model_config(model)->out_norm, 15);
    float stored[48], read[96];
    for (int32_t stage = 0; stage < 4; stage++) {
        const int32_t channels = 12 << stage;
        assert_int_equal(sw_model_read(model, (sw_tensor_id){SW_OUT_NORM_WEIGHT, stage, 0}, 0, channels, read, NULL),
                         SWIN_OK);
        if (stage == 2) {
            assert_int_equal(sw_model_read(seeded, (sw_tensor_id){SW_OUT_NORM_WEIGHT, 2, 0}, 0, 48, stored, NULL),
                             SWIN_OK);
            assert_memory_equal(read, stored, sizeof stored);
        } else {
            for (int32_t i = 0; i < channels; i++)
                assert_true(read[i] == 1.0f);
        }
        assert_int_equal(sw_model_read(model, (sw_tensor_id){SW_OUT_NORM_BIAS, stage, 0}, 3, 1, read, NULL), SWIN_OK);
        assert_true((read[0] == 0.0f) == (stage != 2));
    }
    sw_model_destroy(model);

    params.out_norm = SWIN_OUT_NORM_OFF;
    swin_model_info info;
    int32_t rows, columns;
    model = must_open(in_directory("a"), &params);
    assert_int_equal(sw_model_config(model)->out_norm, 0);
    sw_model_shape(model, (sw_tensor_id){SW_OUT_NORM_WEIGHT, 2, 0}, &rows, &columns);
    assert_int_equal(rows, 0);
    sw_model_info(model, &info);
    assert_int_equal(info.used_count + info.ignored_count, count);
    assert_int_equal(info.ignored_count, 8 + 2); /* the blocks' index buffers and the norm */
    sw_model_destroy(model);
    sw_model_destroy(seeded);
}

/* mmpretrain's files from before its version 2 call the last level's norm "norm". */
static void old_mmpretrain_norm_is_the_last_levels(void **state)
{
    (void)state;
    swin_config config = small_v1();
    config.out_norm = 8;
    tensor_file file = {0};
    naming_write(NAMING_MMPRETRAIN, &config, SEED, "", &file);
    tensor_file_rename(&file, "backbone.norm3.weight", "backbone.norm.weight");
    tensor_file_rename(&file, "backbone.norm3.bias", "backbone.norm.bias");
    tensor_file_write(&file, in_directory("a"));
    sw_model *seeded = must_create(&config, SEED), *model = must_open(in_directory("a"), NULL);
    assert_int_equal(sw_model_config(model)->out_norm, 8);
    assert_models_equal(seeded, model);
    sw_model_destroy(model);
    sw_model_destroy(seeded);
    tensor_file_free(&file);
}

static void an_absolute_position_embedding_is_read_token_by_token(void **state)
{
    (void)state;
    for (int planes = 0; planes < 2; planes++) {
        swin_config config = small_v1();
        config.out_norm = 15;
        float tokens[20 * 12], turned[20 * 12], read[20 * 12];
        for (int t = 0; t < 20; t++) {
            for (int c = 0; c < 12; c++)
                tokens[t * 12 + c] = turned[c * 20 + t] = (float)(t * 100 + c);
        }
        tensor_file file = {0};
        naming_write(NAMING_DETECTION, &config, SEED, "", &file);
        if (planes)
            tensor_file_add_f32(&file, "absolute_pos_embed", turned, 4, 1, 12, 4, 5);
        else
            tensor_file_add_f32(&file, "absolute_pos_embed", tokens, 3, 1, 20, 12);
        tensor_file_write(&file, in_directory("a"));
        /* Twenty tokens are no square: only the planes tell the grid, or the caller. */
        swin_model_params params = {.struct_size = sizeof params};
        if (!planes) {
            must_refuse(in_directory("a"), &params, SWIN_ERR_MISMATCH, "params.image_size");
            params.image_size[0] = 7;
            params.image_size[1] = 10;
        }
        sw_model *model = must_open(in_directory("a"), &params);
        assert_int_equal(sw_model_config(model)->absolute_position[0], 4);
        assert_int_equal(sw_model_config(model)->absolute_position[1], 5);
        const sw_tensor_id id = {SW_ABSOLUTE_POSITION, 0, 0};
        assert_int_equal(sw_model_read(model, id, 0, 20, read, NULL), SWIN_OK);
        assert_memory_equal(read, tokens, sizeof tokens);
        assert_int_equal(sw_model_read(model, id, 7, 3, read, NULL), SWIN_OK);
        assert_memory_equal(read, tokens + 7 * 12, 3 * 12 * sizeof *read);
        sw_model_destroy(model);
        tensor_file_free(&file);
    }
}

/* transformers 4 allocates one entry more than there are tokens and cannot use it. */
static void an_unusable_embedding_is_ignored(void **state)
{
    (void)state;
    static const float embedding[26 * 12] = {0};
    const swin_config config = small_v1();
    swin_model_info info;
    tensor_file file = {0};
    naming_write(NAMING_HUGGINGFACE4, &config, SEED, "", &file);
    tensor_file_add_f32(&file, "swin.embeddings.position_embeddings", embedding, 3, 1, 26, 12);
    tensor_file_write(&file, in_directory("a"));
    sw_model *model = must_open(in_directory("a"), NULL);
    assert_int_equal(sw_model_config(model)->absolute_position[0], 0);
    sw_model_info(model, &info);
    assert_int_equal(info.unknown_count, 0);
    sw_model_destroy(model);
    tensor_file_free(&file);
}

static void lineage_and_version_follow_the_caller(void **state)
{
    (void)state;
    const swin_config config = small_v1();
    tensor_file file = {0};
    naming_write(NAMING_TIMM, &config, SEED, "", &file);
    tensor_file_write(&file, in_directory("a"));
    swin_model_params params = {.struct_size = sizeof params, .lineage = SWIN_LINEAGE_DETECTION, .version = 1};
    swin_model_info info;
    sw_model *model = must_open(in_directory("a"), &params);
    sw_model_info(model, &info);
    assert_int_equal(sw_model_config(model)->lineage, SWIN_LINEAGE_DETECTION);
    assert_string_equal(info.lineage, "detection");
    assert_non_null(strstr(info.lineage_reason, "caller"));
    assert_string_equal(info.dialect, "timm");
    sw_model_destroy(model);
    params.version = 2;
    must_refuse(in_directory("a"), &params, SWIN_ERR_MISMATCH, "V1, expected V2");
    tensor_file_free(&file);
}

/* Names without a classifier and without norms: nothing says classification, so detection it is. */
static void a_bare_backbone_is_of_the_detection_lineage(void **state)
{
    (void)state;
    const swin_config config = small_v1();
    tensor_file file = {0};
    naming_write(NAMING_DETECTION, &config, SEED, "", &file);
    tensor_file_write(&file, in_directory("a"));
    sw_model *model = must_open(in_directory("a"), NULL);
    assert_int_equal(sw_model_config(model)->lineage, SWIN_LINEAGE_DETECTION);
    sw_model_destroy(model);
    tensor_file_free(&file);
}

/* Where a merge belongs tells timm's numbering from Microsoft's, with or without a head. */
static void headless_files_are_told_apart_by_their_merges(void **state)
{
    (void)state;
    static const char *const rest[] = {"head.weight", "head.bias", "head.fc.weight", "head.fc.bias"};
    static const enum naming namings[] = {NAMING_MICROSOFT, NAMING_TIMM};
    for (int n = 0; n < 2; n++) {
        const swin_config config = small_v1();
        tensor_file file = {0};
        naming_write(namings[n], &config, SEED, "", &file);
        for (int i = 0; i < 2; i++)
            tensor_file_remove(&file, rest[2 * n + i]);
        tensor_file_write(&file, in_directory("a"));
        tensor_file_free(&file);
        sw_model *seeded = must_create(&config, SEED), *model = must_open(in_directory("a"), NULL);
        assert_int_equal(sw_model_config(model)->lineage, naming_lineage(namings[n]));
        assert_models_equal(seeded, model);
        sw_model_destroy(model);
        sw_model_destroy(seeded);
    }
}

/* mmpretrain's default is a norm on the last level only; a detector that asks for that level alone has a neck beside
 * it. */
static void a_norm_on_the_last_level_alone_is_mmpretrains(void **state)
{
    (void)state;
    static const float value[4] = {0};
    swin_config config = small_v1();
    config.out_norm = 8;
    for (int neck = 0; neck < 2; neck++) {
        tensor_file file = {0};
        swin_model_info info;
        naming_write(NAMING_MMDETECTION, &config, SEED, "", &file);
        if (neck)
            tensor_file_add_f32(&file, "neck.convs.0.conv.weight", value, 1, 4);
        tensor_file_write(&file, in_directory("a"));
        tensor_file_free(&file);
        sw_model *model = must_open(in_directory("a"), NULL);
        sw_model_info(model, &info);
        assert_string_equal(info.dialect, neck ? "mmdetection" : "mmpretrain");
        assert_string_equal(info.lineage, neck ? "detection" : "mmpretrain");
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
        TEST(every_naming_reads_back_equal),
        TEST(options_are_recognised),
        TEST(tensors_beside_the_backbone_are_foreign),
        TEST(level_norms_follow_the_caller),
        TEST(old_mmpretrain_norm_is_the_last_levels),
        TEST(an_absolute_position_embedding_is_read_token_by_token),
        TEST(an_unusable_embedding_is_ignored),
        TEST(lineage_and_version_follow_the_caller),
        TEST(a_bare_backbone_is_of_the_detection_lineage),
        TEST(headless_files_are_told_apart_by_their_merges),
        TEST(a_norm_on_the_last_level_alone_is_mmpretrains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
