/* SPDX-License-Identifier: MIT */
/* Checkpoints that must be refused, each with a message that names what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

/* Whatever tensor is taken away, the message names it. */
static void every_missing_tensor_is_named(void **state)
{
    (void)state;
    for (int version = 1; version <= 2; version++) {
        tensor_file whole = detection_file(version, "backbone.");
        tensor_file_clear(&whole);
        const size_t count = whole.count;
        for (size_t i = 0; i < count; i++) {
            tensor_file file = {0};
            tensor_file_append(&file, &whole, "");
            char name[256], quoted[260];
            snprintf(name, sizeof name, "%s", tensor_file_name(&file, i));
            tensor_file_remove(&file, name);
            tensor_file_write(&file, in_directory("a"));
            tensor_file_free(&file);
            if (strstr(name, "relative_position_index") != NULL || strstr(name, "relative_coords_table") != NULL) {
                sw_model_destroy(must_open(in_directory("a"), NULL));
                continue;
            }
            snprintf(quoted, sizeof quoted, "\"%s\"", name);
            must_refuse(in_directory("a"), NULL, SWIN_ERR_MISMATCH, quoted);
        }
        tensor_file_free(&whole);
    }
}

/* One more row in any tensor: it is named, or another of its stage from which a size was taken. */
static void every_misshaped_tensor_is_refused(void **state)
{
    (void)state;
    for (int version = 1; version <= 2; version++) {
        tensor_file whole = detection_file(version, "");
        tensor_file_clear(&whole);
        for (size_t i = 0; i < whole.count; i++) {
            tensor_file file = {0};
            uint64_t shape[16];
            tensor_file_append(&file, &whole, "");
            char name[256];
            snprintf(name, sizeof name, "%s", tensor_file_name(&file, i));
            const int rank = tensor_file_shape(&file, name, shape);
            shape[0]++;
            tensor_file_reshape(&file, name, rank, shape);
            tensor_file_write(&file, in_directory("a"));
            tensor_file_free(&file);
            if (strstr(name, "relative_position_index") != NULL && version == 1)
                sw_model_destroy(must_open(in_directory("a"), NULL));
            else
                must_refuse(in_directory("a"), NULL, SWIN_ERR_MISMATCH, "tensor");
        }
        tensor_file_free(&whole);
    }
}

static void a_misshaped_tensor_is_named_with_both_shapes(void **state)
{
    (void)state;
    static const uint64_t shape[2] = {30, 12}, wrong_rank[1] = {12};
    tensor_file file = detection_file(1, "");
    tensor_file_reshape(&file, "layers.0.blocks.1.mlp.fc2.weight", 2, shape);
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH,
                "\"layers.0.blocks.1.mlp.fc2.weight\" has shape [30, 12], expected [12, 30]");
    file = detection_file(1, "");
    tensor_file_reshape(&file, "layers.1.blocks.0.attn.relative_position_bias_table", 1, wrong_rank);
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "has shape [12], expected 2 dimensions");
}

static void a_wrong_type_is_named(void **state)
{
    (void)state;
    tensor_file file = detection_file(1, "");
    const uint64_t shape[1] = {24};
    tensor_file_remove(&file, "layers.1.blocks.0.norm2.bias");
    tensor_file_add(&file, "layers.1.blocks.0.norm2.bias", "I32", 1, shape, NULL, 96);
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_UNSUPPORTED,
                "\"layers.1.blocks.0.norm2.bias\" has type I32, expected F32, F16, BF16 or F64");
}

static void gaps_in_depth_are_named(void **state)
{
    (void)state;
    /* A block in the middle. */
    tensor_file file = detection_file(1, "");
    for (size_t i = file.count; i-- > 0;) {
        if (strncmp(tensor_file_name(&file, i), "layers.2.blocks.1.", 18) == 0)
            tensor_file_remove(&file, tensor_file_name(&file, i));
    }
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "\"layers.2.blocks.1.norm1.weight\" is missing");
    /* A stage in the middle, and the last one though a merge leads into it. */
    static const char *const stages[] = {"layers.1.", "layers.3."};
    for (int s = 0; s < 2; s++) {
        file = detection_file(1, "");
        for (size_t i = file.count; i-- > 0;) {
            if (strncmp(tensor_file_name(&file, i), stages[s], 9) == 0)
                tensor_file_remove(&file, tensor_file_name(&file, i));
        }
        char words[64];
        snprintf(words, sizeof words, "\"%sblocks.0.norm1.weight\" is missing", stages[s]);
        must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, words);
    }
    static const float value[12] = {0};
    file = detection_file(1, "");
    tensor_file_add_f32(&file, "layers.5.blocks.0.norm1.weight", value, 1, 12);
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_UNSUPPORTED, "\"layers.5.blocks.0.norm1.weight\" is of stage 5");
    file = detection_file(1, "");
    tensor_file_add_f32(&file, "layers.3.blocks.2000.norm1.weight", value, 1, 12);
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_UNSUPPORTED, "block 2000");
}

/* Names that only look right: no leading zeros, no huge numbers, no more or less text. */
static void inexact_names_are_unknown(void **state)
{
    (void)state;
    static const char *const names[] = {
        "layers.00.blocks.0.norm1.weight", "layers.0.blocks.01.norm1.weight", "layers.0.blocks.0.norm1.weights",
        "layers.0.blocks.0.norm1",         "layers.0.blocks..norm1.weight",   "layers.0.blocks.99999.norm1.weight",
        "layers.-1.blocks.0.norm1.weight", "layers.0.blocks.0. norm1.weight", "norm00.weight",
    };
    static const float value[12] = {0};
    tensor_file file = detection_file(1, "");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        tensor_file_add_f32(&file, names[i], value, 1, 12);
    swin_model_info info;
    sw_model *model = must_open(write_and_free(&file), NULL);
    sw_model_info(model, &info);
    /* "norm00" is the first part of no name, so nothing says that it belongs to the backbone. */
    assert_int_equal(info.unknown_count, sizeof names / sizeof names[0] - 1);
    assert_int_equal(info.foreign_count, 1);
    sw_model_destroy(model);
}

static void heads_that_do_not_divide_are_named(void **state)
{
    (void)state;
    static const uint64_t table[2] = {25, 5}, scale[3] = {5, 1, 1};
    tensor_file file = detection_file(1, "");
    tensor_file_reshape(&file, "layers.1.blocks.0.attn.relative_position_bias_table", 2, table);
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH,
                "\"layers.1.blocks.0.attn.relative_position_bias_table\" has 5 heads");
    file = detection_file(2, "");
    tensor_file_reshape(&file, "layers.1.blocks.0.attn.logit_scale", 3, scale);
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "\"layers.1.blocks.0.attn.logit_scale\" has 5 heads");
}

static void blocks_of_other_windows_are_named(void **state)
{
    (void)state;
    static const uint64_t index[2] = {16, 16};
    tensor_file file = detection_file(1, "");
    tensor_file_reshape(&file, "layers.2.blocks.2.attn.relative_position_bias_table", 2, (uint64_t[]){49, 6});
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH,
                "\"layers.2.blocks.2.attn.relative_position_bias_table\" has shape [49, 6], expected [81, 6]");
    file = detection_file(2, "");
    tensor_file_reshape(&file, "layers.2.blocks.1.attn.relative_coords_table", 4, (uint64_t[]){1, 7, 7, 2});
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "layers.2.blocks.1.attn.relative_coords_table");
    file = detection_file(2, "");
    for (int block = 0; block < 3; block++) {
        char name[64];
        snprintf(name, sizeof name, "layers.2.blocks.%d.attn.relative_position_index", block);
        tensor_file_reshape(&file, name, 2, index);
    }
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "of 16 tokens");
}

static void hidden_widths_of_no_ratio_are_named(void **state)
{
    (void)state;
    tensor_file file = detection_file(1, "");
    tensor_file_reshape(&file, "layers.1.blocks.0.mlp.fc1.weight", 2, (uint64_t[]){50, 24});
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "\"layers.1.blocks.0.mlp.fc1.weight\"");
}

static void patches_of_other_images_are_refused(void **state)
{
    (void)state;
    static const struct {
        int rank;
        uint64_t shape[5];
    } cases[] = {
        {4, {12, 1, 2, 2}}, {4, {12, 3, 2, 4}}, {5, {12, 3, 1, 2, 2}}, {2, {12, 12}}, {4, {0, 3, 2, 2}},
        {4, {12, 3, 0, 0}}, {4, {1, 3, 65, 65}}, {4, {8193, 3, 2, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tensor_file file = detection_file(1, "");
        tensor_file_reshape(&file, "patch_embed.proj.weight", cases[i].rank, cases[i].shape);
        must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "\"patch_embed.proj.weight\" has shape");
    }
}

static void mixed_versions_are_refused(void **state)
{
    (void)state;
    static const struct {
        int version;
        const char *name;
    } cases[] = {
        {1, "layers.0.blocks.1.attn.logit_scale"},
        {1, "layers.0.blocks.1.attn.q_bias"},
        {1, "layers.1.blocks.0.attn.cpb_mlp.0.bias"},
        {1, "layers.1.blocks.0.norm3.weight"},
        {2, "layers.0.blocks.1.attn.relative_position_bias_table"},
        {2, "layers.2.blocks.0.attn.qkv.bias"},
    };
    static const float value[12] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[128];
        tensor_file file = detection_file(cases[i].version, "");
        tensor_file_add_f32(&file, cases[i].name, value, 1, 12);
        snprintf(words, sizeof words, "\"%s\"", cases[i].name);
        must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, words);
    }
    tensor_file file = detection_file(1, "");
    tensor_file_write(&file, in_directory("a"));
    swin_model_params params = {.struct_size = sizeof params, .version = 2};
    must_refuse(in_directory("a"), &params, SWIN_ERR_MISMATCH, "V1, expected V2");
    params = (swin_model_params){.struct_size = sizeof params, .pretrained_window = {{8, 8}}};
    must_refuse(in_directory("a"), &params, SWIN_ERR_ARGUMENT, "V1, which has none");
    tensor_file_free(&file);
    file = detection_file(2, "");
    tensor_file_write(&file, in_directory("a"));
    params = (swin_model_params){.struct_size = sizeof params, .version = 1};
    must_refuse(in_directory("a"), &params, SWIN_ERR_MISMATCH, "V2, expected V1");
    params = (swin_model_params){.struct_size = sizeof params, .pretrained_window = {{1, 1}}};
    must_refuse(in_directory("a"), &params, SWIN_ERR_ARGUMENT, "pretrained_window of stage 0 is {1, 1}");
    tensor_file_free(&file);
}

static void mixed_namings_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *new_name;
    } cases[] = {
        {"layers.1.blocks.0.attn.qkv.weight", "stages.1.blocks.0.attn.w_msa.qkv.weight"},
        {"layers.2.blocks.2.mlp.fc1.bias", "encoder.layers.2.blocks.2.intermediate.dense.bias"},
        {"layers.2.blocks.2.mlp.fc1.bias", "features.5.2.mlp.0.bias"},
        {"layers.2.blocks.2.mlp.fc1.bias", "layers_2.blocks.2.mlp.fc1.bias"},
        {"layers.0.downsample.reduction.weight", "layers_1.downsample.reduction.weight"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char words[128];
        tensor_file file = detection_file(1, "");
        tensor_file_rename(&file, cases[i].name, cases[i].new_name);
        snprintf(words, sizeof words, "mixed: tensor \"%s\"", cases[i].new_name);
        must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, words);
    }
    /* A whole stage of another codebase. */
    tensor_file file = detection_file(1, "");
    for (size_t i = 0; i < file.count; i++) {
        char name[128];
        if (strncmp(tensor_file_name(&file, i), "layers.1.blocks.", 16) == 0) {
            snprintf(name, sizeof name, "layers_1.blocks.%s", tensor_file_name(&file, i) + 16);
            tensor_file_rename(&file, tensor_file_name(&file, i), name);
        }
    }
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "mixed: tensor \"layers_1.blocks.");
}

/* Two whole networks behind one prefix, so that no prefix can choose. */
static void two_namings_behind_one_prefix_are_refused(void **state)
{
    (void)state;
    static const float value[12] = {0};
    tensor_file file = detection_file(1, "backbone.");
    tensor_file_add_f32(&file, "backbone.patch_embed.projection.weight", value, 1, 12);
    tensor_file_add_f32(&file, "backbone.stages.0.blocks.0.attn.w_msa.qkv.weight", value, 1, 12);
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH,
                "\"backbone.patch_embed.proj.weight\" is named as microsoft does, "
                "\"backbone.patch_embed.projection.weight\" as mmdetection does");
}

static void duplicates_behind_prefixes_are_refused(void **state)
{
    (void)state;
    static const char *const prefixes[] = {"", "module.", "backbone.", "model.backbone."};
    static const float value[12] = {0};
    for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++) {
        char name[128];
        tensor_file file = detection_file(1, prefixes[p]);
        snprintf(name, sizeof name, "module._orig_mod.%slayers.0.blocks.0.norm1.weight", prefixes[p]);
        tensor_file_add_f32(&file, name, value, 1, 12);
        must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, name);
        file = detection_file(1, prefixes[p]);
        snprintf(name, sizeof name, "module._orig_mod.%spatch_embed.norm.bias", prefixes[p]);
        tensor_file_add_f32(&file, name, value, 1, 12);
        must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, name);
    }
    tensor_file file = detection_file(1, "");
    tensor_file_add_f32(&file, "layers.0.blocks.0.norm1.other", value, 1, 12);
    tensor_file_rename(&file, "layers.0.blocks.0.norm1.other", "layers.0.blocks.0.norm1.weight");
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_FORMAT, "broken");
}

/* Two spellings of one tensor that a single naming allows. */
static void two_spellings_of_one_tensor_are_refused(void **state)
{
    (void)state;
    static const float value[1024] = {0};
    tensor_file file = detection_file(2, "");
    tensor_file_add_f32(&file, "layers.1.blocks.0.attn.rpe_mlp.0.weight", value, 2, 512, 2);
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH,
                "\"layers.1.blocks.0.attn.cpb_mlp.0.weight\" and \"layers.1.blocks.0.attn.rpe_mlp.0.weight\"");
    swin_config config = small_v1();
    config.out_norm = 8;
    naming_write(NAMING_MMPRETRAIN, &config, SEED, "", &file);
    tensor_file_add_f32(&file, "backbone.norm.bias", value, 1, 96);
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "\"backbone.norm3.bias\"");
}

static void several_backbones_need_a_choice(void **state)
{
    (void)state;
    tensor_file file = detection_file(1, "student.");
    swin_config config = small_v2();
    config.out_norm = 15;
    naming_write(NAMING_MMDETECTION, &config, SEED, "", &file);
    tensor_file_write(&file, in_directory("a"));
    must_refuse(in_directory("a"), NULL, SWIN_ERR_MISMATCH, "\"backbone.\", \"student.\"");

    swin_model_info info;
    swin_model_params params = {.struct_size = sizeof params, .prefix = "student"};
    sw_model *model = must_open(in_directory("a"), &params);
    assert_int_equal(sw_model_config(model)->version, 1);
    sw_model_info(model, &info);
    assert_string_equal(info.prefix, "student.");
    assert_int_equal(info.unknown_count, 0);
    assert_true(info.foreign_count > 100);
    sw_model_destroy(model);
    params.prefix = "backbone.";
    model = must_open(in_directory("a"), &params);
    assert_int_equal(sw_model_config(model)->version, 2);
    sw_model_destroy(model);
    params.prefix = "";
    must_refuse(in_directory("a"), &params, SWIN_ERR_MISMATCH, "no Swin Transformer has the prefix \"\"");
    params.prefix = "backbone.s";
    must_refuse(in_directory("a"), &params, SWIN_ERR_MISMATCH, "\"backbone.s\"");
    tensor_file_free(&file);

    /* The same model twice, as data-parallel training may save it: a choice too, and then no duplicate. */
    file = detection_file(1, "");
    tensor_file twin = detection_file(1, "module.");
    tensor_file_append(&file, &twin, "");
    tensor_file_free(&twin);
    tensor_file_write(&file, in_directory("a"));
    must_refuse(in_directory("a"), NULL, SWIN_ERR_MISMATCH, "--prefix): \"module.\", \"\"");
    params.prefix = "";
    sw_model_destroy(must_open(in_directory("a"), &params));
    params.prefix = "module.";
    sw_model_destroy(must_open(in_directory("a"), &params));
    tensor_file_free(&file);
}

/* Another transformer's patch embedding beside the backbone is no second backbone. */
static void other_patch_embeddings_do_not_confuse(void **state)
{
    (void)state;
    static const float value[16 * 3 * 4] = {0};
    tensor_file file = detection_file(1, "image_encoder.");
    tensor_file_add_f32(&file, "text.patch_embed.proj.weight", value, 4, 16, 3, 2, 2);
    tensor_file_add_f32(&file, "text.blocks.0.attn.qkv.weight", value, 2, 12, 4);
    sw_model_destroy(must_open(write_and_free(&file), NULL));
}

static void unknown_namings_show_the_nearest(void **state)
{
    (void)state;
    static const float value[192] = {0};
    tensor_file file = {0};
    tensor_file_add_f32(&file, "vit.patch_embed.proj.weight", value, 4, 16, 3, 2, 2);
    tensor_file_add_f32(&file, "vit.patch_embed.proj.bias", value, 1, 16);
    tensor_file_add_f32(&file, "vit.blocks.0.attn.qkv.weight", value, 2, 48, 4);
    tensor_file_add_f32(&file, "vit.norm.weight", value, 1, 16);
    tensor_file_write(&file, in_directory("a"));
    must_refuse(in_directory("a"), NULL, SWIN_ERR_MISMATCH,
                "microsoft (3 fit, lacks \"vit.layers.0.blocks.0.norm1.weight\")");
    must_refuse(in_directory("a"), NULL, SWIN_ERR_MISMATCH, "timm (3 fit");
    must_refuse(in_directory("a"), NULL, SWIN_ERR_MISMATCH, "timm features_only (3 fit");
    must_refuse(in_directory("a"), NULL, SWIN_ERR_MISMATCH, "first unknown name: \"vit.blocks.0.attn.qkv.weight\"");
    tensor_file_free(&file);

    /* A backbone without its patch embedding, and a file without tensors. */
    file = detection_file(1, "backbone.");
    tensor_file_remove(&file, "backbone.patch_embed.proj.weight");
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "lacks \"backbone.patch_embed.proj.weight\"");
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "no tensors");
}

/* The rest lies in the other shards. */
static void a_single_shard_points_to_its_index(void **state)
{
    (void)state;
    tensor_file file = detection_file(1, "");
    tensor_file_remove(&file, "layers.3.blocks.1.mlp.fc2.weight");
    tensor_file_write(&file, in_directory("model-00001-of-00002.safetensors"));
    tensor_file_free(&file);
    must_refuse(in_directory("model-00001-of-00002.safetensors"), NULL, SWIN_ERR_MISMATCH,
                "\"layers.3.blocks.1.mlp.fc2.weight\" is missing");
    must_refuse(in_directory("model-00001-of-00002.safetensors"), NULL, SWIN_ERR_MISMATCH, "index.json");
}

static void swinv2_cr_is_refused_by_name(void **state)
{
    (void)state;
    static const float value[16 * 3 * 4] = {0};
    tensor_file file = {0};
    tensor_file_add_f32(&file, "patch_embed.proj.weight", value, 4, 16, 3, 2, 2);
    tensor_file_add_f32(&file, "stages.0.blocks.0.attn.qkv.weight", value, 2, 48, 4);
    tensor_file_add_f32(&file, "stages.0.blocks.0.attn.meta_mlp.fc1.weight", value, 2, 16, 2);
    tensor_file_add_f32(&file, "stages.0.blocks.0.norm1.weight", value, 1, 16);
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_UNSUPPORTED, "swinv2_cr");
}

static void block_norms_without_a_period_are_named(void **state)
{
    (void)state;
    swin_config config = small_v2();
    config.out_norm = 15;
    config.block_norm_period = 1;
    tensor_file file = {0};
    naming_write(NAMING_DETECTION, &config, SEED, "", &file);
    tensor_file_remove(&file, "layers.2.blocks.1.norm3.weight");
    tensor_file_remove(&file, "layers.2.blocks.1.norm3.bias");
    must_refuse(write_and_free(&file), NULL, SWIN_ERR_MISMATCH, "norm3.weight");
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
        TEST(every_missing_tensor_is_named),
        TEST(every_misshaped_tensor_is_refused),
        TEST(a_misshaped_tensor_is_named_with_both_shapes),
        TEST(a_wrong_type_is_named),
        TEST(gaps_in_depth_are_named),
        TEST(inexact_names_are_unknown),
        TEST(heads_that_do_not_divide_are_named),
        TEST(blocks_of_other_windows_are_named),
        TEST(hidden_widths_of_no_ratio_are_named),
        TEST(patches_of_other_images_are_refused),
        TEST(mixed_versions_are_refused),
        TEST(mixed_namings_are_refused),
        TEST(two_namings_behind_one_prefix_are_refused),
        TEST(duplicates_behind_prefixes_are_refused),
        TEST(two_spellings_of_one_tensor_are_refused),
        TEST(several_backbones_need_a_choice),
        TEST(other_patch_embeddings_do_not_confuse),
        TEST(unknown_namings_show_the_nearest),
        TEST(a_single_shard_points_to_its_index),
        TEST(swinv2_cr_is_refused_by_name),
        TEST(block_norms_without_a_period_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
