/* SPDX-License-Identifier: MIT */
/*
 * model.h - a checkpoint as the rest of the library sees it: one configuration, and tensors under canonical names in
 * canonical form, whatever file, naming and layout they come from. Immutable once made; any thread may read.
 *
 * Canonical form is Microsoft's V1/V2 code: linear weights [out, in] row-major, query/key/value rows stacked in that
 * order, merge columns ordered (0,0), (1,0), (0,1), (1,1) in (row, column). Values are float32.
 */
#ifndef SW_MODEL_MODEL_H
#define SW_MODEL_MODEL_H

#include <stdbool.h>

#include "../base/status.h"
#include "config.h"

typedef enum sw_kind {
    SW_PATCH_WEIGHT,      /* [E, 3*P*P], columns channel, row, column of the patch     */
    SW_PATCH_BIAS,        /* [E]                                                       */
    SW_PATCH_NORM_WEIGHT, /* [E]; absent without patch_norm                            */
    SW_PATCH_NORM_BIAS,
    SW_ABSOLUTE_POSITION, /* [rows * columns of its grid, E]; absent in most models    */

    SW_NORM1_WEIGHT, /* [C] of a stage and block, and so on                             */
    SW_NORM1_BIAS,
    SW_QKV_WEIGHT,  /* [3C, C]                                                         */
    SW_QKV_BIAS,    /* [3C]; zero where the file has none (V2: the key's third)        */
    SW_LOGIT_SCALE, /* [heads]; V2 only: exp(min(stored, ln 100))                      */
    SW_PROJ_WEIGHT, /* [C, C]                                                          */
    SW_PROJ_BIAS,   /* [C]                                                             */
    SW_NORM2_WEIGHT,
    SW_NORM2_BIAS,
    SW_FC1_WEIGHT, /* [hidden, C]                                                      */
    SW_FC1_BIAS,
    SW_FC2_WEIGHT, /* [C, hidden]                                                      */
    SW_FC2_BIAS,
    SW_NORM3_WEIGHT, /* [C]; only blocks with sw_config_has_block_norm()               */
    SW_NORM3_BIAS,

    SW_MERGE_NORM_WEIGHT, /* of a stage with a successor; V1 [4C], V2 [2C]             */
    SW_MERGE_NORM_BIAS,
    SW_MERGE_WEIGHT, /* [2C, 4C]                                                       */

    SW_OUT_NORM_WEIGHT, /* [C] of a stage; only where config.out_norm has its bit      */
    SW_OUT_NORM_BIAS,
    SW_KIND_COUNT
} sw_kind;

typedef struct sw_tensor_id {
    sw_kind kind;
    int32_t stage; /* 0 where the kind has none: no other value names a tensor */
    int32_t block; /* likewise                                                 */
} sw_tensor_id;

typedef struct sw_model sw_model;

/* See swin_model_open() and swin_model_create_random(). */
swin_status sw_model_open(const char *path, const swin_model_params *params, sw_model **result, swin_error *err);
swin_status sw_model_create_random(const swin_config *config, uint64_t seed, sw_model **result, swin_error *err);
void sw_model_destroy(sw_model *model);

const swin_config *sw_model_config(const sw_model *model);
void sw_model_info(const sw_model *model, swin_model_info *info);
const char *sw_model_tensor_name(const sw_model *model, swin_tensor_use use, size_t index);

/* How many floats a tensor has in canonical form; 0 where the model has no such tensor. A vector has one column. */
void sw_model_shape(const sw_model *model, sw_tensor_id id, int32_t *rows, int32_t *columns);

/* Reads a whole tensor into dst [rows, columns], converted, permuted and stacked as the dialect asks. Rows can be read
 * in parts: rows first .. first + count - 1. Fails with IO where the file has changed or shrunk. */
swin_status sw_model_read(const sw_model *model, sw_tensor_id id, int32_t first, int32_t count, float *dst,
                          swin_error *err);

/* The position bias of a block for a window of rows x columns tokens: dst[head][(2*rows-1) * (2*columns-1)], entry (dy,
 * dx) of query minus key at (dy + rows - 1) * (2*columns - 1) + dx + columns - 1. V1: the stored table, resized as the
 * lineage does where the window differs. V2: 16 * sigmoid of the continuous position bias. */
swin_status sw_model_position_bias(const sw_model *model, int32_t stage, int32_t block, int32_t rows, int32_t columns,
                                   float *dst, swin_error *err);

#endif
