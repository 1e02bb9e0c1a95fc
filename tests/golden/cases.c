/* SPDX-License-Identifier: MIT */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

static const struct {
    const char *name;
    swin_lineage lineage;
} lineages[] = {
    {"detection", SWIN_LINEAGE_DETECTION},     {"microsoft", SWIN_LINEAGE_MICROSOFT},
    {"torchvision", SWIN_LINEAGE_TORCHVISION}, {"timm", SWIN_LINEAGE_TIMM},
    {"huggingface", SWIN_LINEAGE_HUGGINGFACE}, {"mmpretrain", SWIN_LINEAGE_MMPRETRAIN},
};

_Noreturn static void refuse(const char *word)
{
    fprintf(stderr, "cases.txt: what is \"%s\"?\n", word);
    abort();
}

static void read_pair(const char *text, int32_t pair[2])
{
    int rows, columns, end = 0;
    if (sscanf(text, "%d,%d%n", &rows, &columns, &end) != 2 || (text[end] != '\0' && text[end] != '/'))
        refuse(text);
    pair[0] = rows;
    pair[1] = columns;
}

/* One pair per stage, between slashes. */
static void read_pairs(const char *text, int32_t pairs[SWIN_MAX_STAGES][2])
{
    for (int s = 0; s < SWIN_MAX_STAGES && text != NULL; s++) {
        read_pair(text, pairs[s]);
        text = strchr(text, '/');
        if (text != NULL)
            text++;
    }
}

static void read_option(golden_case *one, const char *word)
{
    const char *value = strchr(word, '=');
    const size_t length = value != NULL ? (size_t)(value++ - word) : strlen(word);
    if (strcmp(word, "single") == 0) {
        one->single = true;
    } else if (strcmp(word, "norm=off") == 0) {
        one->params.out_norm = SWIN_OUT_NORM_OFF;
    } else if (value != NULL && strncmp(word, "window", length) == 0) {
        read_pairs(value, one->params.window);
    } else if (value != NULL && strncmp(word, "pretrained", length) == 0) {
        read_pairs(value, one->params.pretrained_window);
    } else if (value != NULL && strncmp(word, "image", length) == 0) {
        read_pair(value, one->params.image_size);
    } else if (value != NULL && strncmp(word, "lineage", length) == 0) {
        for (size_t i = 0; i < sizeof lineages / sizeof *lineages; i++)
            if (strcmp(value, lineages[i].name) == 0)
                one->params.lineage = lineages[i].lineage;
        if (one->params.lineage == SWIN_LINEAGE_AUTO)
            refuse(word);
    } else {
        refuse(word);
    }
}

static void copy_word(char *to, size_t size, const char *word)
{
    if (word == NULL || strlen(word) >= size)
        refuse(word != NULL ? word : "");
    memcpy(to, word, strlen(word) + 1);
}

golden_case *golden_cases(size_t *count)
{
    char *path = fixture_path("cases.txt"), line[512];
    FILE *stream = fopen(path, "r");
    if (stream == NULL)
        refuse(path);
    golden_case *cases = NULL;
    *count = 0;
    while (fgets(line, sizeof line, stream) != NULL) {
        char *word = strtok(line, " \n");
        if (word == NULL || word[0] == '#')
            continue;
        cases = realloc(cases, (*count + 1) * sizeof *cases);
        if (cases == NULL)
            refuse("out of memory");
        golden_case *one = &cases[(*count)++];
        *one = (golden_case){.params.struct_size = sizeof one->params};
        copy_word(one->weights, sizeof one->weights, word);
        copy_word(one->expect, sizeof one->expect, strtok(NULL, " \n"));
        snprintf(one->name, sizeof one->name, "%s %s", one->weights, one->expect);
        while ((word = strtok(NULL, " \n")) != NULL) {
            read_option(one, word);
            const size_t length = strlen(one->name);
            snprintf(one->name + length, sizeof one->name - length, " %s", word);
        }
    }
    fclose(stream);
    free(path);
    if (*count == 0)
        refuse("an empty list");
    return cases;
}
