/* SPDX-License-Identifier: MIT */
#include "weights.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "regular_file.h"

/* A checkpoint that must be converted first, by its first bytes: torch.save's ZIP, a pickle. */
static bool is_pickled(const char *path)
{
    unsigned char magic[4] = {0};
    struct failure failure;
    FILE *stream = regular_file_open(path, &failure);
    if (stream == NULL)
        return false;
    const size_t count = fread(magic, 1, sizeof magic, stream);
    fclose(stream);
    return count == sizeof magic &&
           (memcmp(magic, "PK\3\4", 4) == 0 || (magic[0] == 0x80 && magic[1] >= 2 && magic[1] <= 5));
}

static bool explain_pickle(const char *path, struct failure *failure)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash != NULL ? slash : path, '.');
    const int stem = dot != NULL && dot != path ? (int)(dot - path) : (int)strlen(path);
    return failure_set(
        failure,
        "%s: is a pickled checkpoint, not safetensors; convert it: python -m libswin convert %s %.*s.safetensors", path,
        path, stem, path);
}

static bool explain_directory(const char *path, struct failure *failure)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char inside[4096];
        struct stat status;
        snprintf(inside, sizeof inside, "%s/%s", path, names[i]);
        if (stat(inside, &status) == 0)
            return failure_set(failure, "%s: is a directory; give the checkpoint in it: --weights %s", path, inside);
    }
    return failure_set(failure, "%s: is a directory; give a .safetensors file", path);
}

static bool open_file(const struct options *options, swin_model **model, struct failure *failure)
{
    swin_error error;
    struct stat status;
    swin_model_params params = options->model;
    params.precision = options->precision;
    if (swin_model_open(options->weights, &params, model, &error) == SWIN_OK)
        return true;
    if (stat(options->weights, &status) != 0)
        return failure_set(failure, "%s: cannot be opened: %s", options->weights, failure_of_errno(errno));
    if (S_ISDIR(status.st_mode))
        return explain_directory(options->weights, failure);
    if (is_pickled(options->weights))
        return explain_pickle(options->weights, failure);
    const bool named = strstr(error.message, options->weights) != NULL;
    return failure_set(failure, "%s%s%s", named ? "" : options->weights, named ? "" : ": ", error.message);
}

/* What the caller wants otherwise is put into the configuration: there is no file to disagree. */
static bool create_demo(const struct options *options, swin_model **model, struct failure *failure)
{
    swin_config config;
    swin_error error;
    swin_model_params params = options->model;
    params.precision = options->precision;
    if (swin_config_preset(&config, sizeof config, WEIGHTS_DEMO_PRESET, &error) != SWIN_OK)
        return failure_set(failure, "the built-in model: %s", error.message);
    if (params.window[0][0] != 0)
        memcpy(config.window, params.window, sizeof config.window);
    if (params.lineage != SWIN_LINEAGE_AUTO)
        config.lineage = params.lineage;
    if (params.image_size[0] != 0)
        memcpy(config.image_size, params.image_size, sizeof config.image_size);
    if (params.out_norm == SWIN_OUT_NORM_ON)
        config.out_norm = (1 << config.stages) - 1;
    if (swin_model_create_random(&config, WEIGHTS_DEMO_SEED, &params, model, &error) != SWIN_OK)
        return failure_set(failure, "the built-in model: %s", error.message);
    return true;
}

bool weights_open(const struct options *options, swin_model **model, struct failure *failure)
{
    *model = NULL;
    return options->weights != NULL ? open_file(options, model, failure) : create_demo(options, model, failure);
}

const char *weights_label(const struct options *options)
{
    if (options->weights == NULL)
        return WEIGHTS_DEMO_PRESET " with random weights";
    const char *slash = strrchr(options->weights, '/');
    return slash != NULL ? slash + 1 : options->weights;
}
