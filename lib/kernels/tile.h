/* SPDX-License-Identifier: MIT */
/*
 * tile.h - rows of panels, written from rows of the residual stream.
 */
#ifndef SW_KERNELS_TILE_H
#define SW_KERNELS_TILE_H

#include "row.h"

/* How many rows a batch takes: what fits a good part of the first-level cache. */
SW_INLINE int32_t batch_rows(int32_t channels)
{
    return channels <= 256 ? BATCH : channels <= 512 ? BATCH / 2 : GROUP;
}

/* Where a row begins in a panel. */
SW_INLINE void *tile_at(const sw_panels *panels, int32_t row, int32_t panel)
{
    const size_t at = (size_t)panel * panels->stride + (size_t)row * (size_t)panels->width;
    return vf_at(panels->data, panels->type, at);
}

SW_INLINE void tile_zero(const sw_panels *dst, int32_t row, int32_t channels)
{
    for (int32_t p = 0; p < channels / dst->width; p++)
        row_zero(tile_at(dst, row, p), dst->type, dst->width);
}

SW_INLINE void tile_put_typed(const sw_panels *dst, sw_type type, int32_t row, int32_t column, const float *x,
                              int32_t n, const scaling *s, const sw_norm *norm, const float *ahead)
{
    int32_t panel = 0, at = column;
    for (; at >= dst->width; panel++)
        at -= dst->width;
    for (int32_t done = 0; done < n; panel++, at = 0) {
        const int32_t count = dst->width - at < n - done ? dst->width - at : n - done;
        void *to = vf_at(tile_at(dst, row, panel), type, (size_t)at);
        if (norm != NULL)
            row_normalise(to, type, x + done, count, *s, norm->weight + column + done, norm->bias + column + done,
                          ahead + done);
        else
            row_copy(to, type, x + done, SW_F32, count);
        done += count;
    }
}

/* Columns `column` .. column + n - 1 of a row become x, normalised by the moments of row k of a batch where norm is
 * given; `ahead` [n] is asked for meanwhile. The columns may lie in several panels. */
SW_INLINE void tile_put(const sw_panels *dst, int32_t row, int32_t column, const float *x, int32_t n, const moments *m,
                        int32_t k, const sw_norm *norm, const float *ahead)
{
    const scaling s = norm != NULL ? scaling_of(m, k) : scaling_none();
    if (dst->type == SW_F32)
        tile_put_typed(dst, SW_F32, row, column, x, n, &s, norm, ahead);
    else
        tile_put_typed(dst, SW_BF16, row, column, x, n, &s, norm, ahead);
}

#endif
