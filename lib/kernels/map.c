/* SPDX-License-Identifier: MIT */
/*
 * Rows of the residual stream handed out as a feature map: channels first through square blocks that are transposed in
 * registers, or channels last.
 */
#include "row.h"
#include "set.h"

/* Maps of at least this many bytes are stored past the caches where they lie on whole cache lines: nobody reads them soon,
 * and ordinary stores would first fetch what they overwrite. */
#define STREAM_BYTES (1 << 20)

/* VF_LANES rows, their moments side by side. */
typedef struct block {
    const float *rows[VF_LANES];
    float centre[VF_LANES], scale[VF_LANES], shift[VF_LANES];
} block;

/* `n` rows; the last stands in for those beyond it, of which nothing is stored. */
SW_INLINE void block_fill(block *b, const float *x, int32_t n, int32_t channels, const sw_norm *norm)
{
    for (int i = 0; i < VF_LANES; i++)
        b->rows[i] = x + (size_t)(i < n ? i : n - 1) * (size_t)channels;
    for (int i = 0; norm != NULL && i < VF_LANES; i += GROUP) {
        const moments m = moments_of(b->rows + i, channels, 1 / (float)channels, norm->eps);
        memcpy(b->centre + i, m.centre, sizeof m.centre);
        memcpy(b->scale + i, m.scale, sizeof m.scale);
        memcpy(b->shift + i, m.shift, sizeof m.shift);
    }
}

/* Channels c .. c + width - 1 of a block, to `n` places in each plane. */
SW_INLINE void store_channels(float *map, size_t plane, const block *b, int n, int32_t c, int width,
                              const sw_norm *norm, bool stream)
{
    const float *from[VF_LANES];
    float buffer[VF_LANES][VF_LANES];
    for (int i = 0; i < VF_LANES; i++) {
        from[i] = b->rows[i] + c;
        if (width < VF_LANES) {
            vf_store(buffer[i], vf_load_n(from[i], width));
            from[i] = buffer[i];
        }
    }
    vf columns[VF_LANES];
    vf_transpose(columns, from);
    const scaling s = norm == NULL ? (scaling){vf_set(0), vf_set(1), vf_set(0)}
                                   : (scaling){vf_load(b->centre), vf_load(b->scale), vf_load(b->shift)};
    for (int k = 0; k < width; k++) {
        float *to = map + (size_t)(c + k) * plane;
        vf v = columns[k];
        if (norm != NULL)
            v = scaling_apply(&s, v, vf_set(norm->weight[c + k]), vf_set(norm->bias[c + k]));
        if (stream)
            vf_stream(to, v);
        else if (n == VF_LANES)
            vf_store(to, v);
        else
            vf_store_n(to, v, n);
    }
}

SW_INLINE void store_block(float *map, size_t plane, const float *x, int32_t n, int32_t channels, const sw_norm *norm,
                           bool stream)
{
    block b;
    block_fill(&b, x, n, channels, norm);
    int32_t c = 0;
    for (; c + VF_LANES <= channels; c += VF_LANES)
        store_channels(map, plane, &b, n, c, VF_LANES, norm, stream);
    if (c < channels)
        store_channels(map, plane, &b, n, c, channels - c, norm, stream);
}

static void store_channels_first(float *map, size_t plane, const float *x, int32_t rows, int32_t channels,
                                 const sw_norm *norm)
{
    const size_t bytes = VF_LANES * sizeof(float), odd = (uintptr_t)map % bytes;
    const bool lines = plane * sizeof(float) % bytes == 0 && odd % sizeof(float) == 0;
    const bool stream = VF_CAN_STREAM && lines && plane * (size_t)channels * sizeof(float) >= STREAM_BYTES;
    int32_t r = 0;
    while (r < rows) {
        const int32_t left = rows - r < VF_LANES ? rows - r : VF_LANES;
        /* The first block ends where a cache line does. */
        const int32_t n = r == 0 && stream && odd > 0 && (size_t)left > (bytes - odd) / sizeof(float)
                              ? (int32_t)((bytes - odd) / sizeof(float)) : left;
        const float *from = x + (size_t)r * (size_t)channels;
        if (stream && n == VF_LANES && (r > 0 || odd == 0))
            store_block(map + r, plane, from, VF_LANES, channels, norm, true);
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
            from[k] = k < count ? x + (size_t)(r + k) * (size_t)channels : from[k - 1];
        const moments m = moments_of(from, channels, 1 / (float)channels, norm->eps);
        for (int k = 0; k < count; k++)
            row_normalise(map + (size_t)(r + k) * (size_t)channels, SW_F32, from[k], channels, scaling_of(&m, k),
                          norm->weight, norm->bias);
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
