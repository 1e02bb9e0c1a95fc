/* SPDX-License-Identifier: MIT */
/*
 * Rows of the residual stream handed out as a feature map: channels first through square blocks that are transposed in
 * registers, or channels last.
 */
#include "row.h"
#include "set.h"

/* A block of VF_LANES channels of n <= VF_LANES rows, each normalised by its moments where norm is given. */
SW_INLINE void store_block(float *map, size_t plane, const float *x, int32_t n, int32_t channels, int32_t c,
                           const moments *m, const sw_norm *norm)
{
    const int width = channels - c < VF_LANES ? channels - c : VF_LANES;
    vf rows[VF_LANES];
    for (int i = 0; i < VF_LANES; i++) {
        /* Rows beyond the last repeat it: nothing of them is stored. */
        const int32_t row = i < n ? i : n - 1;
        const float *from = x + (size_t)row * (size_t)channels + c;
        rows[i] = width == VF_LANES ? vf_load(from) : vf_load_n(from, width);
        if (norm != NULL) {
            const scaling s = scaling_of(m[row]);
            rows[i] = scaling_apply(&s, rows[i], vf_load_n(norm->weight + c, width), vf_load_n(norm->bias + c, width));
        }
    }
    vf_transpose(rows);
    for (int k = 0; k < width; k++) {
        float *to = map + (size_t)(c + k) * plane;
        if (n == VF_LANES)
            vf_store(to, rows[k]);
        else
            vf_store_n(to, rows[k], n);
    }
}

static void store_channels_first(float *map, size_t plane, const float *x, int32_t rows, int32_t channels,
                                 const sw_norm *norm)
{
    const float inverse = 1 / (float)channels;
    for (int32_t r = 0; r < rows; r += VF_LANES) {
        const int32_t n = rows - r < VF_LANES ? rows - r : VF_LANES;
        const float *from = x + (size_t)r * (size_t)channels;
        moments m[VF_LANES];
        for (int32_t i = 0; norm != NULL && i < n; i++)
            m[i] = moments_of(from + (size_t)i * (size_t)channels, channels, inverse, norm->eps);
        for (int32_t c = 0; c < channels; c += VF_LANES)
            store_block(map + r, plane, from, n, channels, c, m, norm);
    }
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
