/* SPDX-License-Identifier: MIT */
#include "models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config_of.h"

static const struct {
    const char *name;
    int32_t version, lineage, stages, embed_dim, heads, window, norm_period;
} models[MODEL_COUNT] = {
    [MODEL_AMX] = {"amx", 1, SWIN_LINEAGE_DETECTION, 4, 64, 2, 7, 0},
    [MODEL_PLAIN] = {"plain", 1, SWIN_LINEAGE_DETECTION, 4, 24, 1, 7, 0},
    [MODEL_LARGE] = {"large windows", 1, SWIN_LINEAGE_DETECTION, 3, 48, 2, 12, 0},
    [MODEL_V2] = {"v2", 2, SWIN_LINEAGE_DETECTION, 4, 32, 1, 8, 0},
    [MODEL_V2_NORM] = {"v2 with norms", 2, SWIN_LINEAGE_DETECTION, 3, 32, 2, 16, 2},
    [MODEL_CLAMPED] = {"clamped", 1, SWIN_LINEAGE_MICROSOFT, 4, 32, 1, 7, 0},
};

const char *models_name(int which)
{
    return models[which].name;
}

swin_config models_config(int which)
{
    swin_config config = config_of(models[which].version, models[which].stages, models[which].embed_dim,
                                   models[which].heads, models[which].window);
    config.lineage = models[which].lineage;
    config.block_norm_period = models[which].norm_period;
    return config;
}

swin_model *models_make(int which, int32_t precision)
{
    const swin_config config = models_config(which);
    const swin_model_params params = {.struct_size = sizeof params, .precision = precision};
    swin_error err;
    swin_model *model;
    if (swin_model_create_random(&config, 7, &params, &model, &err) != SWIN_OK)
        fail_msg("%s: %s", models[which].name, err.message);
    return model;
}

swin_session *models_session(const swin_model *model, int32_t precision, int32_t threads)
{
    const swin_session_params params = {.struct_size = sizeof params, .precision = precision, .threads = threads};
    swin_error err;
    swin_session *session;
    if (swin_session_create(model, &params, &session, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    return session;
}
