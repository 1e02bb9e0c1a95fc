/* SPDX-License-Identifier: MIT */
/*
 * Rows of the residual stream handed out as a feature map: channels first through square blocks that are transposed in
 * registers, or channels last.
 */
#include "row.h"
#include "set.h"

/* Maps of at least this many bytes are stored past the caches where they lie on whole cache lines: nobody reads them
 * soon, and ordinary stores would first fetch what they overwrite. */
#define STREAM_BYTES (1 << 20)

/* Rows of a block: as many floats as a cache line has, so that a store past the caches fills whole lines at once. */
#define BLOCK BATCH
#define PARTS (BLOCK / VF_LANES)

typedef struct block {
    const float *rows[BLOCK];
    moments moments;
} block;

/* `n` rows; the last stands in for those beyond it, of which nothing is stored. */
SW_INLINE void block_fill(block *b, const float *x, int32_t n, int32_t channels, const sw_norm *norm)
{
    for (int i = 0; i < BLOCK; i++)
        b->rows[i] = x + (size_t)(i < n ? i : n - 1) * (size_t)channels;
    if (norm != NULL)
        moments_of(&b->moments, b->rows, BLOCK, channels, norm->eps);
}

/* VF_LANES rows of a block, their channels c .. c + width - 1 each in a vector, normalised where norm is given. */
SW_INLINE void block_columns(vf columns[VF_LANES], const block *b, int first, int32_t c, int width,
                             const sw_norm *norm)
{
    const float *from[VF_LANES];
    float buffer[VF_LANES][VF_LANES];
    for (int i = 0; i < VF_LANES; i++) {
        from[i] = b->rows[first + i] + c;
        if (width < VF_LANES) {
            vf_store(buffer[i], vf_load_n(from[i], width));
            from[i] = buffer[i];
        }
    }
    vf_transpose(columns, from);
    if (norm == NULL)
        return;
    const scaling s = {vf_load(b->moments.centre + first), vf_load(b->moments.scale + first),
                       vf_load(b->moments.shift + first)};
    for (int k = 0; k < VF_LANES; k++) {
        if (k < width)
            columns[k] = scaling_apply(&s, columns[k], vf_set(norm->weight[c + k]), vf_set(norm->bias[c + k]));
    }
}

/* To `n` places in each plane. */
SW_INLINE void store_columns(float *map, size_t plane, const block *b, int n, int32_t c, int width,
                             const sw_norm *norm, bool stream)
{
    vf columns[PARTS][VF_LANES];
    for (int p = 0; p < PARTS; p++)
        block_columns(columns[p], b, p * VF_LANES, c, width, norm);
    for (int k = 0; k < width; k++) {
        float *to = map + (size_t)(c + k) * plane;
        for (int p = 0; p < PARTS; p++, to += VF_LANES) {
            const int left = n - p * VF_LANES;
            if (stream)
                vf_stream(to, columns[p][k]);
            else if (left >= VF_LANES)
                vf_store(to, columns[p][k]);
            else if (left > 0)
                vf_store_n(to, columns[p][k], left);
        }
    }
}

SW_INLINE void store_block(float *map, size_t plane, const float *x, int32_t n, int32_t channels, const sw_norm *norm,
                           bool stream)
{
    block b;
    block_fill(&b, x, n, channels, norm);
    int32_t c = 0;
    for (; c + VF_LANES <= channels; c += VF_LANES)
        store_columns(map, plane, &b, n, c, VF_LANES, norm, stream);
    if (c < channels)
        store_columns(map, plane, &b, n, c, channels - c, norm, stream);
}

static void store_channels_first(float *map, size_t plane, const float *x, int32_t rows, int32_t channels,
                                 const sw_norm *norm)
{
    const size_t line = BLOCK * sizeof(float);
    const size_t odd = (uintptr_t)map % line; /* NOLINT(clang-analyzer-deadcode.DeadStores): plain C has no use */
    const bool stream = VF_CAN_STREAM && plane % BLOCK == 0 && odd % sizeof(float) == 0 &&
                        plane * (size_t)channels * sizeof(float) >= STREAM_BYTES;
    for (int32_t r = 0; r < rows;) {
        /* Where lines count, the first block ends with one. */
        const int32_t most = r == 0 && stream && odd > 0 ? (int32_t)((line - odd) / sizeof(float)) : BLOCK;
        const int32_t n = rows - r < most ? rows - r : most;
        const float *from = x + (size_t)r * (size_t)channels;
        if (stream && n == BLOCK)
            store_block(map + r, plane, from, BLOCK, channels, norm, true);
        else
            store_block(map + r, plane, from, n, channels, norm, false);
        r += n;
    }
    if (stream)
        vf_stream_end();
}

static void store_channels_last(float *map, const float *x, int32_t rows, int32_t channels, const sw_norm *norm)
{
    if (norm == NULL) {
        memcpy(map, x, (size_t)rows * (size_t)channels * sizeof *map);
        return;
    }
    for (int32_t r = 0; r < rows; r += GROUP) {
        const int32_t count = rows - r < GROUP ? rows - r : GROUP;
        const float *from[GROUP];
        for (int k = 0; k < GROUP; k++)
            from[k] = x + (size_t)(r + (k < count ? k : count - 1)) * (size_t)channels;
        moments m;
        moments_of(&m, from, GROUP, channels, norm->eps);
        for (int32_t k = 0; k < count; k++)
            row_normalise(map + (size_t)(r + k) * (size_t)channels, SW_F32, from[k], channels, scaling_of(&m, k),
                          norm->weight, norm->bias, from[k]);
    }
}

void sw_store_map(float *map, bool nhwc, size_t plane, const float *x, int32_t first, int32_t rows, int32_t channels,
                  const sw_norm *norm)
{
    const float *from = x + (size_t)first * (size_t)channels;
    if (nhwc)
        store_channels_last(map + (size_t)first * (size_t)channels, from, rows, channels, norm);
    else
        store_channels_first(map + first, plane, from, rows, channels, norm);
}
