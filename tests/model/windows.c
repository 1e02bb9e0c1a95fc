/* SPDX-License-Identifier: MIT */
/* Where windows come from: the caller, the tensors, config.json, the published file name, in this order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory_counted.h"
#include "naming_writer.h"

#define SEED 3

/* A model of published sizes without its values: only shapes matter here. */
static void write_preset(enum naming naming, const char *preset, const char *path)
{
    swin_config config;
    tensor_file file = {0};
    assert_int_equal(sw_config_preset(&config, preset, NULL), SWIN_OK);
    naming_write(naming, &config, SEED, "", &file);
    tensor_file_clear(&file);
    tensor_file_write(&file, path);
    tensor_file_free(&file);
}

static void assert_windows(const sw_model *model, const int32_t window[4], const int32_t pretrained[4],
                           const char *reason)
{
    const swin_config *config = sw_model_config(model);
    swin_model_info info;
    sw_model_info(model, &info);
    for (int stage = 0; stage < 4; stage++) {
        for (int axis = 0; axis < 2; axis++) {
            assert_int_equal(config->window[stage][axis], window[stage]);
            assert_int_equal(config->pretrained_window[stage][axis], pretrained[stage]);
        }
    }
    if (strstr(info.window_reason, reason) == NULL)
        fail_msg("\"%s\", expected \"%s\"", info.window_reason, reason);
}

static const int32_t w8[4] = {8, 8, 8, 8}, w16[4] = {16, 16, 16, 8}, w24[4] = {24, 24, 24, 12};
static const int32_t w12[4] = {12, 12, 12, 6}, none[4] = {0, 0, 0, 0};

static void write_text(const char *name, const char *text)
{
    write_bytes(in_directory(name), text, strlen(text));
}

static void names_tell_v2s_windows(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const int32_t *window; /* NULL: the name says nothing that can be believed */
        const int32_t *pretrained;
    } cases[] = {
        {"swinv2_tiny_patch4_window8_256.safetensors", w8, none},
        {"swinv2_tiny_patch4_window16_256.safetensors", w16, none},
        {"swinv2_tiny_patch4_window8_256", w8, none},
        {"swinv2_tiny_window8_256.ms_in1k.safetensors", w8, none},
        {"swinv2-tiny-patch4-window16-256.safetensors", w16, none},
        {"swinv2-tiny-w16_3rdparty_in1k-256px_20220803-9651cdd7.safetensors", w16, none},
        {"swinv2_window12to16_192to256_22kto1k_ft.safetensors", w16, w12},
        {"swinv2_tiny_window12to24_192to384.ms_in22k_ft_in1k.safetensors", w24, w12},
        {"swinv2_tiny_patch4_window12_192_22k.safetensors", w12, none},
        /* In directories: the name of the directory where the file's own is a general one. */
        {"swinv2-tiny-patch4-window8-256/model.safetensors", w8, none},
        {"swinv2-tiny-patch4-window8-256/pytorch_model.safetensors", w8, none},
        {"swinv2-tiny-patch4-window8-256/weights.safetensors", NULL, NULL},
        /* Another size, another version, no image size, no window, nothing. */
        {"swinv2_base_patch4_window8_256.safetensors", NULL, NULL},
        {"swin_tiny_patch4_window8_256.safetensors", NULL, NULL},
        {"swinv2_cr_tiny_ns_224.safetensors", NULL, NULL},
        {"swinv2_tiny_window8.safetensors", NULL, NULL},
        {"swinv2_tiny_256.safetensors", NULL, NULL},
        {"swinv2_tiny_window_256.safetensors", NULL, NULL},
        {"swinv2_tiny_window8x8_256.safetensors", NULL, NULL},
        {"swinv2_tiny_window99999999999_256.safetensors", NULL, NULL},
        {"my_swinv2_tiny_thing.safetensors", NULL, NULL},
        {"window8_256.safetensors", NULL, NULL},
        {"model.safetensors", NULL, NULL},
    };
    write_preset(NAMING_TIMM, "swinv2_tiny_patch4_window8_256", in_directory("source"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char directory[256];
        const size_t length = strcspn(cases[i].path, "/");
        assert_true(length < sizeof directory);
        memcpy(directory, cases[i].path, length);
        directory[length] = '\0';
        if (strchr(cases[i].path, '/') != NULL)
            make_subdirectory(directory);
        assert_int_equal(link(in_directory("source"), in_directory(cases[i].path)), 0);
        if (cases[i].window == NULL) {
            must_refuse(in_directory(cases[i].path), NULL, SWIN_ERR_MISMATCH, "params.window, --window");
            continue;
        }
        sw_model *model = must_open(in_directory(cases[i].path), NULL);
        assert_windows(model, cases[i].window, cases[i].pretrained, "published file name");
        sw_model_destroy(model);
    }
}

static void a_config_json_tells_v2s_windows(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const int32_t *window; /* NULL: not believed */
        const int32_t *pretrained;
    } cases[] = {
#define SIZES "\"embed_dim\":96,\"depths\":[2,2,6,2],\"num_heads\":[3,6,12,24],\"patch_size\":4"
        {"{\"model_type\":\"swinv2\",\"image_size\":256,\"window_size\":8}", w8, none},
        {"{\"model_type\":\"swinv2\",\"image_size\":256,\"window_size\":16," SIZES "}", w16, none},
        {"{\"model_type\":\"swinv2\",\"image_size\":[256,256],\"window_size\":[16,16]," SIZES "}", w16, none},
        {"{\"model_type\":\"swinv2\",\"image_size\":384,\"window_size\":24,\"pretrained_window_sizes\":[12,12,12,6]}",
         w24, w12},
        {"{\"model_type\":\"swinv2\",\"image_size\":256,\"window_size\":8,\"pretrained_window_sizes\":null}", w8, none},
        {"{\"backbone_config\":{\"model_type\":\"swinv2\",\"image_size\":256,\"window_size\":8}}", w8, none},
        {"{\"architecture\":\"swinv2_tiny_window8_256\",\"pretrained_cfg\":{\"input_size\":[3,256,256]}}", w8, none},
        {"{\"architecture\":\"swinv2_tiny_window12to16_192to256\"}", w16, w12},
        /* Contradicted by the tensors, of another model, or nonsense. */
        {"{\"model_type\":\"swinv2\",\"image_size\":256,\"window_size\":8,\"embed_dim\":128}", NULL, NULL},
        {"{\"model_type\":\"swinv2\",\"image_size\":256,\"window_size\":8,\"depths\":[2,2,18,2]}", NULL, NULL},
        {"{\"model_type\":\"swinv2\",\"image_size\":256,\"window_size\":8,\"num_heads\":[3,6,12]}", NULL, NULL},
        {"{\"model_type\":\"swinv2\",\"image_size\":256,\"window_size\":8,\"patch_size\":2}", NULL, NULL},
        {"{\"model_type\":\"swin\",\"image_size\":256,\"window_size\":8}", NULL, NULL},
        {"{\"model_type\":\"swinv2\",\"image_size\":256,\"window_size\":-8}", NULL, NULL},
        {"{\"model_type\":\"swinv2\",\"image_size\":256,\"window_size\":\"8\"}", NULL, NULL},
        {"{\"model_type\":\"swinv2\",\"image_size\":[256,256,3],\"window_size\":8}", NULL, NULL},
        {"{\"architecture\":\"swinv2_base_window8_256\"}", NULL, NULL},
        {"{\"architecture\":7}", NULL, NULL},
        {"{\"model_type\":\"swinv2\"", NULL, NULL},
        {"[]", NULL, NULL},
        {"", NULL, NULL},
    };
    write_preset(NAMING_TIMM, "swinv2_tiny_patch4_window8_256", in_directory("model.safetensors"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_text("config.json", cases[i].text);
        if (cases[i].window == NULL) {
            must_refuse(in_directory("model.safetensors"), NULL, SWIN_ERR_MISMATCH, "params.window, --window");
            continue;
        }
        sw_model *model = must_open(in_directory("model.safetensors"), NULL);
        assert_windows(model, cases[i].window, cases[i].pretrained, "config.json");
        sw_model_destroy(model);
    }

    /* What Hugging Face leaves out is its default: window 7 at 224. */
    static const int32_t w7[4] = {7, 7, 7, 7};
    write_text("config.json", "{\"model_type\":\"swinv2\"}");
    sw_model *model = must_open(in_directory("model.safetensors"), NULL);
    assert_windows(model, w7, none, "config.json");
    assert_int_equal(sw_model_config(model)->image_size[0], 224);
    sw_model_destroy(model);
}

/* A pre-training window that cannot be is refused, unless somebody whose word comes first says another one. */
static void impossible_pretrained_windows_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *list, *words;
    } cases[] = {
        {"[1,1,1,1]", "of stage 0 is 1 in config.json, expected 0 or 2 to 128; give it ("},
        {"[12,129,12,1]", "of stage 1 is 129 in config.json"},
        {"[12,12,-1,6]", "of stage 2 is no number in config.json"},
        {"[12,12]", "of stage 2 is no number in config.json"},
        {"[12,12,\"12\",6]", "of stage 2 is no number in config.json"},
        {"12", "of stage 0 is no number in config.json"},
    };
    swin_model_params params = {.struct_size = sizeof params};
    for (int stage = 0; stage < 4; stage++)
        params.pretrained_window[stage][0] = params.pretrained_window[stage][1] = w12[stage];
    write_preset(NAMING_TIMM, "swinv2_tiny_patch4_window8_256", in_directory("model.safetensors"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[160];
        snprintf(text, sizeof text,
                 "{\"model_type\":\"swinv2\",\"image_size\":256,\"window_size\":16,\"pretrained_window_sizes\":%s}",
                 cases[i].list);
        write_text("config.json", text);
        must_refuse(in_directory("model.safetensors"), NULL, SWIN_ERR_MISMATCH, cases[i].words);
        sw_model *model = must_open(in_directory("model.safetensors"), &params);
        assert_windows(model, w16, w12, "from config.json, pre-training windows from the caller");
        sw_model_destroy(model);
    }
    static const char name[] = "swinv2_tiny_patch4_window1to8_192to256.safetensors";
    write_text("config.json", "");
    write_preset(NAMING_TIMM, "swinv2_tiny_patch4_window8_256", in_directory(name));
    must_refuse(in_directory(name), NULL, SWIN_ERR_MISMATCH, "of stage 0 is 1 in the published file name");
}

/* Each source gives way to the one before it. */
static void sources_have_an_order(void **state)
{
    (void)state;
    static const char name[] = "swinv2_tiny_patch4_window16_256.safetensors";
    write_preset(NAMING_TIMM, "swinv2_tiny_patch4_window8_256", in_directory(name));
    sw_model *model = must_open(in_directory(name), NULL);
    assert_windows(model, w16, none, "from the published file name");
    sw_model_destroy(model);

    write_text("config.json", "{\"model_type\":\"swinv2\",\"image_size\":384,\"window_size\":24,"
                              "\"pretrained_window_sizes\":[12,12,12,6]}");
    model = must_open(in_directory(name), NULL);
    assert_windows(model, w24, w12, "from config.json, pre-training windows from config.json");
    sw_model_destroy(model);

    /* Stored buffers, here of microsoft's naming and a window of 8. */
    swin_config config;
    tensor_file file = {0};
    assert_int_equal(sw_config_preset(&config, "swinv2_tiny_patch4_window8_256", NULL), SWIN_OK);
    naming_write(NAMING_MICROSOFT, &config, SEED, "", &file);
    tensor_file_write(&file, in_directory(name));
    tensor_file_free(&file);
    model = must_open(in_directory(name), NULL);
    assert_windows(model, w8, none, "from stored buffers, pre-training windows from stored buffers");
    sw_model_destroy(model);

    swin_model_params params = {.struct_size = sizeof params};
    for (int stage = 0; stage < 4; stage++)
        params.window[stage][0] = params.window[stage][1] = w12[stage];
    model = must_open(in_directory(name), &params);
    assert_windows(model, w12, none, "from the caller, pre-training windows from stored buffers");
    sw_model_destroy(model);
    for (int stage = 0; stage < 4; stage++)
        params.pretrained_window[stage][0] = params.pretrained_window[stage][1] = w8[stage];
    model = must_open(in_directory(name), &params);
    assert_windows(model, w12, w8, "from the caller, pre-training windows from the caller");
    sw_model_destroy(model);
}

/* Coordinates are relative to the pre-training window: it can be read off them. */
static void stored_coordinates_tell_the_pretrained_window(void **state)
{
    (void)state;
    swin_config config;
    static const char *const presets[] = {
        "swinv2_base_patch4_window12to16_192to256", "swinv2_base_patch4_window12to24_192to384",
        "swinv2_tiny_patch4_window8_256",
    };
    for (int i = 0; i < 3; i++) {
        tensor_file file = {0};
        swin_model_info info;
        assert_int_equal(sw_config_preset(&config, presets[i], NULL), SWIN_OK);
        config.depths[2] = 2; /* smaller, so that no name fits */
        naming_write(NAMING_MICROSOFT, &config, SEED, "", &file);
        tensor_file_write(&file, in_directory("a"));
        tensor_file_free(&file);
        sw_model *model = must_open(in_directory("a"), NULL);
        assert_memory_equal(sw_model_config(model)->pretrained_window, config.pretrained_window,
                            sizeof config.pretrained_window);
        sw_model_info(model, &info);
        assert_string_equal(info.name, "");
        sw_model_destroy(model);
    }
}

/* Older files of mmpretrain and torchvision without coordinates: the index alone tells a square window. */
static void an_index_alone_tells_a_square_window(void **state)
{
    (void)state;
    static const enum naming namings[] = {NAMING_MICROSOFT, NAMING_TORCHVISION};
    for (int n = 0; n < 2; n++) {
        const swin_config config = small_v2();
        tensor_file file = {0};
        naming_write(namings[n], &config, SEED, "", &file);
        for (size_t i = file.count; i-- > 0;) {
            if (strstr(tensor_file_name(&file, i), "relative_coords_table") != NULL)
                tensor_file_remove(&file, tensor_file_name(&file, i));
        }
        tensor_file_write(&file, in_directory("a"));
        tensor_file_free(&file);
        sw_model *model = must_open(in_directory("a"), NULL);
        assert_memory_equal(sw_model_config(model)->window, config.window, sizeof config.window);
        sw_model_destroy(model);
    }
}

/* A table of 221 = 13 * 17 entries: of 7 x 9 or of 9 x 7, nobody can tell. */
static void windows_that_are_not_square_must_be_given(void **state)
{
    (void)state;
    swin_config config = small_v1();
    config.window[2][0] = 7;
    config.window[2][1] = 9;
    tensor_file file = {0};
    naming_write(NAMING_TIMM, &config, SEED, "", &file);
    tensor_file_write(&file, in_directory("a"));
    tensor_file_free(&file);
    must_refuse(in_directory("a"), NULL, SWIN_ERR_MISMATCH, "221 entries");
    must_refuse(in_directory("a"), NULL, SWIN_ERR_MISMATCH, "window of stage 2 (params.window, --window)");

    swin_model_params params = {.struct_size = sizeof params, .window = {{0, 0}, {0, 0}, {7, 9}}};
    sw_model *seeded = must_create(&config, SEED), *model = must_open(in_directory("a"), &params);
    assert_models_equal(seeded, model);
    assert_memory_equal(sw_model_config(model)->window, config.window, sizeof config.window);
    sw_model_destroy(model);
    sw_model_destroy(seeded);
    /* Of another window that a table of 221 entries cannot be resized to: which one is stored is still not known. */
    params.window[2][1] = 7;
    must_refuse(in_directory("a"), &params, SWIN_ERR_MISMATCH, "221 entries");

    /* Coordinates tell both sides. */
    config = small_v2();
    config.window[2][0] = 7;
    config.window[2][1] = 9;
    naming_write(NAMING_MICROSOFT, &config, SEED, "", &file);
    tensor_file_write(&file, in_directory("a"));
    tensor_file_free(&file);
    model = must_open(in_directory("a"), NULL);
    assert_memory_equal(sw_model_config(model)->window, config.window, sizeof config.window);
    sw_model_destroy(model);
}

static void windows_of_stages_that_are_not_there_do_not_matter(void **state)
{
    (void)state;
    swin_config config = small_v1();
    config.stages = 3;
    config.depths[3] = config.heads[3] = config.window[3][0] = config.window[3][1] = 0;
    tensor_file file = {0};
    naming_write(NAMING_TIMM, &config, SEED, "", &file);
    tensor_file_write(&file, in_directory("a"));
    tensor_file_free(&file);
    const swin_model_params params = {.struct_size = sizeof params, .window = {{6, 6}, {6, 6}, {6, 6}, {6, 6}}};
    sw_model *model = must_open(in_directory("a"), &params);
    assert_int_equal(sw_model_config(model)->window[2][0], 6);
    assert_int_equal(sw_model_config(model)->window[3][0], 0);
    sw_model_destroy(model);
}

/* timm's lineage limits windows by a size that its files do not tell. */
static void an_unknown_image_size_is_reported(void **state)
{
    (void)state;
    static const struct {
        int32_t lineage, version, size;
        bool unknown;
    } cases[] = {
        {SWIN_LINEAGE_AUTO, 1, 0, true},        {SWIN_LINEAGE_AUTO, 1, 224, false},
        {SWIN_LINEAGE_DETECTION, 1, 0, false},  {SWIN_LINEAGE_HUGGINGFACE, 1, 0, false},
        {SWIN_LINEAGE_AUTO, 2, 0, true},        {SWIN_LINEAGE_HUGGINGFACE, 2, 0, true},
        {SWIN_LINEAGE_MICROSOFT, 2, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const swin_config config = cases[i].version == 1 ? small_v1() : small_v2();
        tensor_file file = {0};
        naming_write(NAMING_TIMM, &config, SEED, "", &file);
        tensor_file_write(&file, in_directory("a"));
        tensor_file_free(&file);
        swin_model_params params = {.struct_size = sizeof params, .lineage = cases[i].lineage};
        params.image_size[0] = params.image_size[1] = cases[i].size;
        memcpy(params.window, config.window, sizeof params.window);
        sw_model *model = must_open(in_directory("a"), &params);
        swin_model_info info;
        sw_model_info(model, &info);
        assert_int_equal(strstr(info.window_reason, "image size unknown") != NULL, cases[i].unknown);
        sw_model_destroy(model);
    }
}

/* Another window changes V1's numbers, which is said. */
static void resized_biases_are_reported(void **state)
{
    (void)state;
    static const struct {
        int32_t window[SWIN_MAX_STAGES][2];
        const char *reason;
    } cases[] = {
        {{{0}}, "from the sizes of the position bias tables;"},
        {{{4, 4}, {4, 4}, {4, 4}, {4, 4}}, "from the caller;"},
        {{{8, 8}, {8, 8}, {8, 8}, {8, 8}}, "from the caller; position biases resized from 4x4 to 8x8;"},
        {{{4, 4}, {4, 4}, {4, 4}, {3, 6}}, "from the caller; position biases resized from 4x4 to 3x6;"},
        {{{5, 5}, {8, 8}, {4, 4}, {4, 4}}, "from the caller; position biases resized in 2 of 4 stages;"},
    };
    swin_config config = small_v1();
    tensor_file file = {0};
    for (int s = 0; s < config.stages; s++)
        config.window[s][0] = config.window[s][1] = 4;
    naming_write(NAMING_TIMM, &config, SEED, "", &file);
    tensor_file_write(&file, in_directory("a"));
    tensor_file_free(&file);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        swin_model_params params = {.struct_size = sizeof params};
        swin_model_info info;
        memcpy(params.window, cases[i].window, sizeof params.window);
        sw_model *model = must_open(in_directory("a"), &params);
        sw_model_info(model, &info);
        if (strncmp(info.window_reason, cases[i].reason, strlen(cases[i].reason)) != 0)
            fail_msg("\"%s\", expected \"%s\"", info.window_reason, cases[i].reason);
        sw_model_destroy(model);
    }
}

static void image_sizes_come_from_the_same_places(void **state)
{
    (void)state;
    static const char name[] = "swin_tiny_patch4_window7_224.safetensors";
    write_preset(NAMING_TIMM, "swin_tiny_patch4_window7_224", in_directory(name));
    sw_model *model = must_open(in_directory(name), NULL);
    assert_int_equal(sw_model_config(model)->image_size[0], 224);
    sw_model_destroy(model);
    write_text("config.json", "{\"architecture\":\"swin_tiny_patch4_window7_224\","
                              "\"pretrained_cfg\":{\"input_size\":[3,256,320]}}");
    model = must_open(in_directory(name), NULL);
    assert_int_equal(sw_model_config(model)->image_size[0], 256);
    assert_int_equal(sw_model_config(model)->image_size[1], 320);
    sw_model_destroy(model);
    const swin_model_params params = {.struct_size = sizeof params, .image_size = {64, 96}};
    model = must_open(in_directory(name), &params);
    assert_int_equal(sw_model_config(model)->image_size[0], 64);
    assert_int_equal(sw_model_config(model)->image_size[1], 96);
    sw_model_destroy(model);
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
        TEST(names_tell_v2s_windows),
        TEST(a_config_json_tells_v2s_windows),
        TEST(impossible_pretrained_windows_are_refused),
        TEST(sources_have_an_order),
        TEST(stored_coordinates_tell_the_pretrained_window),
        TEST(an_index_alone_tells_a_square_window),
        TEST(windows_that_are_not_square_must_be_given),
        TEST(windows_of_stages_that_are_not_there_do_not_matter),
        TEST(an_unknown_image_size_is_reported),
        TEST(resized_biases_are_reported),
        TEST(image_sizes_come_from_the_same_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
