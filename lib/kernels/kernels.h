/* SPDX-License-Identifier: MIT */
/*
 * kernels.h - the element-wise work of a Swin Transformer: one table of functions per instruction set.
 *
 * Legend of shapes: rows are tokens; C channels; T tokens of a window; d channels of a head.
 *
 * Index lists. A kernel that touches the feature map gets `index`: the token (row of the map) of each row of the
 * tile, or -1 where the row is padding. Roll, padding and window partition of every lineage are nothing but such
 * lists.
 *
 * All kernels: no allocation, no alignment needed beyond the element's, no access outside the named elements, results
 * independent of addresses. bf16 is rounded to nearest even; NaN stays NaN; numbers below 2^-126 may become zero.
 * Rows are summed in an order that depends on C alone: a row's result depends on nothing but the row.
 */
#ifndef SW_KERNELS_KERNELS_H
#define SW_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/type.h"
#include "panels.h"

/* LayerNorm over the channels of a row: (x - mean) / sqrt(variance + eps) * weight + bias, variance biased. */
typedef struct sw_norm {
    const float *weight;
    const float *bias;
    float eps;
} sw_norm;

/* An image and where its normalised pixels go: see swin_image. Pixels outside height x width read as zero after
 * normalisation. */
typedef struct sw_pixels {
    const uint8_t *data;
    int32_t height, width;
    ptrdiff_t row_stride;    /* bytes */
    ptrdiff_t plane_stride;  /* bytes; planar float only */
    bool planar_f32;
    bool bgr;                /* interleaved uint8 only: bytes are B G R */
    float scale[3], shift[3]; /* uint8 only, order R G B: normalised = value * scale + shift */
} sw_pixels;

typedef struct sw_kernels {
    const char *name; /* "plain", "avx2", "avx512", "avx512_bf16" */

    /* dst[r] = LN(x[index[r]]), or a copy where norm is NULL. x is [tokens, C] float32. A row with index -1 becomes
     * zero (after the norm, as the detection lineage pads). index NULL means row r is token r. dst float32 may be x
     * itself where index is NULL. */
    void (*gather)(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
                   const sw_norm *norm);

    /* The residual step: x[index[r]] += y[r], or += LN_post(y[r]) where post is given (V2). Then, where dst is not
     * NULL, dst[r] = LN_pre(x[index[r]]), or a copy where pre is NULL. y is float32 or bf16 panels. Rows with index
     * -1 are skipped in x and become zero in dst; index NULL means row r is token r. No token occurs twice. */
    void (*residual)(float *x, const int32_t *index, const sw_panels *y, const sw_norm *post, int32_t rows,
                     int32_t channels, const sw_panels *dst, const sw_norm *pre);

    /* Patch merging: dst[r] = LN over 4C of x[index[4r]] | x[index[4r+1]] | x[index[4r+2]] | x[index[4r+3]], or the
     * plain concatenation where norm is NULL. -1 reads as zeros, which take part in the norm. */
    void (*gather_merge)(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
                         const sw_norm *norm);

    /* dst[r] = pixels of patch (py, px) in the order channel R G B, row, column: [rows, 3*P*P]. Patch r is the patch at
     * position first + r of a grid with grid_width columns. */
    void (*gather_patches)(void *dst, sw_type type, const sw_pixels *pixels, int32_t patch_size, int32_t grid_width,
                           int32_t first, int32_t rows);

    /* Hands out rows first .. first + rows - 1 of x [tokens, C] float32, LN'd where norm is given. nhwc: map[(first +
     * r) * C + c]; otherwise map[c * plane + first + r]. */
    void (*store_map)(float *map, bool nhwc, size_t plane, const float *x, int32_t first, int32_t rows,
                      int32_t channels, const sw_norm *norm);

    /* One head of one window: dst[t] = src[index[t]] for t < T, dst dense [T, d], src with row stride src_stride
     * elements. Where index[t] is -1 the row is `pad` [d] float32 (NULL: zeros). index NULL means row t. normalise:
     * dst is src / max(|src|, 1e-12) * scale (V2's cosine attention), pad rows included. Otherwise scale is not
     * applied. */
    void (*gather_head)(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t src_stride,
                        const int32_t *index, const float *pad, int32_t rows, int32_t d, bool normalise, float scale);

    /* The inverse for the context: dst[index[t]] = src[t], rows with index -1 dropped, src dense [T, d]. index NULL
     * means row t. */
    void (*scatter_head)(void *dst, sw_type type, size_t dst_stride, const void *src, const int32_t *index,
                         int32_t rows, int32_t d);

    /* Rows first .. first + rows - 1 of one window and head: dst[i] = softmax over j < T of scores[i][j] + bias[i][j]
     * + (region[first + i] == region[j] ? 0 : mask); region NULL: no mask. scores and dst have row stride `stride` >=
     * T elements, bias bias_stride; the pointers are those of row `first`. Columns T .. stride - 1 of dst become
     * zero. dst may be scores where it is float32. The maximum is subtracted first.
     * A weight below e^-80 of the largest may be zero. */
    void (*softmax)(void *dst, sw_type type, const float *scores, const float *bias, size_t bias_stride,
                    const int32_t *region, float mask, int32_t first, int32_t rows, int32_t tokens, size_t stride);

    /* dst[i] = x/2 (1 + erf(x / sqrt 2)), exact form. dst may be src where the types are equal. */
    void (*gelu)(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t count);

    /* dst[i] = src[i] in the other type. */
    void (*to_bf16)(uint16_t *dst, const float *src, size_t count);
    void (*from_bf16)(float *dst, const uint16_t *src, size_t count);
} sw_kernels;

/* Instruction sets with a table of their own, in rising order. */
typedef enum sw_isa {
    SW_ISA_PLAIN = 0,
    SW_ISA_AVX2 = 1,        /* with FMA and F16C */
    SW_ISA_AVX512 = 2,      /* F, BW, DQ, VL */
    SW_ISA_AVX512_BF16 = 3, /* the same with the conversions that every CPU with AMX has */
    SW_ISA_COUNT = 4
} sw_isa;

/* The best table for this CPU (its operating system's support included), or the one asked for: NULL where this CPU or
 * this build lacks it. */
sw_isa sw_isa_best(void);
const sw_kernels *sw_kernels_for(sw_isa isa);

/* Whether this CPU and operating system have usable AMX tiles with bf16 and int8, and AVX-512 with BF16 and VBMI
 * beside them, as every CPU with tiles so far does. */
bool sw_cpu_has_amx(void);

#endif
