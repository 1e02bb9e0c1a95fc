/* SPDX-License-Identifier: MIT */
/*
 * amx.h - matrix products in AMX tiles, fused with what comes before and after them: linear layers and window
 * attention. For CPUs for which sw_cpu_has_amx() holds.
 *
 * Operands are bf16, sums float32. Float32 operands are taken as well, in two ways.
 *
 * Linear layers write each row of A and of W as whole numbers of 24 bits, times one factor for the row: three digits
 * of eight bits, x = f (d0 2^16 + d1 2^8 + d2), -128 <= d <= 127. Of the nine products of digits all but d2 d2 are
 * taken, in the tiles' int8 arithmetic, whose sums are exact. What is lost is the rounding of the operands, 2^-24 of
 * the largest number of the row: no more than what float32 arithmetic loses by rounding its sums. At a quarter of the
 * speed of bf16 that is two to three times as fast as the vector units (figures: bench/README.md).
 *
 * Attention splits each operand into three bf16 numbers, x = x0 + x1 + x2 to the last bit but one, and takes the six
 * products that count: x0y0, x0y1, x1y0, x1y1, x0y2, x2y0. The three others are below 2^-24 of the first.
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

/* Packed weights: per 32 rows of W (columns of the output) a strip; in a strip, chunk after chunk of the inner
 * dimension, which can be multiplied one at a time. bf16: per step of 32 inner columns, two tiles of 16 pairs by 16
 * columns of the output. Float32: first the strip's 32 factors; then, in a chunk, 16 columns of the output after the
 * other, per step of 64 inner columns (zeros beyond the chunk) a tile for each digit. */
static inline size_t sw_amx_chunk_bytes(sw_type type, int32_t width)
{
    return type == SW_BF16 ? (size_t)width * 64 : ((size_t)width + 63) / 64 * 2 * 3 * 1024;
}

/* Where a chunk begins in its strip. */
static inline size_t sw_amx_chunk_at(sw_type type, int32_t width, int32_t chunk)
{
    return (type == SW_BF16 ? 0 : SW_AMX_WIDTH * sizeof(float)) + (size_t)chunk * sw_amx_chunk_bytes(type, width);
}

static inline size_t sw_amx_strip_bytes(sw_type type, int32_t width, int32_t chunks)
{
    return sw_amx_chunk_at(type, width, chunks);
}

/* Packs W [n, width * chunks] float32, row-major, into n / 32 strips at `packed`, aligned to 64. n and width are
 * multiples of 32. */
void sw_amx_pack(void *packed, sw_type type, const float *w, int32_t n, int32_t width, int32_t chunks);

typedef enum sw_amx_finish {
    SW_AMX_STORE,     /* c = sum, float32 panels                              */
    SW_AMX_ADD,       /* c += sum, float32 panels; no bias                    */
    SW_AMX_NARROW,    /* c = bf16(sum), bf16 panels; operands bf16 only       */
    SW_AMX_GELU,      /* c = gelu(sum), panels of the operands' type          */
    /* c = sum / max(|sum|, 1e-12) * scale of the panel, panels of the operands' type: V2's queries and keys, row by row
     * of a head */
    SW_AMX_NORMALISE
} sw_amx_finish;

/* C [rows, columns of n_count panels] = A [rows, 32 * k_count] times some strips of packed weights, plus bias. Float32
 * operands: k_count panels are one chunk. */
typedef struct sw_amx_linear {
    sw_type type;          /* of the operands                                                     */
    int32_t rows;
    const void *a;         /* first panel of A                                                    */
    size_t a_stride;       /* elements from one panel to the next                                 */
    int32_t k_count;       /* panels of A                                                         */
    const void *b;         /* packed weights: the first strip                                     */
    size_t b_stride;       /* bytes from one strip to the next                                    */
    size_t b_at;           /* bytes from the beginning of a strip to the first chunk wanted       */
    int32_t n_count;       /* strips, panels of C                                                 */
    const float *bias;     /* [32 * n_count], or NULL                                             */
    const float *scale;    /* [n_count]; NORMALISE only                                           */
    sw_amx_finish finish;
    void *c;               /* first panel of C                                                    */
    size_t c_stride;       /* elements from one panel to the next                                 */
    void *scratch;         /* float32 operands: sw_amx_linear_scratch(rows, 32 * k_count) bytes, aligned to 64 */
} sw_amx_linear;

/* The digits of A, and the factors of its rows. */
static inline size_t sw_amx_linear_scratch(int32_t rows, int32_t k)
{
    const size_t blocks = ((size_t)rows + SW_AMX_ROWS - 1) / SW_AMX_ROWS, steps = ((size_t)k + 63) / 64;
    return blocks * SW_AMX_ROWS * (steps * 3 * 64 + sizeof(float));
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

/* How many bf16 numbers stand for one operand. */
static inline int32_t sw_amx_planes(sw_type type)
{
    return type == SW_BF16 ? 1 : 3;
}

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
