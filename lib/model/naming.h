/* SPDX-License-Identifier: MIT */
/*
 * naming.h - how the published codebases name a Swin Transformer's tensors: one table each, matched exactly and
 * completely.
 *
 * A pattern is literal text with numbers in braces: {s} is a stage, {b} a block, {s+1} and {2s+1} are numbers from
 * which the stage follows. Names are taken relative to the prefix that the backbone has in a file.
 */
#ifndef SW_MODEL_NAMING_H
#define SW_MODEL_NAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a tensor of a file is to a Swin Transformer. */
typedef enum sw_piece {
    SW_PIECE_PATCH_WEIGHT,
    SW_PIECE_PATCH_BIAS,
    SW_PIECE_PATCH_NORM_WEIGHT,
    SW_PIECE_PATCH_NORM_BIAS,
    SW_PIECE_ABSOLUTE_POSITION,

    SW_PIECE_NORM1_WEIGHT, /* of a block, and so on */
    SW_PIECE_NORM1_BIAS,
    SW_PIECE_QKV_WEIGHT,
    SW_PIECE_QKV_BIAS,
    SW_PIECE_QUERY_WEIGHT,
    SW_PIECE_QUERY_BIAS,
    SW_PIECE_KEY_WEIGHT,
    SW_PIECE_KEY_BIAS,
    SW_PIECE_VALUE_WEIGHT,
    SW_PIECE_VALUE_BIAS,
    SW_PIECE_BIAS_TABLE,
    SW_PIECE_LOGIT_SCALE,
    SW_PIECE_CPB1_WEIGHT,
    SW_PIECE_CPB1_BIAS,
    SW_PIECE_CPB2_WEIGHT,
    SW_PIECE_PROJ_WEIGHT,
    SW_PIECE_PROJ_BIAS,
    SW_PIECE_NORM2_WEIGHT,
    SW_PIECE_NORM2_BIAS,
    SW_PIECE_FC1_WEIGHT,
    SW_PIECE_FC1_BIAS,
    SW_PIECE_FC2_WEIGHT,
    SW_PIECE_FC2_BIAS,
    SW_PIECE_NORM3_WEIGHT,
    SW_PIECE_NORM3_BIAS,

    SW_PIECE_MERGE_NORM_WEIGHT, /* of the stage before the merge */
    SW_PIECE_MERGE_NORM_BIAS,
    SW_PIECE_MERGE_WEIGHT,
    SW_PIECE_OUT_NORM_WEIGHT,
    SW_PIECE_OUT_NORM_BIAS,

    /* Derived buffers: they tell windows, nothing else. */
    SW_PIECE_INDEX,
    SW_PIECE_COORDINATES,
    SW_PIECE_MASK,

    /* Not needed. */
    SW_PIECE_FINAL_NORM,
    SW_PIECE_HEAD,
    SW_PIECE_MASK_TOKEN,
    SW_PIECE_ZERO_BIAS,

    /* Of something that is no Swin Transformer that libswin computes. */
    SW_PIECE_ALIEN,
    SW_PIECE_COUNT
} sw_piece;

/* Versions that a row belongs to. */
enum {
    SW_V1 = 1,
    SW_V2 = 2
};

typedef struct sw_row {
    const char *pattern;
    sw_piece piece;
    uint8_t versions; /* 0: both */
    uint8_t scope;    /* SW_SCOPE_... */
} sw_row;

/* Where a row's name begins: after the prefix, or after the prefix without its last part, or either. */
enum {
    SW_SCOPE_OWN = 0,
    SW_SCOPE_PARENT = 1,
    SW_SCOPE_BOTH = 2
};

typedef struct sw_naming {
    const char *name;     /* for messages */
    const char *anchor;   /* the patch embedding's weight: what stands before it is the prefix */
    const sw_row *top;    /* rows outside blocks and merges */
    const char *block;    /* where a block's rows begin */
    const sw_row *blocks;
    const char *merge[2]; /* where a merge's rows begin, V1 and V2 */
    const char *refusal;  /* why libswin cannot compute it, or NULL */
} sw_naming;

/* NULL from the first index that is too large on. */
const sw_naming *sw_naming_get(size_t index);

/* The stage of a level's norm whose name has no number. */
#define SW_STAGE_LAST (-1)

/* What a name means. */
typedef struct sw_place {
    sw_piece piece;
    int32_t stage; /* 0 where the piece has none */
    int32_t block;
} sw_place;

/* Whether a piece belongs to a block or to a merge. */
static inline bool sw_piece_is_inner(sw_piece piece)
{
    return (piece >= SW_PIECE_NORM1_WEIGHT && piece <= SW_PIECE_MERGE_WEIGHT) || piece == SW_PIECE_ALIEN;
}

/* What a relative name means in a file of the versions given; `scope` is OWN or PARENT. */
bool sw_naming_match(const sw_naming *naming, uint8_t versions, uint8_t scope, const char *name, sw_place *place);

/* The relative name of a piece in a file of `version`, cut where it does not fit; false where the naming has no such
 * piece. */
bool sw_naming_format(const sw_naming *naming, uint8_t version, sw_piece piece, int32_t stage, int32_t block,
                      char *name, size_t size);

static inline bool sw_naming_has(const sw_naming *naming, uint8_t version, sw_piece piece)
{
    char name[1];
    return sw_naming_format(naming, version, piece, 0, 0, name, sizeof name);
}

#endif
