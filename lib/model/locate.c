/* SPDX-License-Identifier: MIT */
#include "locate.h"

#include <stdio.h>
#include <string.h>

/* A file with more patch embeddings than this is no checkpoint. */
#define MAX_CANDIDATES 32

/* Tensors whose names begin with a prefix are neighbours: first .. end - 1. */
static void find_range(const sw_tensor_table *table, const char *prefix, size_t length, size_t *first, size_t *end)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strncmp(table->tensors[middle].name, prefix, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *first = low;
    while (low < table->count && strncmp(table->tensors[low].name, prefix, length) == 0)
        low++;
    *end = low;
}

/* What a naming makes of the names behind a prefix. */
struct fit {
    size_t known;
    bool attention; /* some block's query is there */
    bool alien;
};

static struct fit measure(const sw_tensor_table *table, const sw_naming *naming, const char *prefix, size_t length)
{
    struct fit result = {0};
    size_t first, end, merges[SWIN_MAX_STAGES] = {0};
    int32_t stages = 0;
    find_range(table, prefix, length, &first, &end);
    for (size_t i = first; i < end; i++) {
        sw_place place;
        if (!sw_naming_match(naming, SW_V1 | SW_V2, SW_SCOPE_OWN, table->tensors[i].name + length, &place))
            continue;
        result.attention |= place.piece == SW_PIECE_QKV_WEIGHT || place.piece == SW_PIECE_QUERY_WEIGHT;
        result.alien |= place.piece == SW_PIECE_ALIEN;
        if (place.piece == SW_PIECE_NORM1_WEIGHT && place.stage + 1 > stages)
            stages = place.stage + 1;
        if (place.piece < SW_PIECE_MERGE_NORM_WEIGHT || place.piece > SW_PIECE_MERGE_WEIGHT)
            result.known++;
        else if (place.stage < SWIN_MAX_STAGES)
            merges[place.stage]++;
    }
    /* A merge into a stage that is not there tells the two numberings apart. */
    for (int32_t stage = 0; stage < SWIN_MAX_STAGES && stage + 1 < stages; stage++)
        result.known += merges[stage];
    return result;
}

/* Whether a naming's anchor ends the name, and where. */
static bool ends_with_anchor(const char *name, const char *anchor, size_t *prefix_length)
{
    const size_t length = strlen(name), anchor_length = strlen(anchor);
    if (length < anchor_length || strcmp(name + length - anchor_length, anchor) != 0)
        return false;
    *prefix_length = length - anchor_length;
    return *prefix_length == 0 || name[*prefix_length - 1] == '.';
}

static const sw_naming *best_naming(const sw_tensor_table *table, const char *name, size_t *prefix_length)
{
    const sw_naming *best = NULL, *naming;
    size_t most = 0, length;
    for (size_t n = 0; (naming = sw_naming_get(n)) != NULL; n++) {
        if (!ends_with_anchor(name, naming->anchor, &length))
            continue;
        const struct fit fit = measure(table, naming, name, length);
        if (!fit.attention || fit.known <= most || (naming->refusal != NULL && !fit.alien))
            continue;
        most = fit.known;
        best = naming;
        *prefix_length = length;
    }
    return best;
}

static swin_status find_all(const sw_tensor_table *table, sw_location *found, size_t *count, swin_error *err)
{
    size_t candidates = 0;
    *count = 0;
    for (size_t i = 0; i < table->count; i++) {
        const char *name = table->tensors[i].name;
        const sw_naming *naming;
        size_t length = 0;
        bool anchor = false;
        for (size_t n = 0; !anchor && (naming = sw_naming_get(n)) != NULL; n++)
            anchor = ends_with_anchor(name, naming->anchor, &length);
        if (!anchor)
            continue;
        if (++candidates > MAX_CANDIDATES)
            return sw_fail(err, SWIN_ERR_LIMIT, "more than %d patch embeddings in one file", MAX_CANDIDATES);
        naming = best_naming(table, name, &length);
        if (naming != NULL)
            found[(*count)++] = (sw_location){naming, name, length};
    }
    return SWIN_OK;
}

static void list_prefixes(const sw_location *found, size_t count, char *list, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(list + used, size - used, "%s\"%.*s\"", i == 0 ? "" : ", ",
                                 (int)found[i].prefix_length, found[i].anchor);
}

static bool has_prefix(const sw_location *location, const char *prefix)
{
    const size_t length = strlen(prefix), own = location->prefix_length;
    return (own == length || (own == length + 1 && length > 0)) && strncmp(location->anchor, prefix, length) == 0;
}

/* Two namings behind one prefix are no two networks: no prefix could tell them apart. */
static swin_status check_prefixes(const sw_location *found, size_t count, swin_error *err)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t other = 0; other < i; other++) {
            if (found[i].prefix_length == found[other].prefix_length &&
                strncmp(found[i].anchor, found[other].anchor, found[i].prefix_length) == 0)
                return sw_fail(err, SWIN_ERR_MISMATCH,
                               "two namings are mixed: tensor \"%.180s\" is named as %s does, \"%.180s\" as %s does",
                               found[other].anchor, found[other].naming->name, found[i].anchor, found[i].naming->name);
        }
    }
    return SWIN_OK;
}

swin_status sw_locate(const sw_tensor_table *table, const char *prefix, sw_location *location, swin_error *err)
{
    sw_location found[MAX_CANDIDATES];
    size_t count, chosen = 0;
    char list[300];
    SW_TRY(find_all(table, found, &count, err));
    if (count == 0)
        return sw_fail_no_naming(table, err);
    SW_TRY(check_prefixes(found, count, err));
    list_prefixes(found, count, list, sizeof list);
    if (prefix != NULL) {
        while (chosen < count && !has_prefix(&found[chosen], prefix))
            chosen++;
        if (chosen == count)
            return sw_fail(err, SWIN_ERR_MISMATCH, "no Swin Transformer has the prefix \"%.100s\"; the file has %s",
                           prefix, list);
    } else if (count > 1) {
        return sw_fail(err, SWIN_ERR_MISMATCH,
                       "%zu Swin Transformers in one file, expected one; give the prefix of one (params.prefix, "
                       "--prefix): %s", count, list);
    }
    if (found[chosen].naming->refusal != NULL)
        return sw_fail(err, SWIN_ERR_UNSUPPORTED, "the file holds a model of %s, which libswin does not compute: %s",
                       found[chosen].naming->name, found[chosen].naming->refusal);
    *location = found[chosen];
    return SWIN_OK;
}
