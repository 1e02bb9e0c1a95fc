/* SPDX-License-Identifier: MIT */
/*
 * recognition.h - what a checkpoint turned out to be: its configuration, and which of its tensors is which piece of it.
 *
 * Steps, each in a file of its own: locate.c finds prefix and naming; assign.c gives every name its place; sizes.c
 * derives and checks sizes; windows.c decides the windows; lineage.c names the dialect and decides the lineage.
 */
#ifndef SW_MODEL_RECOGNITION_H
#define SW_MODEL_RECOGNITION_H

#include "../weights/checkpoint.h"
#include "model.h"
#include "naming.h"
#include "pattern.h"
#include "position_bias.h"
#include "resample.h"

typedef struct sw_recognition {
    swin_config config;
    const sw_naming *naming;
    char *prefix;
    bool chosen;              /* the prefix is the caller's choice among several   */
    uint8_t *uses;            /* a swin_tensor_use for each of the table's tensors */
    const sw_tensor **pieces; /* [blocks of all stages][SW_PIECE_COUNT]            */
    int32_t block_start[SWIN_MAX_STAGES + 1];
    int32_t stored_window[SWIN_MAX_STAGES][2]; /* V1: of the tables in the file */

    bool transposed;          /* linear weights are [in, out]              */
    bool unfolded;            /* merge columns are ordered channel, row, column */
    sw_resample_rule resample;
    const char *dialect;
    const char *lineage_reason;
    char window_reason[320];
} sw_recognition;

/* Recognises what an open checkpoint holds; `path` is for the names beside it, `params` sized as this library knows it.
 * On failure *recognition is zero. */
swin_status sw_recognise(const char *path, const sw_checkpoint *checkpoint, const swin_model_params *params,
                         sw_recognition *recognition, swin_error *err);
void sw_recognition_release(sw_recognition *recognition);

/* The tensor of a piece, NULL where the file has none. */
static inline const sw_tensor *sw_recognition_piece(const sw_recognition *recognition, sw_piece piece, int32_t stage,
                                                    int32_t block)
{
    return recognition->pieces[(size_t)(recognition->block_start[stage] + block) * SW_PIECE_COUNT + piece];
}

/* The steps. */
swin_status sw_assign_pieces(const sw_checkpoint *checkpoint, sw_recognition *recognition, swin_error *err);
swin_status sw_derive_sizes(sw_recognition *recognition, swin_error *err);
swin_status sw_decide_windows(const char *path, const sw_checkpoint *checkpoint, const swin_model_params *params,
                              sw_recognition *recognition, swin_error *err);
void sw_decide_lineage(const sw_checkpoint *checkpoint, const swin_model_params *params,
                       sw_recognition *recognition);
swin_status sw_check_shapes(const sw_recognition *recognition, swin_error *err);

/* How bias tables are resampled in a lineage. */
sw_resample_rule sw_lineage_resample_rule(int32_t lineage);

/* The full name of a piece, for messages. Returns name. */
const char *sw_recognition_name(const sw_recognition *recognition, sw_piece piece, int32_t stage, int32_t block,
                                char *name, size_t size);

#endif
