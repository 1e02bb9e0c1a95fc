/* SPDX-License-Identifier: MIT */
/*
 * network.h - a model made ready to compute in one precision: packed weights, matrix products, position biases.
 *
 * Built once per model and precision and then shared, read-only, by all sessions; only the position biases of windows
 * that a lineage clamps to a small map are added later, under a lock.
 *
 * Legend of shapes, used throughout lib/exec: C channels of the stage, T slots of a window (tokens or padding), d
 * channels of a head, H heads, R rows (tokens) of a tile.
 */
#ifndef SW_EXEC_NETWORK_H
#define SW_EXEC_NETWORK_H

#include <pthread.h>
#include <stdatomic.h>

#include "../dnn/dnn.h"
#include "../kernels/kernels.h"
#include "../model/model.h"
#include "linear.h"
#include "position_bias.h"

/* LayerNorm's epsilon, the same in every implementation. */
#define SW_NORM_EPS 1e-5f

typedef struct sw_block {
    sw_norm norm1, norm2;
    sw_norm norm3;          /* V2 huge and giant; weight NULL in other blocks */
    sw_linear qkv;          /* [C] -> panels of q, then of k, then of v       */
    sw_linear proj, fc1, fc2;
    float *logit_scale;     /* [H]; V2 only                                   */
    sw_position_bias bias;  /* of the configured window                       */
} sw_block;

/* How attention is cut into oneDNN products. */
typedef struct sw_attention_plan { /* unused with AMX */
    bool split;             /* q, k, v are copied head by head; else they are viewed where they lie      */
    int32_t windows;        /* windows per product; 1 when split                                         */
    int32_t heads;          /* heads per product                                                         */
    int32_t queries;        /* query rows per product; T unless one head's scores are too large          */
    const sw_product *scores, *context;             /* of `windows` windows                              */
    const sw_product *scores_single, *context_single; /* of one window, for what remains                 */
} sw_attention_plan;

typedef struct sw_stage {
    int32_t channels, hidden, heads, head_channels, depth;
    int32_t slots;          /* T of the configured window                                               */
    int32_t head_parts;     /* parts of each of q, k, v and of the context: groups of heads, of equal size */
    sw_menu menu;
    sw_attention_plan attention;
    sw_block *blocks;
    bool has_merge;
    sw_norm merge_norm;     /* V1 over 4C before, V2 over 2C after the reduction                        */
    sw_linear merge;        /* [4C] -> [2C]                                                             */
    sw_menu merge_menu;
    sw_norm out_norm;       /* weight NULL: none                                                        */
} sw_stage;

typedef struct sw_network {
    const sw_model *model;  /* borrowed: the owner of both keeps it alive */
    swin_config config;
    sw_type type;           /* of activations and weights in products     */
    bool amx;               /* blocks and merges by our own AMX kernels   */
    sw_dnn *dnn;
    char *tiles;            /* AMX: packed weights of all layers, in one block */
    sw_linear patch;        /* [3*P*P] -> [E] */
    sw_menu patch_menu;
    sw_norm patch_norm;     /* weight NULL: none */
    float *absolute_position; /* [rows * columns, E] of its own grid; NULL: none */
    sw_stage stages[SWIN_MAX_STAGES];
    pthread_mutex_t lock;   /* of whoever adds to what follows; it is read without */
    _Atomic(struct sw_clamped_bias *) clamped;
} sw_network;

/* `amx`: our own AMX kernels may be used where they can; else all products are oneDNN's. `threads` share the packing.
 * */
swin_status sw_network_create(const sw_model *model, sw_type type, bool amx, int32_t threads, sw_network **network,
                              swin_error *err);
void sw_network_destroy(sw_network *network);

/* Bytes of packed weights and of everything else that is kept. */
size_t sw_network_bytes(const sw_network *network);

/* The position biases of a stage's blocks, [depth], for a window of rows x columns; made when first asked for. */
swin_status sw_network_position_bias(sw_network *network, int32_t stage, const int32_t window[2],
                                     const sw_position_bias **biases, swin_error *err);

#endif
