/* SPDX-License-Identifier: MIT */
#include "hints.h"

#include <string.h>

#include "../base/memory.h"
#include "../weights/file.h"
#include "../weights/json.h"

#define CONFIG_LIMIT ((size_t)4 << 20)
#define CONFIG_DEPTH 16

static bool starts_with(const char *text, size_t length, const char *beginning)
{
    const size_t n = strlen(beginning);
    return length >= n && memcmp(text, beginning, n) == 0;
}

/* One word of a name, "window12to16" or "w8" or "192to256" or "256px": `before` is set only where there is a "to". */
static bool read_range(const char *word, size_t length, int32_t *before, int32_t *after)
{
    int32_t values[2] = {0, 0};
    size_t at = 0;
    for (int part = 0; part < 2; part++) {
        const size_t start = at;
        while (at < length && word[at] >= '0' && word[at] <= '9' && at - start < 5)
            values[part] = values[part] * 10 + (word[at++] - '0');
        if (at == start)
            return false;
        if (part == 1 || !starts_with(word + at, length - at, "to"))
            break;
        at += 2;
    }
    if (length - at == 2 && starts_with(word + at, 2, "px"))
        at += 2;
    *before = values[1] != 0 ? values[0] : 0;
    *after = values[1] != 0 ? values[1] : values[0];
    return at == length;
}

/* The size that a name's word claims: the first stage's channels and the third stage's blocks. */
static bool size_agrees(const char *word, size_t length, const swin_config *config)
{
    static const struct {
        const char *word;
        int32_t embed_dim, depth;
    } sizes[] = {
        {"tiny", 96, 6},    {"small", 96, 18},  {"base", 128, 18},
        {"large", 192, 18}, {"huge", 352, 18}, {"giant", 512, 42},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (length == strlen(sizes[i].word) && memcmp(word, sizes[i].word, length) == 0)
            return config->embed_dim == sizes[i].embed_dim && config->stages > 2 &&
                   config->depths[2] == sizes[i].depth;
    }
    return true;
}

void sw_hints_from_name(const char *name, size_t length, const swin_config *config, sw_hints *hints)
{
    static const char separators[] = "_-.";
    *hints = (sw_hints){0};
    int32_t window = 0, image = 0, trained_window = 0, trained_image = 0, before, after;
    bool swin = false, searched = false;
    for (size_t at = 0; at < length;) {
        size_t end = at;
        while (end < length && memchr(separators, name[end], sizeof separators - 1) == NULL)
            end++;
        const char *word = name + at;
        const size_t n = end - at;
        const size_t skip = starts_with(word, n, "window") ? 6 : starts_with(word, n, "w") ? 1 : 0;
        if (starts_with(word, n, config->version == 2 ? "swinv2" : "swin") && n == (config->version == 2 ? 6u : 4u))
            swin = true;
        else if (n == 2 && memcmp(word, "s3", 2) == 0)
            searched = true; /* AutoFormerV2's models have the names of other sizes */
        else if (!searched && !size_agrees(word, n, config))
            return;
        else if (skip > 0 && window == 0 && read_range(word + skip, n - skip, &before, &after)) {
            window = after;
            trained_window = before;
        } else if (image == 0 && read_range(word, n, &before, &after) && after >= 32 && after <= 4096) {
            image = after;
            trained_image = before;
        }
        at = end + 1;
    }
    if (!swin || (window == 0 && image == 0) || window > SW_MAX_WINDOW || trained_window > SW_MAX_WINDOW)
        return;
    const bool trained = trained_window > 0 && trained_image > 0;
    hints->known = true;
    hints->window[0] = hints->window[1] = window;
    hints->image_size[0] = hints->image_size[1] = image;
    hints->pretrained_known = window > 0 && (trained || trained_window == 0);
    /* A window was not larger than the map that it was trained on. */
    for (int32_t stage = 0; stage < config->stages && trained; stage++) {
        const int32_t map = trained_image / config->patch_size >> stage;
        hints->pretrained[stage] = map < trained_window ? map : trained_window;
    }
}

void sw_hints_from_path(const char *path, const swin_config *config, sw_hints *hints)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t length = strlen(name);
    static const char *const endings[] = {".index.json", ".safetensors"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t n = strlen(endings[i]);
        if (length > n && memcmp(name + length - n, endings[i], n) == 0)
            length -= n;
    }
    sw_hints_from_name(name, length, config, hints);
    const bool general = starts_with(name, length, "model") || starts_with(name, length, "pytorch_model");
    if (hints->known || !general || slash == NULL)
        return;
    const char *start = slash;
    while (start > path && start[-1] != '/')
        start--;
    sw_hints_from_name(start, (size_t)(slash - start), config, hints);
}

/* One number for both axes, or two. */
static bool read_pair(const sw_json *value, int32_t limit, int32_t pair[2])
{
    const sw_json *first = sw_json_is(value, SW_JSON_ARRAY) ? sw_json_element(value, 0) : value;
    const sw_json *second = sw_json_is(value, SW_JSON_ARRAY) ? sw_json_element(value, 1) : value;
    if (!sw_json_is(first, SW_JSON_INTEGER) || !sw_json_is(second, SW_JSON_INTEGER) || sw_json_count(value) > 2 ||
        sw_json_integer(first) < 1 || sw_json_integer(first) > limit || sw_json_integer(second) < 1 ||
        sw_json_integer(second) > limit)
        return false;
    pair[0] = (int32_t)sw_json_integer(first);
    pair[1] = (int32_t)sw_json_integer(second);
    return true;
}

static bool list_agrees(const sw_json *list, const int32_t *values, int32_t count)
{
    if (list == NULL)
        return true;
    if (sw_json_count(list) != (size_t)count)
        return false;
    for (int32_t i = 0; i < count; i++) {
        if (sw_json_integer(sw_json_element(list, (size_t)i)) != values[i])
            return false;
    }
    return true;
}

static bool number_agrees(const sw_json *number, int32_t value)
{
    return number == NULL || sw_json_integer(number) == value;
}

/* What a list of pre-training windows says of a stage: SW_HINT_WRONG where that is no number or far from one. */
static int32_t pretrained_of(const sw_json *list, int32_t stage)
{
    if (list == NULL || sw_json_is(list, SW_JSON_NULL))
        return 0;
    const sw_json *entry = sw_json_element(list, (size_t)stage);
    const int64_t value = sw_json_integer(entry);
    return sw_json_is(entry, SW_JSON_INTEGER) && value >= 0 && value <= INT32_MAX ? (int32_t)value : SW_HINT_WRONG;
}

/* Hugging Face leaves out what is its class's default: image size 224, window 7, no pre-training window. */
static void read_huggingface(const sw_json *root, const swin_config *config, sw_hints *hints)
{
    const char *type = sw_json_text(sw_json_member(root, "model_type"));
    const char *wanted = config->version == 2 ? "swinv2" : "swin";
    if (type == NULL || (strcmp(type, wanted) != 0 && !(config->version == 1 && strcmp(type, "maskformer-swin") == 0)))
        return;
    if (!number_agrees(sw_json_member(root, "embed_dim"), config->embed_dim) ||
        !number_agrees(sw_json_member(root, "patch_size"), config->patch_size) ||
        !list_agrees(sw_json_member(root, "depths"), config->depths, config->stages) ||
        !list_agrees(sw_json_member(root, "num_heads"), config->heads, config->stages))
        return;

    const sw_json *window = sw_json_member(root, "window_size"), *image = sw_json_member(root, "image_size");
    const sw_json *pretrained = sw_json_member(root, "pretrained_window_sizes");
    hints->window[0] = hints->window[1] = 7;
    hints->image_size[0] = hints->image_size[1] = 224;
    if ((window != NULL && !read_pair(window, SW_MAX_WINDOW, hints->window)) ||
        (image != NULL && !read_pair(image, SW_MAX_IMAGE_SIZE, hints->image_size)))
        return;
    for (int32_t stage = 0; stage < config->stages; stage++)
        hints->pretrained[stage] = pretrained_of(pretrained, stage);
    hints->pretrained_known = true;
    hints->known = true;
}

static void read_timm(const sw_json *root, const swin_config *config, sw_hints *hints)
{
    const char *architecture = sw_json_text(sw_json_member(root, "architecture"));
    if (architecture == NULL)
        return;
    sw_hints_from_name(architecture, strlen(architecture), config, hints);
    const sw_json *input = sw_json_member(sw_json_member(root, "pretrained_cfg"), "input_size");
    if (!hints->known || sw_json_count(input) != 3)
        return;
    for (int axis = 0; axis < 2; axis++) {
        const int64_t size = sw_json_integer(sw_json_element(input, (size_t)axis + 1));
        if (size > 0 && size <= SW_MAX_IMAGE_SIZE)
            hints->image_size[axis] = (int32_t)size;
    }
}

swin_status sw_hints_from_config(const char *path, const swin_config *config, sw_hints *hints, swin_error *err)
{
    static const char file_name[] = "config.json";
    *hints = (sw_hints){0};
    const char *slash = strrchr(path, '/');
    const size_t directory = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    char *name = sw_alloc(directory + sizeof file_name, 1);
    if (name == NULL)
        return sw_fail_memory(err, directory + sizeof file_name, "the name of a config.json");
    memcpy(name, path, directory);
    memcpy(name + directory, file_name, sizeof file_name);

    char *text = NULL;
    size_t length;
    sw_json *root = NULL;
    swin_error ignored = {0};
    swin_status status = sw_file_load(name, CONFIG_LIMIT, &text, &length, &ignored);
    if (status == SWIN_OK)
        status = sw_json_parse(text, length, CONFIG_DEPTH, name, &root, &ignored);
    if (status == SWIN_OK) {
        read_huggingface(root, config, hints);
        if (!hints->known)
            read_huggingface(sw_json_member(root, "backbone_config"), config, hints);
        if (!hints->known)
            read_timm(root, config, hints);
    }
    sw_free(root);
    sw_free(text);
    sw_free(name);
    if (status == SWIN_ERR_NO_MEMORY)
        return sw_fail_memory(err, CONFIG_LIMIT, "a config.json");
    return SWIN_OK;
}
