/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "../base/memory.h"
#include "locate.h"
#include "recognition.h"

static swin_status check_params(const swin_model_params *params, swin_error *err)
{
    if (params->version < 0 || params->version > 2)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "params.version is %d, expected 0, 1 or 2", params->version);
    if (params->lineage < SWIN_LINEAGE_AUTO || params->lineage > SWIN_LINEAGE_MMPRETRAIN)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "params.lineage is %d, expected %d to %d", params->lineage,
                       SWIN_LINEAGE_AUTO, SWIN_LINEAGE_MMPRETRAIN);
    if (params->out_norm < SWIN_OUT_NORM_AUTO || params->out_norm > SWIN_OUT_NORM_OFF)
        return sw_fail(err, SWIN_ERR_ARGUMENT, "params.out_norm is %d, expected %d to %d", params->out_norm,
                       SWIN_OUT_NORM_AUTO, SWIN_OUT_NORM_OFF);
    return SWIN_OK;
}

static void set_ignored(const sw_checkpoint *checkpoint, sw_recognition *recognition, sw_piece piece, int32_t stage)
{
    const sw_tensor *tensor = sw_recognition_piece(recognition, piece, stage, 0);
    if (tensor != NULL)
        recognition->uses[tensor - checkpoint->table.tensors] = SWIN_TENSOR_IGNORED;
}

/* The caller's word on level norms, once what the file has is checked. */
static void apply_out_norm(const sw_checkpoint *checkpoint, const swin_model_params *params,
                           sw_recognition *recognition)
{
    swin_config *config = &recognition->config;
    if (params->out_norm == SWIN_OUT_NORM_ON) {
        config->out_norm = (1 << config->stages) - 1;
    } else if (params->out_norm == SWIN_OUT_NORM_OFF) {
        config->out_norm = 0;
        for (int32_t stage = 0; stage < config->stages; stage++) {
            set_ignored(checkpoint, recognition, SW_PIECE_OUT_NORM_WEIGHT, stage);
            set_ignored(checkpoint, recognition, SW_PIECE_OUT_NORM_BIAS, stage);
        }
    }
    if (config->absolute_position[0] == 0)
        set_ignored(checkpoint, recognition, SW_PIECE_ABSOLUTE_POSITION, 0);
}

static swin_status recognise(const char *path, const sw_checkpoint *checkpoint, const swin_model_params *params,
                             sw_recognition *recognition, swin_error *err)
{
    sw_location location;
    SW_TRY(check_params(params, err));
    SW_TRY(sw_locate(&checkpoint->table, params->prefix, &location, err));
    recognition->naming = location.naming;
    recognition->chosen = params->prefix != NULL;
    recognition->prefix = sw_copy_string(location.anchor, location.prefix_length);
    if (recognition->prefix == NULL)
        return sw_fail_memory(err, location.prefix_length, "a prefix");
    SW_TRY(sw_assign_pieces(checkpoint, recognition, err));
    if (params->version != 0 && params->version != recognition->config.version)
        return sw_fail(err, SWIN_ERR_MISMATCH, "%.300s holds a Swin V%d, expected V%d as asked (params.version)", path,
                       recognition->config.version, params->version);
    SW_TRY(sw_derive_sizes(recognition, err));
    sw_decide_lineage(checkpoint, params, recognition);
    SW_TRY(sw_decide_windows(path, checkpoint, params, recognition, err));
    SW_TRY(sw_check_shapes(recognition, err));
    apply_out_norm(checkpoint, params, recognition);
    return sw_config_check(&recognition->config, err);
}

/* Whether a file's name is one of "model-00001-of-00004.safetensors" and its like. */
static bool is_named_as_shard(const char *path)
{
    const char *name = strrchr(path, '/'), *of = strstr(name == NULL ? path : name, "-of-");
    return of != NULL && of[4] >= '0' && of[4] <= '9';
}

swin_status sw_recognise(const char *path, const sw_checkpoint *checkpoint, const swin_model_params *params,
                         sw_recognition *recognition, swin_error *err)
{
    *recognition = (sw_recognition){.config = {.struct_size = sizeof recognition->config}};
    swin_error own = {0};
    const swin_status status = recognise(path, checkpoint, params, recognition, &own);
    if (status == SWIN_OK)
        return SWIN_OK;
    sw_recognition_release(recognition);
    if (status == SWIN_ERR_MISMATCH && is_named_as_shard(path))
        return sw_fail(err, status, "%.380s; this is one shard of several: open the *.safetensors.index.json beside it",
                       own.message);
    return sw_fail(err, status, "%s", own.message);
}

void sw_recognition_release(sw_recognition *recognition)
{
    sw_free(recognition->prefix);
    sw_free(recognition->uses);
    sw_free(recognition->pieces);
    *recognition = (sw_recognition){0};
}
