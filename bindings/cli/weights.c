/* SPDX-License-Identifier: MIT */
#include "weights.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* One for each stage is for as many stages as the model has. */
static bool check_window_counts(const struct options *options, int32_t stages, struct failure *failure)
{
    const struct {
        const char *name;
        int count;
    } given[] = {{"window", options->window_count}, {"pretrained-window", options->pretrained_window_count}};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        if (given[i].count > 1 && given[i].count != stages)
            return failure_set(failure,
                               "--%s: %d windows were given, the model has %d stages; give one, or one for "
                               "each",
                               given[i].name, given[i].count, stages);
    }
    return true;
}

static bool open_file(const struct options *options, swin_model **model, struct failure *failure)
{
    swin_error error;
    struct stat status;
    swin_model_params params = options->model;
    params.precision = options->precision;
    if (swin_model_open(options->weights, &params, model, &error) == SWIN_OK) {
        swin_config config;
        return swin_model_config(*model, &config, sizeof config, NULL) != SWIN_OK ||
               check_window_counts(options, config.stages, failure);
    }
    if (stat(options->weights, &status) != 0)
        return failure_set(failure, "%s: cannot be opened: %s", options->weights, failure_of_errno(errno));
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
    if (!check_window_counts(options, config.stages, failure))
        return false;
    for (int32_t s = 0; s < config.stages && params.window[s][0] != 0; s++)
        memcpy(config.window[s], params.window[s], sizeof config.window[s]);
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
