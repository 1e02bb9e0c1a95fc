/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "../base/memory.h"
#include "recognition.h"

/* Where a name lies as seen from the prefix. */
struct view {
    const char *prefix;
    size_t length;
    size_t parent_length; /* of the prefix without its last part */
};

static struct view view_of(const sw_recognition *recognition)
{
    struct view view = {recognition->prefix, strlen(recognition->prefix), 0};
    if (view.length > 0) {
        view.parent_length = view.length - 1;
        while (view.parent_length > 0 && view.prefix[view.parent_length - 1] != '.')
            view.parent_length--;
    }
    return view;
}

static bool is_inside(const struct view *view, const char *name)
{
    return strncmp(name, view->prefix, view->length) == 0;
}

static bool place_name(const struct view *view, const sw_naming *naming, uint8_t versions, const char *name,
                       sw_place *place)
{
    if (is_inside(view, name) && sw_naming_match(naming, versions, SW_SCOPE_OWN, name + view->length, place))
        return true;
    return view->length > 0 && strncmp(name, view->prefix, view->parent_length) == 0 &&
           sw_naming_match(naming, versions, SW_SCOPE_PARENT, name + view->parent_length, place);
}

/* V2 where a logit scale is, V1 otherwise; refuses a file that has tensors which only the other version has. */
static swin_status find_version(const sw_checkpoint *checkpoint, sw_recognition *recognition, swin_error *err)
{
    const struct view view = view_of(recognition);
    const sw_naming *naming = recognition->naming;
    const sw_tensor_table *table = &checkpoint->table;
    const char *scale = NULL, *bias = NULL, *other = NULL;
    sw_place place;
    for (size_t i = 0; i < table->count; i++) {
        const char *name = table->tensors[i].name;
        if (!place_name(&view, naming, SW_V1 | SW_V2, name, &place))
            continue;
        if (place.piece == SW_PIECE_LOGIT_SCALE && scale == NULL)
            scale = name;
        if (place.piece == SW_PIECE_BIAS_TABLE && bias == NULL)
            bias = name;
    }
    recognition->config.version = scale != NULL ? 2 : 1;
    const uint8_t mine = scale != NULL ? SW_V2 : SW_V1;
    for (size_t i = 0; i < table->count && other == NULL; i++) {
        const char *name = table->tensors[i].name;
        if (!place_name(&view, naming, mine, name, &place) &&
            place_name(&view, naming, SW_V1 | SW_V2, name, &place))
            other = name;
    }
    if (other != NULL)
        return sw_fail(err, SWIN_ERR_MISMATCH, "tensor \"%.180s\" belongs to Swin V%d, but \"%.180s\" to V%d", other,
                       scale != NULL ? 1 : 2, scale != NULL ? scale : bias != NULL ? bias : recognition->prefix,
                       scale != NULL ? 2 : 1);
    return SWIN_OK;
}

/* A block's or merge's tensor of another codebase means that two namings are mixed. */
static swin_status check_other_namings(const struct view *view, const sw_recognition *recognition, const char *name,
                                       swin_error *err)
{
    const sw_naming *naming;
    sw_place place;
    for (size_t n = 0; (naming = sw_naming_get(n)) != NULL; n++) {
        if (naming != recognition->naming && is_inside(view, name) &&
            sw_naming_match(naming, SW_V1 | SW_V2, SW_SCOPE_OWN, name + view->length, &place) &&
            sw_piece_is_inner(place.piece))
            return sw_fail(err, SWIN_ERR_MISMATCH,
                           "two namings are mixed: tensor \"%.200s\" is named as %s does, the others as %s does", name,
                           naming->name, recognition->naming->name);
    }
    return SWIN_OK;
}

/* A stage without blocks: of another codebase, or not there. */
static swin_status fail_empty_stage(const sw_checkpoint *checkpoint, const sw_recognition *recognition, int32_t stage,
                                    swin_error *err)
{
    const struct view view = view_of(recognition);
    char name[256];
    sw_place place;
    for (size_t i = 0; i < checkpoint->table.count; i++) {
        const char *tensor = checkpoint->table.tensors[i].name;
        if (!place_name(&view, recognition->naming, SW_V1 | SW_V2, tensor, &place))
            SW_TRY(check_other_namings(&view, recognition, tensor, err));
    }
    return sw_fail(err, SWIN_ERR_MISMATCH, "stage %d has no blocks: tensor \"%.300s\" is missing", stage,
                   sw_recognition_name(recognition, SW_PIECE_NORM1_WEIGHT, stage, 0, name, sizeof name));
}

static swin_status find_depths(const sw_checkpoint *checkpoint, sw_recognition *recognition, swin_error *err)
{
    const struct view view = view_of(recognition);
    const uint8_t version = recognition->config.version == 2 ? SW_V2 : SW_V1;
    swin_config *config = &recognition->config;
    for (size_t i = 0; i < checkpoint->table.count; i++) {
        sw_place place;
        const char *tensor = checkpoint->table.tensors[i].name;
        if (!place_name(&view, recognition->naming, version, tensor, &place) || !sw_piece_is_inner(place.piece))
            continue;
        /* A merge leads into one more stage. */
        const bool merge = place.piece >= SW_PIECE_MERGE_NORM_WEIGHT;
        const int32_t stage = place.stage + merge;
        if (stage >= SWIN_MAX_STAGES || place.block >= SW_MAX_DEPTH)
            return sw_fail(err, SWIN_ERR_UNSUPPORTED,
                           "tensor \"%.300s\" is of stage %d and block %d, expected at most %d stages of %d blocks",
                           tensor, stage, place.block, SWIN_MAX_STAGES, SW_MAX_DEPTH);
        if (stage >= config->stages)
            config->stages = stage + 1;
        if (!merge && place.block >= config->depths[stage])
            config->depths[stage] = place.block + 1;
    }
    for (int32_t stage = 0; stage < config->stages; stage++) {
        if (config->depths[stage] == 0)
            return fail_empty_stage(checkpoint, recognition, stage, err);
        recognition->block_start[stage + 1] = recognition->block_start[stage] + config->depths[stage];
    }
    return SWIN_OK;
}

/* Whether an unplaced name begins like one of the naming's own: without a prefix that is all that tells a tensor of the
 * backbone from one of a detector beside it. */
static bool begins_like(const sw_naming *naming, const char *name)
{
    const sw_row *row = naming->top;
    const char *patterns[64] = {naming->block, naming->merge[0], naming->merge[1]};
    size_t count = 3;
    for (; row->pattern != NULL && count < sizeof patterns / sizeof patterns[0]; row++) {
        if (row->scope != SW_SCOPE_PARENT)
            patterns[count++] = row->pattern;
    }
    for (size_t i = 0; i < count; i++) {
        char first[64];
        int32_t stage, block;
        const size_t length = strcspn(patterns[i], ".");
        memcpy(first, patterns[i], length);
        first[length] = '\0';
        const char *rest = sw_pattern_match(first, name, &stage, &block);
        if (rest != NULL && (*rest == '.' || *rest == '\0'))
            return true;
    }
    return false;
}

static const char *skip_wrappers(const char *name)
{
    static const char *const wrappers[] = {"module.", "_orig_mod.", "model."};
    size_t i = 0;
    while (i < sizeof wrappers / sizeof wrappers[0]) {
        const size_t length = strlen(wrappers[i]);
        const bool wrapped = strncmp(name, wrappers[i], length) == 0;
        name += wrapped ? length : 0;
        i = wrapped ? 0 : i + 1;
    }
    return name;
}

/* Names of final norms and heads occur outside of backbones too. */
static bool is_unmistakable(sw_piece piece)
{
    return piece <= SW_PIECE_PATCH_NORM_BIAS || (sw_piece_is_inner(piece) && piece != SW_PIECE_ALIEN);
}

/* A foreign or unknown tensor that would be a piece of the backbone but for DataParallel's and its like's prefixes. */
static swin_status check_duplicate(const sw_recognition *recognition, const char *name, swin_error *err)
{
    const char *prefix = skip_wrappers(recognition->prefix), *bare = skip_wrappers(name);
    const uint8_t version = recognition->config.version == 2 ? SW_V2 : SW_V1;
    sw_place place;
    if (strncmp(bare, prefix, strlen(prefix)) != 0 ||
        !sw_naming_match(recognition->naming, version, SW_SCOPE_OWN, bare + strlen(prefix), &place) ||
        !is_unmistakable(place.piece) || place.stage >= recognition->config.stages ||
        place.block >= recognition->config.depths[place.stage])
        return SWIN_OK;
    const sw_tensor *tensor = sw_recognition_piece(recognition, place.piece, place.stage, place.block);
    if (tensor == NULL)
        return SWIN_OK;
    return sw_fail(err, SWIN_ERR_MISMATCH, "tensors \"%.200s\" and \"%.200s\" are the same tensor under two prefixes",
                   tensor->name, name);
}

static swin_tensor_use use_of(sw_piece piece)
{
    return piece < SW_PIECE_INDEX ? SWIN_TENSOR_USED : SWIN_TENSOR_IGNORED;
}

static swin_status place_all(const sw_checkpoint *checkpoint, sw_recognition *recognition, swin_error *err)
{
    const struct view view = view_of(recognition);
    const sw_naming *naming = recognition->naming;
    const uint8_t version = recognition->config.version == 2 ? SW_V2 : SW_V1;
    const sw_tensor_table *table = &checkpoint->table;
    for (size_t i = 0; i < table->count; i++) {
        const sw_tensor *tensor = &table->tensors[i];
        sw_place place;
        bool placed = place_name(&view, naming, version, tensor->name, &place);
        if (placed && place.stage == SW_STAGE_LAST)
            place.stage = recognition->config.stages - 1;
        if (placed && (place.stage >= recognition->config.stages ||
                       place.block >= recognition->config.depths[place.stage]))
            placed = false;
        if (placed) {
            const size_t block = (size_t)(recognition->block_start[place.stage] + place.block);
            const sw_tensor **slot = &recognition->pieces[block * SW_PIECE_COUNT + place.piece];
            recognition->uses[i] = (uint8_t)use_of(place.piece);
            if (*slot != NULL && use_of(place.piece) == SWIN_TENSOR_USED)
                return sw_fail(err, SWIN_ERR_MISMATCH, "tensors \"%.200s\" and \"%.200s\" are the same tensor twice",
                               (*slot)->name, tensor->name);
            *slot = tensor;
            continue;
        }
        SW_TRY(check_other_namings(&view, recognition, tensor->name, err));
        const bool inside = view.length > 0 ? is_inside(&view, tensor->name) : begins_like(naming, tensor->name);
        recognition->uses[i] = inside ? SWIN_TENSOR_UNKNOWN : SWIN_TENSOR_FOREIGN;
    }
    for (size_t i = 0; i < table->count; i++) {
        if (recognition->uses[i] >= SWIN_TENSOR_FOREIGN && !recognition->chosen)
            SW_TRY(check_duplicate(recognition, table->tensors[i].name, err));
    }
    return SWIN_OK;
}

swin_status sw_assign_pieces(const sw_checkpoint *checkpoint, sw_recognition *recognition, swin_error *err)
{
    SW_TRY(find_version(checkpoint, recognition, err));
    SW_TRY(find_depths(checkpoint, recognition, err));
    const size_t blocks = (size_t)recognition->block_start[recognition->config.stages];
    recognition->pieces = sw_alloc(blocks * SW_PIECE_COUNT, sizeof *recognition->pieces);
    recognition->uses = sw_alloc_zeroed(checkpoint->table.count, 1);
    if (recognition->pieces == NULL || recognition->uses == NULL)
        return sw_fail_memory(err, blocks * SW_PIECE_COUNT * sizeof *recognition->pieces, "the pieces of a model");
    for (size_t i = 0; i < blocks * SW_PIECE_COUNT; i++)
        recognition->pieces[i] = NULL;
    return place_all(checkpoint, recognition, err);
}
