/* SPDX-License-Identifier: MIT */
/*
 * amx.h - matrix products in AMX tiles, fused with what comes before and after them: linear layers and window
 * attention. For CPUs with AMX-BF16 (sw_cpu_has_amx_bf16) only, which all have AVX-512 with BF16 too.
 *
 * Operands are bf16, sums float32. Float32 operands are taken as well: each is split into three bf16 numbers, x = x0
 * + x1 + x2 to the last bit but one, and of the nine products the six that count are taken: x0y0, x0y1, x1y0, x1y1,
 * x0y2, x2y0. The three others are below 2^-24 of the first. That is as accurate as float32 arithmetic and, at a
 * sixth of the tiles' speed, still faster than the vector units.
 *
 * Every activation is in panels of 32 columns (kernels/panels.h): 16 rows of a panel are one tile, 1024 bytes in a
 * row. A head of 32 channels is a panel. Panels have room for a multiple of 16 rows; rows beyond those asked for may
 * be read and, in outputs, overwritten.
 *
 * A tile is configured anew by every function here, and by every oneDNN primitive: nothing is expected to stay. Call
 * sw_amx_release() at the end of a stretch of work, so that the operating system need not save tiles any more.
 */
#ifndef SW_KERNELS_AMX_H
#define SW_KERNELS_AMX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/type.h"

/* Whether this build has these kernels. */
bool sw_amx_built(void);

/* Columns of a panel, and the unit of inner and outer dimensions of weights. */
#define SW_AMX_WIDTH 32
/* Rows of a panel are allocated in multiples of this. */
#define SW_AMX_ROWS 16

/* How many bf16 numbers stand for one operand: 1, or 3 for float32. */
static inline int32_t sw_amx_planes(sw_type type)
{
    return type == SW_BF16 ? 1 : 3;
}

/* Elements (uint16_t) of packed weights [n, k]; n and k are multiples of 32. */
static inline size_t sw_amx_packed_size(sw_type type, int32_t n, int32_t k)
{
    return (size_t)n * (size_t)k * (size_t)sw_amx_planes(type);
}

/* Packs W [n, k] float32, row-major: per 32 rows of W (columns of the output) a strip, per 32 columns of W and plane
 * two tiles of 16 pairs of k by 16 columns of the output. */
void sw_amx_pack(uint16_t *packed, sw_type type, const float *w, int32_t n, int32_t k);

typedef enum sw_amx_finish {
    SW_AMX_STORE,     /* c = sum, float32 panels                              */
    SW_AMX_ADD,       /* c += sum, float32 panels                             */
    SW_AMX_NARROW,    /* c = bf16(sum), bf16 panels                           */
    SW_AMX_GELU,      /* c = bf16(gelu(sum)), bf16 panels; operands bf16 only */
    /* c = sum / max(|sum|, 1e-12) * scale of the panel, panels of the operands' type: V2's queries and keys, row by row
     * of a head */
    SW_AMX_NORMALISE
} sw_amx_finish;

/* C [rows, columns of n_count panels] = A [rows, 32 * k_count] times some strips of packed weights, plus bias. */
typedef struct sw_amx_linear {
    sw_type type;          /* of the operands                                                     */
    int32_t rows;
    const void *a;         /* first panel of A                                                    */
    size_t a_stride;       /* elements from one panel to the next                                 */
    int32_t k_count;       /* panels of A                                                         */
    const uint16_t *b;     /* packed weights: the first of k_count steps of the first strip       */
    size_t b_stride;       /* elements from one strip to the next                                 */
    int32_t n_count;       /* strips, panels of C                                                 */
    const float *bias;     /* [32 * n_count], or NULL                                             */
    const float *scale;    /* [n_count]; NORMALISE only                                           */
    sw_amx_finish finish;
    void *c;               /* first panel of C                                                    */
    size_t c_stride;       /* elements from one panel to the next                                 */
    void *scratch;         /* float32 operands: sw_amx_linear_scratch(32 * k_count) bytes, aligned to 64 */
} sw_amx_linear;

/* Three planes of 32 rows of A. */
static inline size_t sw_amx_linear_scratch(int32_t k)
{
    return (size_t)k * 32 * 3 * sizeof(uint16_t);
}

void sw_amx_linear_run(const sw_amx_linear *linear);

/* Attention of one head of one window, 32 channels, T tokens: sw_amx_attention_load(), then queries in any pieces. */
typedef struct sw_amx_attention {
    sw_type type;              /* of q, k, v and context                                          */
    int32_t tokens;            /* T, 1 to SW_AMX_TOKENS_MAX                                       */
    const void *q, *k, *v;     /* [T, 32] each, dense; q may be read up to the next multiple of 16 rows */
    void *context;             /* [T, 32], dense                                                  */
    const int32_t *region;     /* [T], or NULL: slots of different regions get `mask` added       */
    float mask;
    void *scratch;             /* sw_amx_attention_scratch(type, T) bytes, aligned to 64          */
} sw_amx_attention;

#define SW_AMX_TOKENS_MAX 1024

/* Keys and values as tiles, scores and probabilities of 16 queries, the queries, their context. */
static inline size_t sw_amx_attention_scratch(sw_type type, int32_t tokens)
{
    const size_t padded = ((size_t)tokens + 31) / 32 * 32, planes = (size_t)sw_amx_planes(type);
    return padded * (planes * (2 * 64 + 16 * 2) + 16 * 4) + planes * 16 * 64 + 16 * 32 * 4;
}

/* Turns keys and values into tiles. */
void sw_amx_attention_load(const sw_amx_attention *attention);

/* Context of queries first .. first + rows - 1; `bias` is [rows, T] for them. */
void sw_amx_attention_queries(const sw_amx_attention *attention, int32_t first, int32_t rows, const float *bias);

void sw_amx_release(void);

#endif
