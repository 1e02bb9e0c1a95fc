/* SPDX-License-Identifier: MIT */
/* The key lists of the published packages (../golden/keys): each opens, nothing unknown, nothing missing. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory_counted.h"
#include "naming_writer.h"

#define MAX_PRESETS 16

/* What each list must be recognised as; the longest beginning of its name that is here counts. */
static const struct {
    const char *list;
    const char *dialect; /* NULL: refused */
    swin_lineage lineage;
    int out_norm;
    bool alone; /* nothing beside the backbone but its own classifier */
} lists[] = {
    {"detection", "detection", SWIN_LINEAGE_DETECTION, 15, true},
    {"microsoft", "microsoft", SWIN_LINEAGE_MICROSOFT, 0, true},
    {"mmdetection", "mmdetection", SWIN_LINEAGE_DETECTION, 15, true},
    {"mmdetection-mask-rcnn", "mmdetection", SWIN_LINEAGE_DETECTION, 15, false},
    {"mmpretrain", "mmpretrain", SWIN_LINEAGE_MMPRETRAIN, 8, true},
    {"mmpretrain-simmim", "mmpretrain", SWIN_LINEAGE_MMPRETRAIN, 8, false},
    {"paddledetection", "paddle", SWIN_LINEAGE_DETECTION, 15, true},
    {"timm", "timm", SWIN_LINEAGE_TIMM, 0, true},
    {"timm-features", "timm_features", SWIN_LINEAGE_TIMM, 0, true},
    {"torchvision", "torchvision", SWIN_LINEAGE_TORCHVISION, 0, true},
    {"huggingface4", "huggingface", SWIN_LINEAGE_HUGGINGFACE, 0, true},
    {"huggingface4-backbone", "huggingface", SWIN_LINEAGE_DETECTION, 15, true},
    {"huggingface4-grounding-dino", "huggingface", SWIN_LINEAGE_DETECTION, 14, false},
    {"huggingface4-mask2former", "huggingface", SWIN_LINEAGE_DETECTION, 15, false},
    {"huggingface4-maskformer", "huggingface", SWIN_LINEAGE_DETECTION, 15, false},
    {"huggingface4-mim", "huggingface", SWIN_LINEAGE_HUGGINGFACE, 0, false},
    {"huggingface4-upernet", "huggingface", SWIN_LINEAGE_DETECTION, 15, false},
    {"huggingface5", "huggingface5", SWIN_LINEAGE_HUGGINGFACE, 0, true},
    {"huggingface5-backbone", "huggingface5", SWIN_LINEAGE_DETECTION, 15, true},
    {"huggingface5-grounding-dino", "huggingface5", SWIN_LINEAGE_DETECTION, 14, false},
    {"huggingface5-mask2former", "huggingface5", SWIN_LINEAGE_DETECTION, 15, false},
    {"huggingface5-maskformer", "huggingface", SWIN_LINEAGE_DETECTION, 15, false},
    {"huggingface5-mim", "huggingface5", SWIN_LINEAGE_HUGGINGFACE, 0, false},
    {"huggingface5-upernet", "huggingface5", SWIN_LINEAGE_DETECTION, 15, false},
    /* transformers 5.24 still names V2's blocks as version 4 does. */
    {"v2-huggingface4", "huggingface", SWIN_LINEAGE_HUGGINGFACE, 0, true},
    {"v2-huggingface4-mim", "huggingface", SWIN_LINEAGE_HUGGINGFACE, 0, false},
    {"v2-huggingface5", "huggingface", SWIN_LINEAGE_HUGGINGFACE, 0, true},
    {"v2-huggingface5-mim", "huggingface", SWIN_LINEAGE_HUGGINGFACE, 0, false},
    {"v2-microsoft", "microsoft", SWIN_LINEAGE_MICROSOFT, 0, true},
    {"v2-mmpretrain", "mmpretrain", SWIN_LINEAGE_MMPRETRAIN, 8, true},
    {"v2-simmim", "simmim", SWIN_LINEAGE_MICROSOFT, 0, false},
    {"v2-timm", "timm", SWIN_LINEAGE_TIMM, 0, true},
    {"v2-timm-features", "timm_features", SWIN_LINEAGE_TIMM, 0, true},
    {"v2-timm-old", "microsoft", SWIN_LINEAGE_MICROSOFT, 0, true},
    {"v2-timm-cr", NULL, SWIN_LINEAGE_AUTO, 0, true},
    {"v2-torchvision", "torchvision", SWIN_LINEAGE_TORCHVISION, 0, true},
};

/* The files that a list stands for, one per preset. */
typedef struct key_list {
    char *presets[MAX_PRESETS];
    tensor_file files[MAX_PRESETS];
    size_t count;
} key_list;

static size_t element_size(const char *dtype)
{
    return strcmp(dtype, "I64") == 0 ? 8 : strcmp(dtype, "F32") == 0 ? 4 : 0;
}

static void add_tensor(tensor_file *file, const char *name, const char *dtype, const char *shape_text)
{
    uint64_t shape[8];
    int rank = 0;
    size_t bytes = element_size(dtype);
    assert_true(bytes > 0);
    if (strcmp(shape_text, "-") == 0)
        return;
    for (const char *p = shape_text; strcmp(shape_text, "scalar") != 0 && p != NULL; p = strchr(p, ',')) {
        p += *p == ',';
        shape[rank] = strtoull(p, NULL, 10);
        bytes *= (size_t)shape[rank++];
    }
    tensor_file_add(file, name, dtype, rank, shape, NULL, bytes);
}

/* A line of the list: a name, in which {0,1} stands for one name each, a type, and a shape per preset. */
static void add_line(key_list *list, char *line)
{
    char *rest = NULL;
    const char *name = strtok_r(line, " ", &rest), *dtype = strtok_r(NULL, " ", &rest);
    char *shapes[MAX_PRESETS];
    for (size_t i = 0; i < list->count; i++) {
        shapes[i] = strtok_r(NULL, " ", &rest);
        assert_non_null(shapes[i]);
    }
    const char *brace = strchr(name, '{');
    for (const char *number = brace == NULL ? "" : brace + 1; number != NULL;) {
        char full[256];
        const int digits = (int)strcspn(number, ",}");
        if (brace == NULL)
            snprintf(full, sizeof full, "%s", name);
        else
            snprintf(full, sizeof full, "%.*s%.*s%s", (int)(brace - name), name, digits, number,
                     strchr(brace, '}') + 1);
        for (size_t i = 0; i < list->count; i++)
            add_tensor(&list->files[i], full, dtype, shapes[i]);
        number = brace != NULL && number[digits] == ',' ? number + digits + 1 : NULL;
    }
}

static key_list read_list(const char *path)
{
    key_list list = {.count = 0};
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    assert_non_null(in);
    while (getline(&line, &size, in) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        if (strncmp(line, "presets ", 8) != 0) {
            add_line(&list, line);
            continue;
        }
        char *rest = NULL;
        for (char *name = strtok_r(line + 8, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest)) {
            assert_true(list.count < MAX_PRESETS);
            list.presets[list.count++] = strdup(name);
        }
    }
    free(line);
    fclose(in);
    return list;
}

static size_t find_expectation(const char *list)
{
    size_t best = 0, longest = 0;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const size_t length = strlen(lists[i].list);
        if (length > longest && strncmp(list, lists[i].list, length) == 0) {
            best = i;
            longest = length;
        }
    }
    assert_true(longest > 0);
    return best;
}

static void check_model(const char *list, const char *preset, const sw_model *model)
{
    const size_t e = find_expectation(list);
    const swin_config *config = sw_model_config(model);
    swin_config published;
    swin_model_info info;
    sw_model_info(model, &info);
    if (strcmp(info.dialect, lists[e].dialect) != 0 || config->lineage != (int32_t)lists[e].lineage ||
        config->out_norm != lists[e].out_norm || info.unknown_count != 0 || (info.foreign_count == 0) != lists[e].alone)
        fail_msg("%s of %s: %s, %s, norms %d, %d unknown, %d foreign", preset, list, info.dialect, info.lineage,
                 config->out_norm, (int)info.unknown_count, (int)info.foreign_count);
    /* Some lists have sizes that were never published, as a window of 12 in a tiny model. */
    if (sw_config_preset(&published, preset, NULL) != SWIN_OK)
        return;
    assert_int_equal(config->version, published.version);
    assert_int_equal(config->embed_dim, published.embed_dim);
    assert_memory_equal(config->depths, published.depths, sizeof published.depths);
    assert_memory_equal(config->heads, published.heads, sizeof published.heads);
    assert_memory_equal(config->window, published.window, sizeof published.window);
    assert_memory_equal(config->pretrained_window, published.pretrained_window, sizeof published.pretrained_window);
    assert_memory_equal(config->image_size, published.image_size, sizeof published.image_size);
    assert_int_equal(config->block_norm_period, published.block_norm_period);
    assert_true(config->mlp_ratio == published.mlp_ratio);
    assert_string_equal(info.name, preset);
}

static size_t check_list(const char *file_name)
{
    char path[1024], list_name[128];
    snprintf(path, sizeof path, "%s/%s", KEYS_DIRECTORY, file_name);
    snprintf(list_name, sizeof list_name, "%.*s", (int)(strlen(file_name) - 4), file_name);
    key_list list = read_list(path);
    assert_true(list.count > 0);
    for (size_t i = 0; i < list.count; i++) {
        /* The name as it was published: it is what tells the windows where nothing else does. */
        char name[128];
        snprintf(name, sizeof name, "%s.safetensors", list.presets[i]);
        tensor_file_write(&list.files[i], in_directory(name));
        if (lists[find_expectation(list_name)].dialect == NULL) {
            must_refuse(in_directory(name), NULL, SWIN_ERR_UNSUPPORTED, "swinv2_cr");
        } else {
            sw_model *model = must_open(in_directory(name), NULL);
            check_model(list_name, list.presets[i], model);
            sw_model_destroy(model);
        }
        remove(in_directory(name));
        tensor_file_free(&list.files[i]);
        free(list.presets[i]);
    }
    return list.count;
}

static void every_published_key_list_opens(void **state)
{
    (void)state;
    DIR *directory = opendir(KEYS_DIRECTORY);
    size_t files = 0, models = 0;
    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length > 4 && strcmp(entry->d_name + length - 4, ".txt") == 0) {
            models += check_list(entry->d_name);
            files++;
        }
    }
    closedir(directory);
    assert_true(files >= 40);
    assert_true(models >= 250);
}

/* The small networks of ../golden: one set of weights, saved by the packages themselves. Every file that shares the
 * first one's tensors must give them back bit for bit, level norms aside. */
static void the_packages_own_files_hold_the_same_weights(void **state)
{
    (void)state;
    static const char *const names[] = {
        "v1-mmdetection",           "v1-mmpretrain",           "v1-huggingface4-backbone",   "v1-huggingface5-backbone",
        "v1-huggingface4-classifier", "v1-huggingface5-classifier", "v1-microsoft",          "v1-paddledetection",
        "v1-timm",                  "v1-timm-features",        "v1-torchvision",
    };
    swin_model_params params = {.struct_size = sizeof params, .out_norm = SWIN_OUT_NORM_OFF};
    char path[1024];
    snprintf(path, sizeof path, "%s/v1-detection.safetensors", GOLDEN_DIRECTORY);
    sw_model *first = must_open(path, &params);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        swin_model_info info;
        snprintf(path, sizeof path, "%s/%s.safetensors", GOLDEN_DIRECTORY, names[i]);
        sw_model *other = must_open(path, &params);
        sw_model_info(other, &info);
        if (info.unknown_count != 0)
            fail_msg("%s: %s is unknown", names[i], sw_model_tensor_name(other, SWIN_TENSOR_UNKNOWN, 0));
        assert_models_equal(first, other);
        sw_model_destroy(other);
    }
    sw_model_destroy(first);
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
        TEST(every_published_key_list_opens),
        TEST(the_packages_own_files_hold_the_same_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
