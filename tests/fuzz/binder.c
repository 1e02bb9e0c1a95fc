/* SPDX-License-Identifier: MIT */
/*
 * The input is a recipe: a small Swin Transformer in one of the published namings, and what is done to its tensors.
 * Where the model opens all the same, everything is read, and small ones are run.
 *
 *   naming, version, parameters (bits), then operations of three bytes: what, which tensor, how
 *
 * One operation is no tensor's: it gives the file a name that tells a window, or puts a config.json beside it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/geometry.h"
#include "memory_counted.h"
#include "model/canonical.h"
#include "model/model.h"
#include "../model/naming_writer.h"
#include "target.h"

enum {
    MAX_OPERATIONS = 24,
    MAX_TENSORS = 2000,
    MAX_READ = 1 << 20,     /* values of a model that are read        */
    MAX_BIAS_WINDOW = 12,   /* windows whose position bias is made    */
    MAX_RUN_VALUES = 40000, /* parameters of a model that is run      */
    MAX_RUN_SLOTS = 400     /* slots of a window of such a model      */
};

/* Parameters. */
enum {
    GIVE_LINEAGE = 1,
    GIVE_WINDOW = 2,
    GIVE_NORMS = 4,
    GIVE_PREFIX = 8,
    GIVE_IMAGE_SIZE = 16,
    GIVEN = 31, /* any of these */
    PREFIXED = 32,
    RUN = 64 | 128 /* both: running takes a hundred times as long as opening */
};

static const uint64_t sides[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 23, 24, 31, 32, 36, 48, 49, 63, 64, 257,
                                 127, 128, 169, 255, 256, 512, 4096, 65536};

struct recipe {
    const uint8_t *at, *end;
};

/* What lies around the tensors: neither is theirs, and both may contradict them. */
struct surroundings {
    const char *file_name;
    char config[256]; /* of config.json; empty: none */
};

static uint8_t next(struct recipe *recipe)
{
    return recipe->at < recipe->end ? *recipe->at++ : 0;
}

/* Puts another tensor of zeros, or of one value, under the same name. */
static void replace(tensor_file *file, const char *name, const char *dtype, size_t element, int rank,
                    const uint64_t *shape, const float *value)
{
    char kept[256];
    size_t elements = 1;
    snprintf(kept, sizeof kept, "%s", name);
    for (int i = 0; i < rank; i++) {
        if (__builtin_mul_overflow(elements, (size_t)shape[i], &elements))
            return;
    }
    if (elements > 1 << 22)
        return;
    float *data = NULL;
    if (value != NULL && elements * element <= 1 << 16 && strcmp(dtype, "F32") == 0) {
        data = malloc(elements * sizeof *data + 1);
        for (size_t i = 0; i < elements; i++)
            data[i] = *value;
    }
    tensor_file_remove(file, kept);
    tensor_file_add(file, kept, dtype, rank, shape, data, elements * element);
    free(data);
}

/* Another number in place of the n-th of a name. */
static void renumber(tensor_file *file, const char *name, unsigned n, unsigned number)
{
    char changed[256];
    const char *at = name;
    for (;; n--) {
        at = strpbrk(at, "0123456789");
        if (at == NULL || n == 0)
            break;
        at += strspn(at, "0123456789");
    }
    if (at == NULL)
        return;
    snprintf(changed, sizeof changed, "%.*s%u%s", (int)(at - name), name, number, at + strspn(at, "0123456789"));
    tensor_file_rename(file, name, changed);
}

static unsigned side(unsigned index)
{
    return (unsigned)sides[index % (sizeof sides / sizeof sides[0])];
}

static void surround(struct surroundings *around, int version, unsigned which, unsigned how)
{
    static const char *const names[] = {
        "swinv2_window4_64",      "swinv2_w4to8_32to64",    "swin_window3_32", "swinv2_window12to16_192to256",
        "swinv2_window2to3_4to9", "swinv2_window128_4096", "swinv2_32",       "swinv2_window129to130_64to64",
    };
    static const char *const pretrained[] = {"null",     "[0,0]",  "[2,6]",   "[1,1]",
                                             "[12,129]", "[-1,4]", "[\"a\"]", "[12]"};
    if (how % 2 == 0)
        around->file_name = names[which % (sizeof names / sizeof names[0])];
    else
        snprintf(around->config, sizeof around->config,
                 "{\"model_type\":\"swin%s\",\"window_size\":%u,\"image_size\":[%u,%u],"
                 "\"pretrained_window_sizes\":%s}",
                 version == 0 ? "" : "v2", side(which), side(how / 2), side(how / 2 + which / 128),
                 pretrained[which / 32]);
}

static void operate(tensor_file *file, unsigned what, unsigned which, unsigned how)
{
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"I64", 8}, {"U8", 1}, {"F8_E4M3", 1}, {"BOOL", 1}};
    static const float values[] = {0.0f, 1.0f, -1.0f, 16.0f, 1e30f, -1e30f, __builtin_nanf(""), __builtin_inff(),
                                   0.5f, 2.3f, 1e-42f, 7.0f};
    uint64_t shape[16];
    if (file->count == 0)
        return;
    const char *name = tensor_file_name(file, which % file->count);
    int rank = tensor_file_shape(file, name, shape);
    switch (what % 8) {
    case 0:
        tensor_file_remove(file, name);
        break;
    case 1:
        if (rank > 0)
            shape[how % (unsigned)rank] = sides[how / 8 % (sizeof sides / sizeof sides[0])];
        replace(file, name, "F32", 4, rank, shape, NULL);
        break;
    case 2:
        replace(file, name, types[how % 8].name, types[how % 8].bytes, rank, shape, NULL);
        break;
    case 3:
        renumber(file, name, how % 4, how / 4);
        break;
    case 4: { /* of all tensors with the same beginning */
        char beginning[256];
        snprintf(beginning, sizeof beginning, "%.*s", (int)strcspn(name, "0123456789") + 1, name);
        for (size_t i = 0; i < file->count; i++) {
            const char *other = tensor_file_name(file, i);
            if (strncmp(other, beginning, strlen(beginning)) == 0)
                renumber(file, other, how % 4, how / 4);
        }
        break;
    }
    case 5:
        if (how % 2 == 0 && rank < 9) {
            shape[rank++] = 1;
        } else if (rank > 0) {
            rank--;
        }
        replace(file, name, "F32", 4, rank, shape, NULL);
        break;
    case 6:
        replace(file, name, "F32", 4, rank, shape, &values[how % (sizeof values / sizeof values[0])]);
        break;
    default: { /* a copy of everything, or of one tensor, elsewhere */
        static const char *const prefixes[] = {"backbone.", "teacher.", "model.", "a.b."};
        if (file->count > MAX_TENSORS / 4)
            break;
        if (how % 2 == 0) {
            tensor_file copy = {0};
            tensor_file_append(&copy, file, "");
            tensor_file_append(file, &copy, prefixes[how / 2 % 4]);
            tensor_file_free(&copy);
        } else {
            char copied[300];
            snprintf(copied, sizeof copied, "%s%s", prefixes[how / 2 % 4], name);
            size_t bytes = 4;
            for (int i = 0; i < rank; i++)
                bytes *= (size_t)shape[i];
            tensor_file_add(file, copied, "F32", rank, shape, NULL, bytes);
        }
        break;
    }
    }
}

/* Templates are made once; their values are only kept where there are few: they take no room as zeros. */
static const tensor_file *template_of(enum naming naming, int version)
{
    static tensor_file made[NAMING_COUNT][2];
    tensor_file *file = &made[naming][version];
    if (file->count == 0) {
        swin_config config = version == 0 ? small_v1() : small_v2();
        config.lineage = naming_lineage(naming);
        config.stages = 2;
        for (int s = 0; s < SWIN_MAX_STAGES; s++) {
            if (s >= config.stages)
                config.depths[s] = config.heads[s] = config.window[s][0] = config.window[s][1] =
                    config.pretrained_window[s][0] = config.pretrained_window[s][1] = 0;
        }
        config.out_norm = naming_has_out_norms(naming) ? 3 : 0;
        naming_write(naming, &config, 1, "", file);
        TARGET_REQUIRE(file->count > 0);
    }
    return file;
}

static void check_configuration(const swin_config *config)
{
    static const int32_t images[][2] = {{1, 1}, {20, 24}, {64, 7}, {200, 300}, {1, 700}};
    TARGET_REQUIRE(sw_config_check(config, NULL) == SWIN_OK);
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        int32_t map[2];
        sw_geometry_grid(config, images[i][0], images[i][1], map);
        for (int32_t s = 0; s < config->stages && map[0] > 0 && map[1] > 0; s++) {
            sw_geometry g;
            sw_geometry_init(&g, config, s, map, images[i]);
            /* What is planned for a window must do for every clamped one. */
            TARGET_REQUIRE(sw_geometry_slots(&g) >= 1);
            TARGET_REQUIRE(sw_geometry_slots(&g) <= config->window[s][0] * config->window[s][1]);
            map[0] = (map[0] + 1) / 2;
            map[1] = (map[1] + 1) / 2;
        }
    }
}

/* Says whether the model can be run: scales that are not finite are refused when they are read. */
static bool read_everything(const sw_model *model)
{
    const swin_config *config = sw_model_config(model);
    size_t total = 0;
    bool usable = true;
    for (int kind = 0; kind < SW_KIND_COUNT; kind++) {
        for (int32_t s = 0; s < config->stages; s++) {
            for (int32_t b = 0; b < config->depths[s]; b++) {
                const sw_tensor_id id = {(sw_kind)kind, s, b};
                int32_t rows, columns;
                sw_model_shape(model, id, &rows, &columns);
                const size_t count = (size_t)rows * (size_t)columns;
                total += count;
                if (count == 0 || total > MAX_READ)
                    continue;
                float *values = malloc(count * sizeof *values);
                TARGET_REQUIRE(values != NULL);
                const swin_status status = sw_model_read(model, id, 0, rows, values, NULL);
                TARGET_REQUIRE(status == SWIN_OK || (status == SWIN_ERR_MISMATCH && id.kind == SW_LOGIT_SCALE));
                usable = usable && status == SWIN_OK;
                free(values);
            }
        }
    }
    for (int32_t s = 0; s < config->stages; s++) {
        const int32_t *window = config->window[s];
        if (window[0] > MAX_BIAS_WINDOW || window[1] > MAX_BIAS_WINDOW || config->heads[s] > 64 ||
            config->depths[s] > 8)
            continue;
        for (int32_t b = 0; b < config->depths[s]; b++) {
            const size_t count = (size_t)config->heads[s] * (size_t)(2 * window[0] - 1) * (size_t)(2 * window[1] - 1);
            float *values = malloc(count * sizeof *values);
            TARGET_REQUIRE(values != NULL && sw_model_position_bias(model, s, b, window[0], window[1], values, NULL) ==
                                                 SWIN_OK);
            free(values);
        }
    }
    return usable;
}

static bool is_small(const sw_model *model)
{
    const swin_config *config = sw_model_config(model);
    swin_model_info info;
    sw_model_info(model, &info);
    for (int32_t s = 0; s < config->stages; s++) {
        if (config->window[s][0] * config->window[s][1] > MAX_RUN_SLOTS)
            return false;
    }
    return info.parameter_count <= MAX_RUN_VALUES && config->patch_size <= 16;
}

static void run(const char *path, const swin_model_params *params)
{
    enum { HEIGHT = 20, WIDTH = 24 };
    static uint8_t pixels[HEIGHT * WIDTH * 3];
    swin_model *model;
    swin_session *session;
    swin_output_info infos[SWIN_MAX_STAGES];
    swin_maps maps;
    swin_image image;
    const swin_session_params one = {.struct_size = sizeof one, .threads = 1, .precision = SWIN_PRECISION_F32};
    TARGET_REQUIRE(swin_model_open(path, params, &model, NULL) == SWIN_OK);
    TARGET_REQUIRE(swin_session_create(model, &one, &session, NULL) == SWIN_OK);
    swin_image_init(&image, sizeof image);
    image.data = pixels;
    image.height = HEIGHT;
    image.width = WIDTH;
    swin_maps_init(&maps, sizeof maps);
    if (swin_model_output_info(model, HEIGHT, WIDTH, infos, NULL) == SWIN_OK) {
        for (int s = 0; s < SWIN_MAX_STAGES && infos[s].channels > 0; s++) {
            maps.capacity[s] = (size_t)infos[s].channels * (size_t)infos[s].height * (size_t)infos[s].width;
            maps.data[s] = malloc(maps.capacity[s] * sizeof(float));
            TARGET_REQUIRE(maps.data[s] != NULL);
        }
        TARGET_REQUIRE(swin_session_run(session, &image, 1, &maps, NULL) == SWIN_OK);
        for (int s = 0; s < SWIN_MAX_STAGES; s++)
            free(maps.data[s]);
    }
    swin_session_destroy(session);
    swin_model_destroy(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct recipe recipe = {data, data + size};
    const enum naming naming = (enum naming)(next(&recipe) % NAMING_COUNT);
    const int version = next(&recipe) % 2;
    const unsigned bits = next(&recipe), more = next(&recipe);

    struct surroundings around = {.file_name = "model"};
    tensor_file file = {0};
    tensor_file_append(&file, template_of(naming, version), bits & PREFIXED ? "a.b." : "");
    for (int i = 0; i < MAX_OPERATIONS && recipe.at < recipe.end; i++) {
        const unsigned what = next(&recipe), which = next(&recipe), how = next(&recipe);
        if (what % 8 == 7 && how >= 128)
            surround(&around, version, which, how - 128);
        else
            operate(&file, what, which + 256 * (what / 128), how);
    }
    if (around.config[0] != '\0')
        target_file("config.json", around.config, strlen(around.config));
    char file_name[64];
    snprintf(file_name, sizeof file_name, "%s.safetensors", around.file_name);
    const char *path = target_file(file_name, "", 0);
    tensor_file_write(&file, path);
    tensor_file_free(&file);

    swin_model_params params = {.struct_size = sizeof params, .precision = SWIN_PRECISION_F32};
    if (bits & GIVE_LINEAGE)
        params.lineage = (int32_t)(more % 7);
    for (int s = 0; s < SWIN_MAX_STAGES && bits & GIVE_WINDOW; s++) {
        params.window[s][0] = 1 + (int32_t)(more % 13);
        params.window[s][1] = 1 + (int32_t)(more / 16);
    }
    if (bits & GIVE_NORMS)
        params.out_norm = (int32_t)(more % 3);
    if (bits & GIVE_PREFIX)
        params.prefix = more % 2 != 0 ? "a.b." : "teacher";
    if (bits & GIVE_IMAGE_SIZE)
        params.image_size[0] = params.image_size[1] = 1 + 3 * (int32_t)more;

    swin_error err;
    sw_error_reset(&err);
    sw_model *model;
    const swin_status status = sw_model_open(path, &params, &model, &err);
    TARGET_REQUIRE((status == SWIN_OK) == (err.message[0] == '\0'));
    if (status == SWIN_OK) {
        check_configuration(sw_model_config(model));
        const bool runs = read_everything(model) && is_small(model);
        sw_model_destroy(model);
        if (runs && (bits & RUN) == RUN)
            run(path, &params);
    } else {
        TARGET_REQUIRE(status == SWIN_ERR_UNSUPPORTED || status == SWIN_ERR_MISMATCH || status == SWIN_ERR_FORMAT ||
                       status == SWIN_ERR_LIMIT || (status == SWIN_ERR_ARGUMENT && (bits & GIVEN) != 0));
    }
    target_files_remove();
    TARGET_REQUIRE(memory_live_blocks() == 0);
    return 0;
}
