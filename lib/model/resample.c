/* SPDX-License-Identifier: MIT */
#include "resample.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"

static void bicubic_weights(int32_t from, int32_t to, double *weights)
{
    const double a = -0.75;
    const double scale = (double)from / to;
    for (int32_t i = 0; i < to; i++) {
        const double x = (i + 0.5) * scale - 0.5;
        const double base = floor(x);
        for (int32_t tap = -1; tap <= 2; tap++) {
            const double d = fabs(x - base - tap);
            const double w = d <= 1.0 ? ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
                                      : ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
            int32_t j = (int32_t)base + tap;
            j = j < 0 ? 0 : j >= from ? from - 1 : j;
            weights[(size_t)i * from + j] += w;
        }
    }
}

/* Where the old entries lie: 0 in the middle, then 1, 1 + q, 1 + q + q^2, ... to both sides. The ratio q is bisected,
 * to the published precision, until the outermost entry lies where the outermost new entry will. */
static void geometric_grid(int32_t from, int32_t to, double *grid)
{
    const int32_t half = from / 2;
    double left = 1.01, right = 1.5, q = right;
    while (right - left > 1e-6) {
        q = (left + right) / 2.0;
        const double reach = (1.0 - pow(q, half)) / (1.0 - q);
        if (reach > to / 2)
            right = q;
        else
            left = q;
    }
    double distance = 1.0;
    grid[half] = 0.0;
    for (int32_t i = 0; i < half; i++) {
        grid[half + 1 + i] = distance;
        grid[half - 1 - i] = -distance;
        distance += pow(q, i + 1);
    }
}

/* The interval [grid[k], grid[k + 1]] that x lies in, x being clamped to the grid. */
static int32_t find_interval(const double *grid, int32_t size, double *x)
{
    if (*x < grid[0])
        *x = grid[0];
    if (*x > grid[size - 1])
        *x = grid[size - 1];
    int32_t k = 0;
    while (k < size - 2 && *x > grid[k + 1])
        k++;
    return k;
}

static void linear_weights(const double *grid, int32_t from, int32_t to, double *weights)
{
    for (int32_t i = 0; i < to; i++) {
        double x = i - to / 2;
        const int32_t k = find_interval(grid, from, &x);
        const double t = (x - grid[k]) / (grid[k + 1] - grid[k]);
        weights[(size_t)i * from + k] = 1.0 - t;
        weights[(size_t)i * from + k + 1] = t;
    }
}

/* The polynomial through all entries, for sides too short for a cubic spline. */
static void polynomial_weights(const double *grid, int32_t from, int32_t to, double *weights)
{
    for (int32_t i = 0; i < to; i++) {
        double x = i - to / 2;
        find_interval(grid, from, &x);
        for (int32_t j = 0; j < from; j++) {
            double w = 1.0;
            for (int32_t k = 0; k < from; k++) {
                if (k != j)
                    w *= (x - grid[k]) / (grid[j] - grid[k]);
            }
            weights[(size_t)i * from + j] = w;
        }
    }
}

/* Gauss elimination with row exchanges: system * solution = right, all size x size; the solution replaces `right`. */
static void solve(double *system, double *right, int32_t size)
{
    const size_t n = (size_t)size;
    for (size_t p = 0; p < n; p++) {
        size_t best = p;
        for (size_t r = p + 1; r < n; r++) {
            if (fabs(system[r * n + p]) > fabs(system[best * n + p]))
                best = r;
        }
        for (size_t c = 0; c < n && best != p; c++) {
            const double s = system[p * n + c], t = right[p * n + c];
            system[p * n + c] = system[best * n + c];
            right[p * n + c] = right[best * n + c];
            system[best * n + c] = s;
            right[best * n + c] = t;
        }
        for (size_t r = 0; r < n; r++) {
            const double factor = system[r * n + p] / system[p * n + p];
            if (r == p || factor == 0.0)
                continue;
            for (size_t c = p; c < n; c++)
                system[r * n + c] -= factor * system[p * n + c];
            for (size_t c = 0; c < n; c++)
                right[r * n + c] -= factor * right[p * n + c];
        }
    }
    for (size_t r = 0; r < n; r++) {
        for (size_t c = 0; c < n; c++)
            right[r * n + c] /= system[r * n + r];
    }
}

/* curvature[from][from]: the spline's second derivatives at the grid, as weights of the entries. `system` is scratch.
 * */
static void spline_curvature(const double *grid, int32_t from, double *system, double *curvature)
{
    const size_t n = (size_t)from;
    memset(system, 0, n * n * sizeof *system);
    memset(curvature, 0, n * n * sizeof *curvature);
    for (size_t i = 1; i + 1 < n; i++) {
        const double before = grid[i] - grid[i - 1], after = grid[i + 1] - grid[i];
        system[i * n + i - 1] = before;
        system[i * n + i] = 2.0 * (before + after);
        system[i * n + i + 1] = after;
        curvature[i * n + i - 1] = 6.0 / before;
        curvature[i * n + i] = -6.0 / before - 6.0 / after;
        curvature[i * n + i + 1] = 6.0 / after;
    }
    /* Not a knot: the third derivative does not jump at the second entry, nor at the last but one. */
    const double h0 = grid[1] - grid[0], h1 = grid[2] - grid[1];
    system[0] = h1;
    system[1] = -(h0 + h1);
    system[2] = h0;
    const double g0 = grid[n - 1] - grid[n - 2], g1 = grid[n - 2] - grid[n - 3];
    system[n * n - 1] = g1;
    system[n * n - 2] = -(g0 + g1);
    system[n * n - 3] = g0;
    solve(system, curvature, from);
}

static void spline_weights(const double *grid, const double *curvature, int32_t from, int32_t to, double *weights)
{
    for (int32_t i = 0; i < to; i++) {
        double x = i - to / 2;
        const int32_t k = find_interval(grid, from, &x);
        const double h = grid[k + 1] - grid[k], a = (grid[k + 1] - x) / h, b = (x - grid[k]) / h;
        const double ca = (a * a * a - a) * h * h / 6.0, cb = (b * b * b - b) * h * h / 6.0;
        double *w = weights + (size_t)i * from;
        for (int32_t j = 0; j < from; j++)
            w[j] = ca * curvature[(size_t)k * from + j] + cb * curvature[(size_t)(k + 1) * from + j];
        w[k] += a;
        w[k + 1] += b;
    }
}

swin_status sw_resample_weights(sw_resample_rule rule, int32_t from, int32_t to, double *weights, swin_error *err)
{
    memset(weights, 0, (size_t)from * (size_t)to * sizeof *weights);
    if (from == 1) {
        for (int32_t i = 0; i < to; i++)
            weights[i] = 1.0;
        return SWIN_OK;
    }
    if (rule == SW_RESAMPLE_BICUBIC) {
        bicubic_weights(from, to, weights);
        return SWIN_OK;
    }

    const size_t n = (size_t)from;
    double *grid = sw_alloc(n + 2 * n * n, sizeof *grid);
    if (grid == NULL)
        return sw_fail_memory(err, (n + 2 * n * n) * sizeof *grid, "resampling a position bias");
    double *system = grid + n, *curvature = system + n * n;
    geometric_grid(from, to, grid);
    if (rule == SW_RESAMPLE_LINEAR) {
        linear_weights(grid, from, to, weights);
    } else if (from < 4) {
        polynomial_weights(grid, from, to, weights);
    } else {
        spline_curvature(grid, from, system, curvature);
        spline_weights(grid, curvature, from, to, weights);
    }
    sw_free(grid);
    return SWIN_OK;
}

swin_status sw_resample_table(sw_resample_rule rule, const float *src, int32_t channels, int32_t from_rows,
                              int32_t from_columns, int32_t to_rows, int32_t to_columns, float *dst, swin_error *err)
{
    if (from_rows == to_rows && from_columns == to_columns) {
        const size_t entries = (size_t)to_rows * (size_t)to_columns;
        for (int32_t c = 0; c < channels; c++) {
            for (size_t i = 0; i < entries; i++)
                dst[(size_t)c * entries + i] = src[i * (size_t)channels + (size_t)c];
        }
        return SWIN_OK;
    }

    swin_status status = SWIN_OK;
    double *vertical = sw_alloc((size_t)to_rows * (size_t)from_rows, sizeof *vertical);
    double *horizontal = sw_alloc((size_t)to_columns * (size_t)from_columns, sizeof *horizontal);
    double *half = sw_alloc((size_t)to_rows * (size_t)from_columns, sizeof *half);
    if (vertical == NULL || horizontal == NULL || half == NULL) {
        status = sw_fail_memory(err, (size_t)to_rows * (size_t)from_rows * sizeof *half, "resampling a position bias");
        goto fail;
    }
    SW_TRY_OR_FAIL(sw_resample_weights(rule, from_rows, to_rows, vertical, err));
    SW_TRY_OR_FAIL(sw_resample_weights(rule, from_columns, to_columns, horizontal, err));

    for (int32_t c = 0; c < channels; c++) {
        for (int32_t y = 0; y < to_rows; y++) {
            for (int32_t x = 0; x < from_columns; x++) {
                double sum = 0.0;
                for (int32_t j = 0; j < from_rows; j++)
                    sum += vertical[(size_t)y * from_rows + j] *
                           (double)src[((size_t)j * from_columns + x) * channels + c];
                half[(size_t)y * from_columns + x] = sum;
            }
        }
        for (int32_t y = 0; y < to_rows; y++) {
            for (int32_t x = 0; x < to_columns; x++) {
                double sum = 0.0;
                for (int32_t j = 0; j < from_columns; j++)
                    sum += horizontal[(size_t)x * from_columns + j] * half[(size_t)y * from_columns + j];
                dst[((size_t)c * to_rows + y) * to_columns + x] = (float)sum;
            }
        }
    }

fail:
    sw_free(vertical);
    sw_free(horizontal);
    sw_free(half);
    return status;
}
