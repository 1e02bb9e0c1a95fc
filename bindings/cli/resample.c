/* SPDX-License-Identifier: MIT */
#include "resample.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* For each output position the first input position that counts, how many do, and their weights, which sum to 1. */
struct axis {
    int32_t width; /* weights per output */
    int32_t *first;
    int32_t *count;
    double *weights;
};

static void axis_destroy(struct axis *axis)
{
    free(axis->first);
    free(axis->count);
    free(axis->weights);
    *axis = (struct axis){0};
}

static double triangle(double x)
{
    x = fabs(x);
    return x < 1 ? 1 - x : 0;
}

/* Output position i covers [i, i + 1) * extent / outputs of the input, which has `inputs` positions. */
static bool axis_create(struct axis *axis, int32_t inputs, double extent, int32_t outputs, struct failure *failure)
{
    const double scale = extent / outputs;
    const double support = scale > 1 ? scale : 1;

    *axis = (struct axis){.width = (int32_t)ceil(support) * 2 + 1};
    const size_t count = (size_t)outputs * (size_t)axis->width;
    axis->first = malloc((size_t)outputs * sizeof *axis->first);
    axis->count = malloc((size_t)outputs * sizeof *axis->count);
    axis->weights = count <= SIZE_MAX / sizeof *axis->weights ? malloc(count * sizeof *axis->weights) : NULL;
    if (axis->first == NULL || axis->count == NULL || axis->weights == NULL) {
        axis_destroy(axis);
        failure_no_memory(failure, count * sizeof *axis->weights, "resampling");
        return false;
    }

    for (int32_t i = 0; i < outputs; i++) {
        const double centre = (i + 0.5) * scale;
        int32_t first = (int32_t)fmax(centre - support + 0.5, 0);
        int32_t end = (int32_t)fmin(centre + support + 0.5, inputs);
        /* A picture that reaches beyond the cells repeats the last one. */
        if (first > inputs - 1)
            first = inputs - 1;
        if (end <= first)
            end = first + 1;
        double *weights = axis->weights + (size_t)i * (size_t)axis->width;
        double sum = 0;
        for (int32_t k = first; k < end; k++)
            sum += weights[k - first] = triangle((k + 0.5 - centre) / support);
        for (int32_t k = first; k < end; k++)
            weights[k - first] = sum > 0 ? weights[k - first] / sum : 1.0 / (end - first);
        axis->first[i] = first;
        axis->count[i] = end - first;
    }
    return true;
}

/* Pillow's arithmetic: weights in 22 fractional bits, rounded; sums rounded to the nearest byte; columns first, rows on
 * the bytes that gave. */
enum { WEIGHT_BITS = 22 };

static int32_t *quantised_weights(const struct axis *axis, int32_t outputs, struct failure *failure)
{
    const size_t count = (size_t)outputs * (size_t)axis->width;
    int32_t *weights = calloc(count, sizeof *weights);
    if (weights == NULL) {
        failure_no_memory(failure, count * sizeof *weights, "resampling");
        return NULL;
    }
    for (int32_t i = 0; i < outputs; i++) {
        const size_t start = (size_t)i * (size_t)axis->width;
        for (int32_t k = 0; k < axis->count[i]; k++)
            weights[start + (size_t)k] = (int32_t)(0.5 + axis->weights[start + (size_t)k] * (1 << WEIGHT_BITS));
    }
    return weights;
}

static uint8_t byte_of(int64_t sum)
{
    sum = (sum + (1 << (WEIGHT_BITS - 1))) >> WEIGHT_BITS;
    return sum > 255 ? 255 : (uint8_t)sum;
}

static void resize_columns(const struct picture *source, const struct axis *axis, const int32_t *weights,
                           struct picture *resized)
{
    for (int32_t y = 0; y < resized->height; y++) {
        uint8_t *to = picture_at(resized, 0, y);
        for (int32_t x = 0; x < resized->width; x++, to += 3) {
            const uint8_t *from = picture_at(source, axis->first[x], y);
            const int32_t *weight = weights + (size_t)x * (size_t)axis->width;
            int64_t red = 0;
            int64_t green = 0;
            int64_t blue = 0;
            for (int32_t k = 0; k < axis->count[x]; k++, from += 3) {
                red += (int64_t)weight[k] * from[0];
                green += (int64_t)weight[k] * from[1];
                blue += (int64_t)weight[k] * from[2];
            }
            to[0] = byte_of(red);
            to[1] = byte_of(green);
            to[2] = byte_of(blue);
        }
    }
}

static void resize_rows(const struct picture *source, const struct axis *axis, const int32_t *weights,
                        struct picture *resized)
{
    const size_t row_bytes = 3 * (size_t)source->width;
    for (int32_t y = 0; y < resized->height; y++) {
        const int32_t *weight = weights + (size_t)y * (size_t)axis->width;
        const uint8_t *from = picture_at(source, 0, axis->first[y]);
        uint8_t *to = picture_at(resized, 0, y);
        for (size_t i = 0; i < row_bytes; i++) {
            int64_t sum = 0;
            for (int32_t k = 0; k < axis->count[y]; k++)
                sum += (int64_t)weight[k] * from[(size_t)k * row_bytes + i];
            to[i] = byte_of(sum);
        }
    }
}

bool picture_resize(const struct picture *source, int32_t height, int32_t width, struct picture *resized,
                    struct failure *failure)
{
    struct axis rows = {0};
    struct axis columns = {0};
    int32_t *row_weights = NULL;
    int32_t *column_weights = NULL;
    struct picture narrow = {0};
    bool done = false;

    *resized = (struct picture){0};
    if (!axis_create(&columns, source->width, source->width, width, failure) ||
        !axis_create(&rows, source->height, source->height, height, failure))
        goto out;
    if ((column_weights = quantised_weights(&columns, width, failure)) == NULL ||
        (row_weights = quantised_weights(&rows, height, failure)) == NULL)
        goto out;
    if (!picture_create(&narrow, width, source->height, failure) || !picture_create(resized, width, height, failure))
        goto out;
    resize_columns(source, &columns, column_weights, &narrow);
    resize_rows(&narrow, &rows, row_weights, resized);
    done = true;

out:
    picture_destroy(&narrow);
    free(row_weights);
    free(column_weights);
    axis_destroy(&rows);
    axis_destroy(&columns);
    return done;
}

bool grid_resample(const struct grid *grid, int32_t height, int32_t width, float *samples, struct failure *failure)
{
    struct axis rows = {0};
    struct axis columns = {0};
    float *narrow = NULL;
    bool done = false;

    if (!axis_create(&columns, grid->columns, grid->column_extent, width, failure) ||
        !axis_create(&rows, grid->rows, grid->row_extent, height, failure))
        goto out;
    const size_t bytes = (size_t)grid->rows * (size_t)width * sizeof *narrow;
    narrow = malloc(bytes);
    if (narrow == NULL) {
        failure_no_memory(failure, bytes, "resampling");
        goto out;
    }
    for (int32_t y = 0; y < grid->rows; y++) {
        for (int32_t x = 0; x < width; x++) {
            const float *from = grid->cells + (size_t)y * (size_t)grid->columns + columns.first[x];
            const double *weights = columns.weights + (size_t)x * (size_t)columns.width;
            double sum = 0;
            for (int32_t k = 0; k < columns.count[x]; k++)
                sum += weights[k] * (double)from[k];
            narrow[(size_t)y * (size_t)width + (size_t)x] = (float)sum;
        }
    }
    for (int32_t y = 0; y < height; y++) {
        const float *from = narrow + (size_t)rows.first[y] * (size_t)width;
        const double *weights = rows.weights + (size_t)y * (size_t)rows.width;
        for (int32_t x = 0; x < width; x++) {
            double sum = 0;
            for (int32_t k = 0; k < rows.count[y]; k++)
                sum += weights[k] * (double)from[(size_t)k * (size_t)width + (size_t)x];
            samples[(size_t)y * (size_t)width + (size_t)x] = (float)sum;
        }
    }
    done = true;

out:
    free(narrow);
    axis_destroy(&rows);
    axis_destroy(&columns);
    return done;
}
