/* SPDX-License-Identifier: MIT */
/* Checkpoints of the must-fail corpus, through the interface that programs use. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <swin/swin.h>

#include "memory_counted.h"
#include "outcome.h"

static bool is_word(swin_status status, const char *word)
{
    static const struct {
        const char *word;
        swin_status status;
    } words[] = {
        {"ok", SWIN_OK},
        {"io", SWIN_ERR_IO},
        {"format", SWIN_ERR_FORMAT},
        {"unsupported", SWIN_ERR_UNSUPPORTED},
        {"mismatch", SWIN_ERR_MISMATCH},
        {"limit", SWIN_ERR_LIMIT},
        {"nonfinite", SWIN_OK},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].word, word) == 0)
            return words[i].status == status;
    }
    return false;
}

static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < 0x20 || *text > 0x7e)
            return false;
    }
    return true;
}

static bool counts_nonfinite(const swin_model *model)
{
    swin_model_info info;
    return swin_model_get_info(model, &info, sizeof info, NULL) == SWIN_OK && info.nonfinite_count == 1;
}

static bool check(const char *path, const char *expected, char *message, size_t size)
{
    static int something;
    char file[4200];
    struct stat info;
    swin_error err;
    swin_model *model = (swin_model *)(void *)&something;
    snprintf(file, sizeof file, "%s", path);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        snprintf(file, sizeof file, "%s/model.safetensors.index.json", path);
        if (access(file, F_OK) != 0)
            snprintf(file, sizeof file, "%s/model.safetensors", path);
    }
    memset(&err, 0x5a, sizeof err);
    const swin_status status = swin_model_open(file, NULL, &model, &err);
    snprintf(message, size, "%s", status == SWIN_OK ? "ok" : err.message);
    bool good = is_word(status, expected) && err.status == (int32_t)status && is_printable(err.message) &&
                strlen(err.message) < sizeof err.message && (status == SWIN_OK) == (err.message[0] == '\0') &&
                (status == SWIN_OK) == (model != NULL);
    if (status == SWIN_OK) {
        good = good && (strcmp(expected, "nonfinite") == 0) == counts_nonfinite(model);
        swin_model_destroy(model);
    }
    return good && memory_live_blocks() == 0;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    char directory[4096];
    int count = 0;
    const char *const folders[] = {"safetensors", "checkpoints"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(directory, sizeof directory, "%s/%s", argv[1], folders[i]);
        count += outcome_check_all(directory, check);
    }
    printf("%d cases\n", count);
    return 0;
}
