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
    scaling scaling;
} block;

/* `n` rows; the last stands in for those beyond it, of which nothing is stored. */
static block block_of(const float *x, int32_t n, int32_t channels, const sw_norm *norm)
{
    block b;
    float centre[VF_LANES], scale[VF_LANES], shift[VF_LANES];
    const float inverse = 1 / (float)channels;
    for (int i = 0; i < VF_LANES; i++) {
        b.rows[i] = i < n ? x + (size_t)i * (size_t)channels : b.rows[i - 1];
        moments m = {0, 1, 0};
        if (norm != NULL && i < n)
            m = moments_of(b.rows[i], channels, inverse, norm->eps);
        centre[i] = m.centre;
        scale[i] = m.scale;
        shift[i] = m.shift;
    }
    b.scaling = (scaling){vf_load(centre), vf_load(scale), vf_load(shift)};
    return b;
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
    for (int k = 0; k < width; k++) {
        float *to = map + (size_t)(c + k) * plane;
        vf v = columns[k];
        if (norm != NULL)
            v = scaling_apply(&b->scaling, v, vf_set(norm->weight[c + k]), vf_set(norm->bias[c + k]));
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
    const block b = block_of(x, n, channels, norm);
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
    const float inverse = 1 / (float)channels;
    for (int32_t r = 0; r < rows; r++) {
        const float *from = x + (size_t)r * (size_t)channels;
        float *to = map + (size_t)r * (size_t)channels;
        if (norm != NULL)
            row_normalise(to, SW_F32, from, channels, moments_of(from, channels, inverse, norm->eps), norm->weight,
                          norm->bias);
        else
            row_copy(to, SW_F32, from, SW_F32, channels);
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
