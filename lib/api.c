/* SPDX-License-Identifier: MIT */
/*
 * Every exported function: arguments are checked here and nowhere else, then one internal function does the work.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/surroundings.h"
#include "base/threads.h"
#include "caller.h"
#include "exec/attention_weights.h"
#include "exec/session.h"
#include "exec/shared.h"
#include "kernels/selftest.h"
#include "model/config.h"
#include "model/model.h"

/* More threads than any machine has CPUs: a mistake. */
#define THREADS_MAX 4096
/* Images in one call. */
#define COUNT_MAX (1 << 20)

struct swin_session {
    swin_model *model; /* a reference */
    sw_session *session;
    _Atomic bool busy;
    sw_pixels *pixels; /* [pixel_capacity] */
    size_t pixel_capacity;
    char backend[32];
};

/* ------------------------------------------------------------------------------------------------------------------
 * Version and configuration
 */

const char *swin_status_string(swin_status status)
{
    static const char *const names[] = {
        "ok",          "argument", "state", "no memory", "input/output",   "file format",
        "unsupported", "mismatch", "limit", "backend",   "internal fault",
    };
    const size_t index = (size_t)status;
    return index < sizeof names / sizeof names[0] ? names[index] : "unknown status";
}

uint32_t swin_version(void)
{
    return SWIN_VERSION_MAJOR * 10000 + SWIN_VERSION_MINOR * 100 + SWIN_VERSION_PATCH;
}

const char *swin_version_string(void)
{
    return SW_VERSION_TEXT;
}

uint32_t swin_abi_version(void)
{
    return SWIN_ABI_VERSION;
}

size_t swin_struct_size(const char *name)
{
#define SIZE_OF(type) {#type, sizeof(type)}
    static const struct {
        const char *name;
        size_t size;
    } structs[] = {
        SIZE_OF(swin_error),           SIZE_OF(swin_selftest_result),   SIZE_OF(swin_config),
        SIZE_OF(swin_model_params),    SIZE_OF(swin_model_info),        SIZE_OF(swin_output_info),
        SIZE_OF(swin_session_params),  SIZE_OF(swin_image),             SIZE_OF(swin_maps),
        SIZE_OF(swin_session_info),    SIZE_OF(swin_profile),           SIZE_OF(swin_attention_request),
        SIZE_OF(swin_attention_info),  SIZE_OF(swin_attention),
    };
#undef SIZE_OF
    for (size_t i = 0; name != NULL && i < sizeof structs / sizeof structs[0]; i++) {
        if (strcmp(name, structs[i].name) == 0)
            return structs[i].size;
    }
    return 0;
}

swin_status swin_selftest(size_t index, swin_selftest_result *result, size_t struct_size, swin_error *err)
{
    SW_OWN_SURROUNDINGS;
    sw_error_reset(err);
    SW_TRY(sw_require(result, "result", err));
    sw_selftest found;
    const swin_status status =
        sw_selftest_run(sw_kernels_for(sw_isa_best()), sw_dnn_uses_amx_bf16(), index, &found, err);
    const swin_selftest_result ours = {
        .struct_size = sizeof ours, .kernel = found.kernel, .isa = found.isa, .error = found.error};
    const swin_status given = sw_give_struct(result, struct_size, &ours, sizeof ours, "result", err);
    return status != SWIN_OK ? status : given;
}

swin_status swin_config_preset(swin_config *config, size_t struct_size, const char *name, swin_error *err)
{
    sw_error_reset(err);
    SW_TRY(sw_require(name, "name", err));
    swin_config preset;
    SW_TRY(sw_config_preset(&preset, name, err));
    return sw_give_struct(config, struct_size, &preset, sizeof preset, "config", err);
}

const char *swin_config_preset_name(size_t index)
{
    return sw_config_preset_name(index);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Model
 */

void swin_model_params_init(swin_model_params *params, size_t struct_size)
{
    if (params == NULL || struct_size < sizeof struct_size)
        return;
    memset(params, 0, struct_size);
    params->struct_size = struct_size;
}

static swin_status check_pairs(int32_t pairs[SWIN_MAX_STAGES][2], const char *name, swin_error *err)
{
    for (int s = 0; s < SWIN_MAX_STAGES; s++) {
        const int32_t *pair = pairs[s];
        if ((pair[0] == 0) != (pair[1] == 0) || pair[0] < 0 || pair[1] < 0)
            return sw_fail(err, SWIN_ERR_ARGUMENT,
                           "params.%s of stage %d is %d x %d, expected two positive numbers or 0 x 0", name, s, pair[0],
                           pair[1]);
    }
    return SWIN_OK;
}

static swin_status take_model_params(swin_model_params *ours, const swin_model_params *theirs, swin_error *err)
{
    if (theirs == NULL) {
        swin_model_params_init(ours, sizeof *ours);
        return SWIN_OK;
    }
    SW_TRY(sw_take_struct(ours, sizeof *ours, theirs, sizeof ours->struct_size, "params", err));
    SW_TRY(sw_require_range(ours->version, 0, 2, "params.version", err));
    SW_TRY(sw_require_range(ours->lineage, 0, SWIN_LINEAGE_MMPRETRAIN, "params.lineage", err));
    SW_TRY(sw_require_range(ours->out_norm, 0, SWIN_OUT_NORM_OFF, "params.out_norm", err));
    SW_TRY(sw_require_range(ours->precision, 0, SWIN_PRECISION_BF16, "params.precision", err));
    SW_TRY(check_pairs(ours->window, "window", err));
    SW_TRY(check_pairs(ours->pretrained_window, "pretrained_window", err));
    if ((ours->image_size[0] == 0) != (ours->image_size[1] == 0) || ours->image_size[0] < 0 || ours->image_size[1] < 0)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "params.image_size is %d x %d, expected two positive numbers or 0 x 0",
                       ours->image_size[0], ours->image_size[1]);
    return SWIN_OK;
}

swin_status swin_model_open(const char *path, const swin_model_params *params, swin_model **model, swin_error *err)
{
    SW_OWN_SURROUNDINGS;
    sw_error_reset(err);
    SW_TRY(sw_require(model, "model", err));
    *model = NULL;
    SW_TRY(sw_require(path, "path", err));
    swin_model_params ours;
    SW_TRY(take_model_params(&ours, params, err));
    sw_model *opened;
    SW_TRY(sw_model_open(path, &ours, &opened, err));
    return sw_shared_create(opened, ours.precision, model, err);
}

swin_status swin_model_create_random(const swin_config *config, uint64_t seed, const swin_model_params *params,
                                     swin_model **model, swin_error *err)
{
    SW_OWN_SURROUNDINGS;
    sw_error_reset(err);
    SW_TRY(sw_require(model, "model", err));
    *model = NULL;
    SW_TRY(sw_require(config, "config", err));
    swin_config ours;
    swin_model_params ours_params;
    SW_TRY(sw_take_struct(&ours, sizeof ours, config, sizeof ours.struct_size, "config", err));
    SW_TRY(take_model_params(&ours_params, params, err));
    ours.struct_size = sizeof ours;
    sw_model *made;
    SW_TRY(sw_model_create_random(&ours, seed, &made, err));
    return sw_shared_create(made, ours_params.precision, model, err);
}

void swin_model_destroy(swin_model *model)
{
    SW_OWN_SURROUNDINGS;
    sw_shared_unref(model);
}

swin_status swin_model_config(const swin_model *model, swin_config *config, size_t struct_size, swin_error *err)
{
    sw_error_reset(err);
    SW_TRY(sw_require(model, "model", err));
    return sw_give_struct(config, struct_size, sw_model_config(sw_shared_model(model)), sizeof *config, "config", err);
}

swin_status swin_model_get_info(const swin_model *model, swin_model_info *info, size_t struct_size, swin_error *err)
{
    sw_error_reset(err);
    SW_TRY(sw_require(model, "model", err));
    swin_model_info ours;
    memset(&ours, 0, sizeof ours);
    sw_model_info(sw_shared_model(model), &ours);
    return sw_give_struct(info, struct_size, &ours, sizeof ours, "info", err);
}

const char *swin_model_tensor_name(const swin_model *model, swin_tensor_use use, size_t index)
{
    return model == NULL ? NULL : sw_model_tensor_name(sw_shared_model(model), use, index);
}

swin_status swin_model_output_info(const swin_model *model, int32_t height, int32_t width, swin_output_info *infos,
                                   swin_error *err)
{
    sw_error_reset(err);
    SW_TRY(sw_require(model, "model", err));
    SW_TRY(sw_require(infos, "infos", err));
    SW_TRY(sw_require_range(height, 1, INT32_MAX, "height", err));
    SW_TRY(sw_require_range(width, 1, INT32_MAX, "width", err));
    const swin_config *config = sw_model_config(sw_shared_model(model));
    int32_t maps[SWIN_MAX_STAGES][2];
    SW_TRY(sw_plan_maps(config, height, width, maps, err));
    memset(infos, 0, SWIN_MAX_STAGES * sizeof *infos);
    for (int32_t s = 0; s < config->stages; s++)
        infos[s] = (swin_output_info){.level = s,
                                      .stride = config->patch_size << s,
                                      .channels = sw_config_channels(config, s),
                                      .height = maps[s][0],
                                      .width = maps[s][1],
                                      .normed = config->out_norm >> s & 1};
    return SWIN_OK;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Session
 */

void swin_session_params_init(swin_session_params *params, size_t struct_size)
{
    if (params == NULL || struct_size < sizeof struct_size)
        return;
    memset(params, 0, struct_size);
    params->struct_size = struct_size;
}

swin_status swin_session_create(const swin_model *model, const swin_session_params *params, swin_session **session,
                                swin_error *err)
{
    SW_OWN_SURROUNDINGS;
    sw_error_reset(err);
    SW_TRY(sw_require(session, "session", err));
    *session = NULL;
    SW_TRY(sw_require(model, "model", err));
    swin_session_params ours;
    swin_session_params_init(&ours, sizeof ours);
    if (params != NULL)
        SW_TRY(sw_take_struct(&ours, sizeof ours, params, sizeof ours.struct_size, "params", err));
    SW_TRY(sw_require_range(ours.precision, 0, SWIN_PRECISION_BF16, "params.precision", err));
    SW_TRY(sw_require_range(ours.threads, 0, THREADS_MAX, "params.threads", err));

    /* The model is immutable to its users; references and networks are counted and added behind a lock. */
    swin_model *shared = (swin_model *)model;
    sw_network *network;
    SW_TRY(sw_shared_network(shared, ours.precision, &network, err));
    swin_session *s = sw_alloc_zeroed(1, sizeof *s);
    if (s == NULL)
        return sw_fail_memory(err, sizeof *s, "a session");
    const swin_status status =
        sw_session_create(network, sw_kernels_for(sw_isa_best()), ours.threads > 0 ? ours.threads : sw_cpu_count(),
                          ours.profile != 0, &s->session, err);
    if (status != SWIN_OK) {
        sw_free(s);
        return status;
    }
    s->model = sw_shared_ref(shared);
    atomic_init(&s->busy, false);
    sw_dnn_version(s->backend);
    *session = s;
    return SWIN_OK;
}

void swin_session_destroy(swin_session *session)
{
    SW_OWN_SURROUNDINGS;
    if (session == NULL)
        return;
    sw_session_destroy(session->session);
    sw_shared_unref(session->model);
    sw_free(session->pixels);
    sw_free(session);
}

void swin_image_init(swin_image *image, size_t struct_size)
{
    if (image == NULL || struct_size < sizeof struct_size)
        return;
    const swin_image defaults = {.struct_size = struct_size,
                                 .format = SWIN_PIXEL_RGB8,
                                 .mean = {123.675f, 116.28f, 103.53f},
                                 .std = {58.395f, 57.12f, 57.375f}};
    memset(image, 0, struct_size);
    memcpy(image, &defaults, struct_size < sizeof defaults ? struct_size : sizeof defaults);
}

void swin_maps_init(swin_maps *maps, size_t struct_size)
{
    if (maps == NULL || struct_size < sizeof struct_size)
        return;
    memset(maps, 0, struct_size);
    maps->struct_size = struct_size;
}

static swin_status run(swin_session *session, const swin_image *images, size_t count, const swin_maps *maps,
                       swin_error *err)
{
    if (count > session->pixel_capacity) {
        sw_free(session->pixels);
        session->pixel_capacity = 0;
        session->pixels = sw_alloc(count, sizeof *session->pixels);
        if (session->pixels == NULL)
            return sw_fail_memory(err, count * sizeof *session->pixels, "descriptions of images");
        session->pixel_capacity = count;
    }
    size_t stride;
    memcpy(&stride, images, sizeof stride);
    int32_t canvas[2] = {0, 0};
    for (size_t i = 0; i < count; i++) {
        swin_image image;
        const char *theirs = (const char *)images + i * stride;
        size_t struct_size;
        memcpy(&struct_size, theirs, sizeof struct_size);
        if (struct_size != stride)
            return sw_fail(err, SWIN_ERR_ARGUMENT, "image %zu has struct_size %zu, image 0 has %zu", i, struct_size,
                           stride);
        SW_TRY(sw_take_struct(&image, sizeof image, theirs, sizeof image.struct_size, "image", err));
        SW_TRY(sw_take_image(&session->pixels[i], canvas, &image, i, err));
    }
    swin_maps ours;
    SW_TRY(sw_take_maps(&ours, maps, sw_model_config(sw_shared_model(session->model)), canvas, count, err));
    return sw_session_run(session->session, session->pixels, count, canvas, &ours, err);
}

/* One thread at a time. */
static swin_status enter(swin_session *session, swin_error *err)
{
    bool idle = false;
    if (atomic_compare_exchange_strong(&session->busy, &idle, true))
        return SWIN_OK;
    return sw_fail(err, SWIN_ERR_STATE, "the session is in use by another thread: make one session per thread");
}

swin_status swin_session_run(swin_session *session, const swin_image *images, size_t count, const swin_maps *maps,
                             swin_error *err)
{
    SW_OWN_SURROUNDINGS;
    sw_error_reset(err);
    SW_TRY(sw_require(session, "session", err));
    SW_TRY(sw_require(images, "images", err));
    SW_TRY(sw_require(maps, "maps", err));
    if (count < 1 || count > COUNT_MAX)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "count is %zu images, expected 1 to %d", count, COUNT_MAX);
    SW_TRY(enter(session, err));
    const swin_status status = run(session, images, count, maps, err);
    atomic_store(&session->busy, false);
    return status;
}

swin_status swin_session_get_info(const swin_session *session, swin_session_info *info, size_t struct_size,
                                  swin_error *err)
{
    sw_error_reset(err);
    SW_TRY(sw_require(session, "session", err));
    const sw_network *network = sw_session_network(session->session);
    const swin_session_info ours = {
        .precision = network->type == SW_BF16 ? SWIN_PRECISION_BF16 : SWIN_PRECISION_F32,
        .threads = sw_session_threads(session->session),
        .kernels = sw_session_kernels(session->session),
        .backend = session->backend,
        .matmul = sw_linear_kernel(&network->stages[0].blocks[0].fc1),
        .weight_bytes = sw_network_bytes(network),
        .scratch_bytes = sw_session_scratch_bytes(session->session) +
                         session->pixel_capacity * sizeof *session->pixels,
    };
    return sw_give_struct(info, struct_size, &ours, sizeof ours, "info", err);
}

swin_status swin_session_get_profile(const swin_session *session, swin_profile *profile, size_t struct_size,
                                     swin_error *err)
{
    sw_error_reset(err);
    SW_TRY(sw_require(session, "session", err));
    swin_profile ours = {.struct_size = sizeof ours};
    sw_session_profile(session->session, &ours);
    return sw_give_struct(profile, struct_size, &ours, sizeof ours, "profile", err);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Looking inside
 */

void swin_attention_request_init(swin_attention_request *request, size_t struct_size)
{
    if (request == NULL || struct_size < sizeof struct_size)
        return;
    const swin_attention_request defaults = {.struct_size = struct_size, .head = SWIN_HEAD_MEAN};
    memset(request, 0, struct_size);
    memcpy(request, &defaults, struct_size < sizeof defaults ? struct_size : sizeof defaults);
}

void swin_attention_init(swin_attention *attention, size_t struct_size)
{
    if (attention == NULL || struct_size < sizeof struct_size)
        return;
    memset(attention, 0, struct_size);
    attention->struct_size = struct_size;
}

swin_status swin_model_attention_info(const swin_model *model, int32_t height, int32_t width,
                                      const swin_attention_request *request, swin_attention_info *info,
                                      size_t struct_size, swin_error *err)
{
    sw_error_reset(err);
    SW_TRY(sw_require(model, "model", err));
    SW_TRY(sw_require(request, "request", err));
    SW_TRY(sw_require_range(height, 1, INT32_MAX, "height", err));
    SW_TRY(sw_require_range(width, 1, INT32_MAX, "width", err));
    swin_attention_request ours;
    SW_TRY(sw_take_struct(&ours, sizeof ours, request, sizeof ours.struct_size, "request", err));
    swin_attention_info found;
    const int32_t canvas[2] = {height, width};
    SW_TRY(sw_attention_weights_find(sw_model_config(sw_shared_model(model)), canvas, &ours, &found, err));
    return sw_give_struct(info, struct_size, &found, sizeof found, "info", err);
}

static swin_status check_attention(const swin_attention *attention, const swin_attention_info *info, swin_error *err)
{
    SW_TRY(sw_require(attention->weights, "attention.weights", err));
    if (attention->weight_capacity < info->weight_count)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "attention.weight_capacity is %zu floats, expected at least %zu",
                       attention->weight_capacity, info->weight_count);
    if (attention->tokens != NULL && attention->token_capacity < info->token_count)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "attention.token_capacity is %zu entries, expected at least %zu",
                       attention->token_capacity, info->token_count);
    if (((uintptr_t)attention->weights | (uintptr_t)attention->tokens) % sizeof(float) != 0)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "attention.weights or .tokens is not aligned to 4 bytes");
    return SWIN_OK;
}

static swin_status look(swin_session *session, const swin_image *image, const swin_attention_request *request,
                        const swin_attention *attention, swin_error *err)
{
    swin_image our_image;
    swin_attention_request our_request;
    swin_attention ours;
    SW_TRY(sw_take_struct(&our_image, sizeof our_image, image, sizeof our_image.struct_size, "image", err));
    SW_TRY(sw_take_struct(&our_request, sizeof our_request, request, sizeof our_request.struct_size, "request", err));
    SW_TRY(sw_take_struct(&ours, sizeof ours, attention, sizeof ours.struct_size, "attention", err));
    sw_pixels pixels;
    int32_t canvas[2];
    SW_TRY(sw_take_image(&pixels, canvas, &our_image, 0, err));
    swin_attention_info info;
    SW_TRY(sw_attention_weights_find(sw_model_config(sw_shared_model(session->model)), canvas, &our_request, &info,
                                     err));
    SW_TRY(check_attention(&ours, &info, err));
    return sw_session_attention(session->session, &pixels, canvas, &our_request, &info, &ours, err);
}

swin_status swin_session_attention(swin_session *session, const swin_image *image,
                                   const swin_attention_request *request, const swin_attention *attention,
                                   swin_error *err)
{
    SW_OWN_SURROUNDINGS;
    sw_error_reset(err);
    SW_TRY(sw_require(session, "session", err));
    SW_TRY(sw_require(image, "image", err));
    SW_TRY(sw_require(request, "request", err));
    SW_TRY(sw_require(attention, "attention", err));
    SW_TRY(enter(session, err));
    const swin_status status = look(session, image, request, attention, err);
    atomic_store(&session->busy, false);
    return status;
}
