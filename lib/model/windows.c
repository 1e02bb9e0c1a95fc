/* SPDX-License-Identifier: MIT */
/*
 * The windows of each stage. V1: the bias table's size tells them. V2 files may not tell them: the caller's word comes
 * first, then stored buffers, then config.json, then the published file name, then an error. A pre-training window can
 * be read off the stored coordinates.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/checked.h"
#include "hints.h"
#include "recognition.h"

struct source {
    const swin_model_params *params;
    sw_hints config; /* from config.json   */
    sw_hints name;   /* from the file name */
};

/* 0 where a value is no square, or of no size that a window or a grid has. */
static int32_t square_root(uint64_t value)
{
    if (value > INT32_MAX)
        return 0;
    const int32_t root = (int32_t)lround(sqrt((double)value));
    return (uint64_t)root * (uint64_t)root == value ? root : 0;
}

static bool is_given(const int32_t pair[2])
{
    return pair[0] != 0 || pair[1] != 0;
}

static void set_pair(int32_t pair[2], int32_t rows, int32_t columns)
{
    pair[0] = rows;
    pair[1] = columns;
}

static uint64_t table_entries(const int32_t window[2])
{
    return (uint64_t)(2 * (int64_t)window[0] - 1) * (uint64_t)(2 * (int64_t)window[1] - 1);
}

static swin_status check_params(const swin_model_params *params, const swin_config *config, swin_error *err)
{
    /* A caller who wants one window everywhere need not know how many stages there are. */
    for (int32_t stage = 0; stage < config->stages; stage++) {
        const int32_t *window = params->window[stage], *pretrained = params->pretrained_window[stage];
        if (is_given(window) && (window[0] < 1 || window[0] > SW_MAX_WINDOW || window[1] < 1 ||
                                 window[1] > SW_MAX_WINDOW))
            return sw_fail(err, SWIN_ERR_ARGUMENT, "params.window of stage %d is {%d, %d}, expected both 1 to %d",
                           stage, window[0], window[1], SW_MAX_WINDOW);
        if (!is_given(pretrained))
            continue;
        if (config->version == 1)
            return sw_fail(err, SWIN_ERR_ARGUMENT,
                           "params.pretrained_window of stage %d is {%d, %d}, but the file holds a Swin V1, which has "
                           "none", stage, pretrained[0], pretrained[1]);
        if (pretrained[0] < 2 || pretrained[0] > SW_MAX_WINDOW || pretrained[1] < 2 || pretrained[1] > SW_MAX_WINDOW)
            return sw_fail(err, SWIN_ERR_ARGUMENT,
                           "params.pretrained_window of stage %d is {%d, %d}, expected both 2 to %d", stage,
                           pretrained[0], pretrained[1], SW_MAX_WINDOW);
    }
    const int32_t *image = params->image_size;
    if (is_given(image) && (image[0] < 1 || image[0] > SW_MAX_IMAGE_SIZE || image[1] < 1 ||
                            image[1] > SW_MAX_IMAGE_SIZE))
        return sw_fail(err, SWIN_ERR_ARGUMENT, "params.image_size is {%d, %d}, expected both 1 to %d", image[0],
                       image[1], SW_MAX_IMAGE_SIZE);
    return SWIN_OK;
}

/* V1: a table of T entries belongs to a square window unless somebody names another one with as many entries. */
static swin_status stored_table_window(sw_recognition *recognition, const struct source *source, int32_t stage,
                                       swin_error *err)
{
    const sw_tensor *table = sw_recognition_piece(recognition, SW_PIECE_BIAS_TABLE, stage, 0);
    const uint64_t entries = table->shape[0];
    int32_t *stored = recognition->stored_window[stage];
    if (is_given(source->params->window[stage]) && table_entries(source->params->window[stage]) == entries) {
        memcpy(stored, source->params->window[stage], sizeof source->params->window[stage]);
        return SWIN_OK;
    }
    const int32_t side = square_root(entries);
    if (side % 2 == 1 && side < 2 * SW_MAX_WINDOW) {
        set_pair(stored, (side + 1) / 2, (side + 1) / 2);
        return SWIN_OK;
    }
    if (is_given(source->config.window) && table_entries(source->config.window) == entries) {
        memcpy(stored, source->config.window, sizeof source->config.window);
        return SWIN_OK;
    }
    return sw_fail(err, SWIN_ERR_MISMATCH,
                   "tensor \"%.200s\" has %llu entries, which no square window of 1 to %d has; give the window of "
                   "stage %d (params.window, --window)",
                   table->name, (unsigned long long)entries, SW_MAX_WINDOW, stage);
}

/* All blocks of a stage have the window of its first. */
static swin_status check_same_buffers(const sw_recognition *recognition, sw_piece piece, int32_t stage, swin_error *err)
{
    const sw_tensor *first = NULL;
    for (int32_t block = 0; block < recognition->config.depths[stage]; block++) {
        const sw_tensor *tensor = sw_recognition_piece(recognition, piece, stage, block);
        char found[96], wanted[96];
        if (first == NULL)
            first = tensor;
        if (tensor != NULL &&
            (tensor->rank != first->rank || memcmp(tensor->shape, first->shape, sizeof tensor->shape) != 0))
            return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.150s\" has shape %s, but \"%.150s\" %s", tensor->name,
                           sw_tensor_shape_text(tensor, found, sizeof found), first->name,
                           sw_tensor_shape_text(first, wanted, sizeof wanted));
    }
    return SWIN_OK;
}

/* V2: what the buffers of a stage's first block say; false where there is none. */
static swin_status stored_buffer_window(const sw_recognition *recognition, int32_t stage, int32_t window[2],
                                        bool *found, swin_error *err)
{
    const sw_tensor *coordinates = sw_recognition_piece(recognition, SW_PIECE_COORDINATES, stage, 0);
    const sw_tensor *index = sw_recognition_piece(recognition, SW_PIECE_INDEX, stage, 0);
    const uint64_t limit = 2 * SW_MAX_WINDOW;
    *found = false;
    SW_TRY(check_same_buffers(recognition, SW_PIECE_COORDINATES, stage, err));
    SW_TRY(check_same_buffers(recognition, SW_PIECE_INDEX, stage, err));
    if (coordinates != NULL) {
        const uint64_t *shape = coordinates->shape;
        if (coordinates->rank != 4 || shape[0] != 1 || shape[1] % 2 == 0 || shape[1] >= limit || shape[2] % 2 == 0 ||
            shape[2] >= limit || shape[3] != 2) {
            char text[96];
            return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.200s\" has shape %s, expected [1, 2*M-1, 2*N-1, 2]",
                           coordinates->name, sw_tensor_shape_text(coordinates, text, sizeof text));
        }
        set_pair(window, (int32_t)(shape[1] + 1) / 2, (int32_t)(shape[2] + 1) / 2);
        *found = true;
    }
    if (index == NULL || (index->rank != 1 && index->rank != 2))
        return SWIN_OK;
    const uint64_t tokens = index->rank == 2 ? index->shape[0] : (uint64_t)square_root(index->shape[0]);
    if (*found) {
        if (tokens != (uint64_t)window[0] * (uint64_t)window[1])
            return sw_fail(err, SWIN_ERR_MISMATCH,
                           "tensor \"%.150s\" is of %llu tokens, but \"%.150s\" of a window of %d x %d", index->name,
                           (unsigned long long)tokens, coordinates->name, window[0], window[1]);
        return SWIN_OK;
    }
    const int32_t side = square_root(tokens);
    if (side >= 1 && side <= SW_MAX_WINDOW) {
        set_pair(window, side, side);
        *found = true;
    }
    return SWIN_OK;
}

/* A hint's window at a stage: no larger than the map of the image that it was made for. */
static bool hinted_window(const sw_hints *hints, const swin_config *config, int32_t stage, int32_t window[2])
{
    if (!hints->known || !is_given(hints->window) || !is_given(hints->image_size))
        return false;
    for (int axis = 0; axis < 2; axis++) {
        const int32_t map = hints->image_size[axis] / config->patch_size >> stage;
        window[axis] = map < hints->window[axis] ? map : hints->window[axis];
    }
    return window[0] > 0 && window[1] > 0;
}

/* The largest coordinate, log2(8 (w - 1) / (p - 1) + 1) / 3, solved for the window p that coordinates are relative to.
 * */
static swin_status stored_pretrained(const sw_checkpoint *checkpoint, const sw_recognition *recognition, int32_t stage,
                                     int32_t pretrained[2], bool *found, swin_error *err)
{
    const sw_tensor *coordinates = sw_recognition_piece(recognition, SW_PIECE_COORDINATES, stage, 0);
    *found = false;
    if (coordinates == NULL || !sw_dtype_is_weight(coordinates->dtype) || coordinates->elements < 2)
        return SWIN_OK;
    float last[2];
    SW_TRY(sw_checkpoint_read(checkpoint, coordinates, coordinates->elements - 2, 2, last, err));
    for (int axis = 0; axis < 2; axis++) {
        const int32_t window = (int32_t)(coordinates->shape[axis + 1] + 1) / 2;
        const double p = 1.0 + 8.0 * (window - 1) / (exp2(3.0 * (double)last[axis]) - 1.0);
        if (!(p > 1.5 && p < SW_MAX_WINDOW + 0.5) || fabs(p - nearbyint(p)) > 0.2)
            return SWIN_OK;
        pretrained[axis] = (int32_t)lround(p);
        if (pretrained[axis] == window)
            pretrained[axis] = 0;
    }
    /* One axis of its own window, the other of another: say both. */
    for (int axis = 0; axis < 2; axis++) {
        if (pretrained[axis] == 0 && pretrained[1 - axis] != 0)
            pretrained[axis] = (int32_t)(coordinates->shape[axis + 1] + 1) / 2;
    }
    *found = true;
    return SWIN_OK;
}

/* Coordinates relative to a window of 1 would be infinite: it is refused rather than passed over. */
static swin_status hinted_pretrained(const sw_hints *hints, const char *from, int32_t stage, int32_t pretrained[2],
                                     swin_error *err)
{
    const int32_t side = hints->pretrained[stage];
    char found[16] = "no number";
    if (side != SW_HINT_WRONG)
        snprintf(found, sizeof found, "%d", side);
    if (side < 0 || side == 1 || side > SW_MAX_WINDOW)
        return sw_fail(err, SWIN_ERR_MISMATCH,
                       "the pre-training window of stage %d is %s in %s, expected 0 or 2 to %d; give it "
                       "(params.pretrained_window, --pretrained-window)", stage, found, from, SW_MAX_WINDOW);
    set_pair(pretrained, side, side);
    return SWIN_OK;
}

static swin_status decide_v2_stage(const sw_checkpoint *checkpoint, sw_recognition *recognition,
                                   const struct source *source, int32_t stage, const char **window_from,
                                   const char **pretrained_from, swin_error *err)
{
    swin_config *config = &recognition->config;
    int32_t *window = config->window[stage], *pretrained = config->pretrained_window[stage];
    int32_t stored[2] = {0, 0};
    bool found;
    SW_TRY(stored_buffer_window(recognition, stage, stored, &found, err));
    if (is_given(source->params->window[stage])) {
        memcpy(window, source->params->window[stage], sizeof stored);
        *window_from = "the caller";
    } else if (found) {
        memcpy(window, stored, sizeof stored);
        *window_from = "stored buffers";
    } else if (hinted_window(&source->config, config, stage, window)) {
        *window_from = "config.json";
    } else if (hinted_window(&source->name, config, stage, window)) {
        *window_from = "the published file name";
    } else {
        return sw_fail(err, SWIN_ERR_MISMATCH,
                       "nothing tells the window of stage %d of this Swin V2: no stored buffer, no config.json "
                       "that fits the tensors, no published file name; give it (params.window, --window)", stage);
    }

    SW_TRY(stored_pretrained(checkpoint, recognition, stage, stored, &found, err));
    if (is_given(source->params->pretrained_window[stage])) {
        memcpy(pretrained, source->params->pretrained_window[stage], sizeof stored);
        *pretrained_from = "the caller";
    } else if (found) {
        memcpy(pretrained, stored, sizeof stored);
        *pretrained_from = "stored buffers";
    } else if (source->config.known && source->config.pretrained_known) {
        *pretrained_from = "config.json";
        SW_TRY(hinted_pretrained(&source->config, *pretrained_from, stage, pretrained, err));
    } else if (source->name.known && source->name.pretrained_known) {
        *pretrained_from = "the published file name";
        SW_TRY(hinted_pretrained(&source->name, *pretrained_from, stage, pretrained, err));
    } else {
        *pretrained_from = "nowhere: taken as the windows";
    }
    return SWIN_OK;
}

static swin_status decide_v1_stage(sw_recognition *recognition, const struct source *source, int32_t stage,
                                   const char **window_from, swin_error *err)
{
    int32_t *window = recognition->config.window[stage];
    SW_TRY(stored_table_window(recognition, source, stage, err));
    memcpy(window, recognition->stored_window[stage], sizeof recognition->stored_window[stage]);
    *window_from = "the sizes of the position bias tables";
    if (is_given(source->params->window[stage])) {
        memcpy(window, source->params->window[stage], sizeof source->params->window[stage]);
        *window_from = "the caller";
    }
    return SWIN_OK;
}

/* V1: the numbers of another window are made of those in the file, and whoever asked for it should know. Appended to
 * the reason. */
static void note_resized_biases(sw_recognition *recognition)
{
    const swin_config *config = &recognition->config;
    const int32_t(*stored)[2] = (const int32_t(*)[2])recognition->stored_window;
    const size_t used = strlen(recognition->window_reason), left = sizeof recognition->window_reason - used;
    int32_t resized = 0, first = 0;
    bool alike = true;
    for (int32_t stage = config->stages - 1; stage >= 0 && config->version == 1; stage--) {
        if (memcmp(config->window[stage], stored[stage], sizeof stored[stage]) == 0)
            continue;
        alike = resized == 0 || (alike && memcmp(stored[stage], stored[first], sizeof stored[stage]) == 0 &&
                                 memcmp(config->window[stage], config->window[first], sizeof stored[stage]) == 0);
        first = stage;
        resized++;
    }
    char *end = recognition->window_reason + used;
    if (resized > 0 && alike)
        (void)snprintf(end, left, "; position biases resized from %dx%d to %dx%d", stored[first][0], stored[first][1],
                       config->window[first][0], config->window[first][1]);
    else if (resized > 0)
        (void)snprintf(end, left, "; position biases resized in %d of %d stages", resized, config->stages);
}

/* Lineages that limit windows by the size that the model was made for, where nobody tells it. */
static void note_unknown_image_size(sw_recognition *recognition)
{
    const swin_config *config = &recognition->config;
    const bool asked = config->lineage == SWIN_LINEAGE_TIMM ||
                       (config->lineage == SWIN_LINEAGE_HUGGINGFACE && config->version == 2);
    const size_t used = strlen(recognition->window_reason);
    if (asked && !is_given(config->image_size))
        (void)snprintf(recognition->window_reason + used, sizeof recognition->window_reason - used,
                       "; image size unknown, so each image's own limits them (params.image_size, --image-size)");
}

/* Where an embedding's grid is not square, only the image size tells its sides. */
static swin_status decide_position_grid(sw_recognition *recognition, swin_error *err)
{
    swin_config *config = &recognition->config;
    const sw_tensor *position = sw_recognition_piece(recognition, SW_PIECE_ABSOLUTE_POSITION, 0, 0);
    if (position == NULL)
        return SWIN_OK;
    const uint64_t *shape = position->shape, embed = (uint64_t)config->embed_dim;
    const uint64_t limit = SW_MAX_POSITION_GRID;
    char text[96];
    if (!sw_dtype_is_weight(position->dtype))
        return sw_fail(err, SWIN_ERR_UNSUPPORTED, "tensor \"%.200s\" has type %s, expected F32, F16, BF16 or F64",
                       position->name, sw_dtype_name(position->dtype));
    if (position->rank == 4 && shape[0] == 1 && shape[1] == embed && shape[2] >= 1 && shape[2] <= limit &&
        shape[3] >= 1 && shape[3] <= limit) {
        set_pair(config->absolute_position, (int32_t)shape[2], (int32_t)shape[3]);
        return SWIN_OK;
    }
    if (position->rank != 3 || shape[0] != 1 || shape[2] != embed || shape[1] < 1 || shape[1] > limit * limit)
        return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.200s\" has shape %s, expected [1, L, %d] or [1, %d, H, W]",
                       position->name, sw_tensor_shape_text(position, text, sizeof text), config->embed_dim,
                       config->embed_dim);

    int32_t rows = 0, columns = 0;
    if (is_given(config->image_size)) {
        rows = sw_ceil_div(config->image_size[0], config->patch_size);
        columns = sw_ceil_div(config->image_size[1], config->patch_size);
    }
    if ((uint64_t)rows * (uint64_t)columns != shape[1])
        rows = columns = square_root(shape[1]);
    if (rows > 0) {
        set_pair(config->absolute_position, rows, columns);
        return SWIN_OK;
    }
    /* transformers 4 allocates one entry too many, which its own code cannot add to the tokens: it never worked. */
    const bool spare = strcmp(recognition->naming->name, "huggingface") == 0 &&
                       (square_root(shape[1] - 1) > 0 ||
                        (uint64_t)sw_ceil_div(config->image_size[0], config->patch_size) *
                                (uint64_t)sw_ceil_div(config->image_size[1], config->patch_size) ==
                            shape[1] - 1);
    if (spare)
        return SWIN_OK;
    return sw_fail(err, SWIN_ERR_MISMATCH,
                   "tensor \"%.200s\" has %llu positions, which no square grid has; give the size of the image that it "
                   "was made for (params.image_size, --image-size)", position->name, (unsigned long long)shape[1]);
}

swin_status sw_decide_windows(const char *path, const sw_checkpoint *checkpoint, const swin_model_params *params,
                              sw_recognition *recognition, swin_error *err)
{
    swin_config *config = &recognition->config;
    SW_TRY(check_params(params, config, err));
    struct source source = {.params = params};
    SW_TRY(sw_hints_from_config(path, config, &source.config, err));
    sw_hints_from_path(path, config, &source.name);

    if (is_given(params->image_size))
        memcpy(config->image_size, params->image_size, sizeof config->image_size);
    else if (source.config.known && is_given(source.config.image_size))
        memcpy(config->image_size, source.config.image_size, sizeof config->image_size);
    else if (source.name.known && is_given(source.name.image_size))
        memcpy(config->image_size, source.name.image_size, sizeof config->image_size);

    const char *window_from = "", *pretrained_from = NULL;
    for (int32_t stage = 0; stage < config->stages; stage++) {
        if (config->version == 1)
            SW_TRY(decide_v1_stage(recognition, &source, stage, &window_from, err));
        else
            SW_TRY(decide_v2_stage(checkpoint, recognition, &source, stage, &window_from, &pretrained_from, err));
    }
    snprintf(recognition->window_reason, sizeof recognition->window_reason, "from %s%s%s", window_from,
             pretrained_from == NULL ? "" : ", pre-training windows from ",
             pretrained_from == NULL ? "" : pretrained_from);
    note_resized_biases(recognition);
    note_unknown_image_size(recognition);
    return decide_position_grid(recognition, err);
}
