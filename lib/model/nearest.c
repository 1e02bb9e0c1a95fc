/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "locate.h"

/* Parts that the longest pattern has, and prefixes looked at per naming. */
#define MAX_PARTS 12
#define MAX_PREFIXES 64
#define SHOWN 3

struct guess {
    const sw_naming *naming;
    const char *name; /* whose first `length` characters are the prefix */
    size_t length;
    size_t known;
};

static void count_hit(struct guess *guesses, size_t *count, const sw_naming *naming, const char *name, size_t length)
{
    for (size_t i = 0; i < *count; i++) {
        if (guesses[i].length == length && memcmp(guesses[i].name, name, length) == 0) {
            guesses[i].known++;
            return;
        }
    }
    if (*count < MAX_PREFIXES)
        guesses[(*count)++] = (struct guess){naming, name, length, 1};
}

/* The prefix behind which a naming knows most names. */
static struct guess guess_prefix(const sw_tensor_table *table, const sw_naming *naming)
{
    struct guess guesses[MAX_PREFIXES];
    struct guess best = {.naming = naming, .name = ""};
    size_t count = 0;
    sw_place place;
    for (size_t i = 0; i < table->count; i++) {
        const char *name = table->tensors[i].name, *start = name + strlen(name);
        for (int part = 0; part < MAX_PARTS && start > name; part++) {
            do
                start--;
            while (start > name && start[-1] != '.');
            if (sw_naming_match(naming, SW_V1 | SW_V2, SW_SCOPE_OWN, start, &place))
                count_hit(guesses, &count, naming, name, (size_t)(start - name));
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (guesses[i].known > best.known)
            best = guesses[i];
    }
    return best;
}

/* The first of a model's first tensors that is not there; "" where all are. */
static const char *first_missing(const sw_tensor_table *table, const struct guess *guess, char *name, size_t size)
{
    static const sw_piece wanted[] = {
        SW_PIECE_PATCH_WEIGHT, SW_PIECE_NORM1_WEIGHT, SW_PIECE_QKV_WEIGHT, SW_PIECE_QUERY_WEIGHT, SW_PIECE_PROJ_WEIGHT,
        SW_PIECE_FC1_WEIGHT,   SW_PIECE_FC2_WEIGHT,
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (guess->length >= size)
            break;
        memcpy(name, guess->name, guess->length);
        if (sw_naming_format(guess->naming, SW_V1, wanted[i], 0, 0, name + guess->length, size - guess->length) &&
            sw_tensor_table_find(table, name) == NULL)
            return name;
    }
    return "";
}

static const char *first_unknown(const sw_tensor_table *table, const struct guess *guesses, size_t count)
{
    sw_place place;
    for (size_t i = 0; i < table->count; i++) {
        const char *name = table->tensors[i].name;
        bool known = false;
        for (size_t g = 0; g < count && guesses[g].naming != NULL && !known; g++)
            known = strncmp(name, guesses[g].name, guesses[g].length) == 0 &&
                    sw_naming_match(guesses[g].naming, SW_V1 | SW_V2, SW_SCOPE_OWN, name + guesses[g].length, &place);
        if (!known)
            return name;
    }
    return "";
}

swin_status sw_fail_no_naming(const sw_tensor_table *table, swin_error *err)
{
    struct guess best[SHOWN + 1] = {0};
    const sw_naming *naming;
    if (table->count == 0)
        return sw_fail(err, SWIN_ERR_MISMATCH, "the file has no tensors, expected a Swin Transformer");
    for (size_t n = 0; (naming = sw_naming_get(n)) != NULL; n++) {
        if (naming->refusal != NULL)
            continue;
        best[SHOWN] = guess_prefix(table, naming);
        for (size_t i = SHOWN; i > 0 && (best[i - 1].naming == NULL || best[i].known > best[i - 1].known); i--) {
            const struct guess swap = best[i];
            best[i] = best[i - 1];
            best[i - 1] = swap;
        }
    }

    if (best[0].known == 0)
        return sw_fail(err, SWIN_ERR_MISMATCH,
                       "the file holds no Swin Transformer: none of its tensors (%zu) has a name of any known naming; "
                       "the first is \"%.80s\"", table->count, table->tensors[0].name);

    char list[360];
    size_t used = 0;
    for (size_t i = 0; i < SHOWN && best[i].naming != NULL && used < sizeof list; i++) {
        char name[160];
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s (%zu fit, lacks \"%.80s\")", i == 0 ? "" : ", ",
                                 best[i].naming->name, best[i].known,
                                 first_missing(table, &best[i], name, sizeof name));
    }
    return sw_fail(err, SWIN_ERR_MISMATCH,
                   "no naming fits the file's tensors (%zu); nearest: %s; first unknown name: \"%.80s\"",
                   table->count, list, first_unknown(table, best, SHOWN));
}
