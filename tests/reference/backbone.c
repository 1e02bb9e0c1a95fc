/* SPDX-License-Identifier: MIT */
#include "backbone.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lineage.h"
#include "window.h"

/* A map of tokens, data[row][column][channel]. */
typedef struct tokens {
    int32_t rows, columns, channels;
    double *data;
} tokens;

static tokens tokens_new(int32_t rows, int32_t columns, int32_t channels)
{
    const size_t count = (size_t)rows * (size_t)columns * (size_t)channels;
    return (tokens){rows, columns, channels, reference_alloc(count, sizeof(double))};
}

static size_t tokens_count(const tokens *x)
{
    return (size_t)x->rows * (size_t)x->columns;
}

static double *token(const tokens *x, int32_t row, int32_t column)
{
    return x->data + ((size_t)row * (size_t)x->columns + (size_t)column) * (size_t)x->channels;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Layers
 */

/* y[n][out] = x[n][in] * weight + bias. Some tokens at a time, so that not each of them fetches the whole weight
 * anew. */
static void apply_linear(const reference_linear *linear, size_t n, const double *x, double *y)
{
    const size_t in = (size_t)linear->in, out = (size_t)linear->out, group = 16;
    for (size_t first = 0; first < n; first += group) {
        const size_t end = first + group < n ? first + group : n;
        for (size_t t = first; t < end; t++)
            for (size_t o = 0; o < out; o++)
                y[t * out + o] = linear->bias != NULL ? linear->bias[o] : 0;
        for (size_t i = 0; i < in; i++) {
            const double *weight = linear->weight + i * out;
            for (size_t t = first; t < end; t++) {
                const double value = x[t * in + i];
                double *to = y + t * out;
                for (size_t o = 0; o < out; o++)
                    to[o] += value * weight[o];
            }
        }
    }
}

/* LayerNorm over `channels`, in place; nothing where there is no such norm. */
static void apply_norm(const reference_norm *norm, size_t n, int32_t channels, double *x)
{
    if (norm->weight == NULL)
        return;
    for (size_t t = 0; t < n; t++, x += channels) {
        double mean = 0, variance = 0;
        for (int32_t c = 0; c < channels; c++)
            mean += x[c] / channels;
        for (int32_t c = 0; c < channels; c++)
            variance += (x[c] - mean) * (x[c] - mean) / channels;
        for (int32_t c = 0; c < channels; c++)
            x[c] = (x[c] - mean) / sqrt(variance + 1e-5) * norm->weight[c] + norm->bias[c];
    }
}

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

/* ---------------------------------------------------------------------------------------------------------------
 * Patch embedding
 */

/* Cubic convolution with a = -0.75: what lies `t` beyond the second of four neighbours. */
static double cubic(const double v[4], double t)
{
    const double a = -0.75;
    const double near0 = ((a + 2) * t - (a + 3)) * t * t + 1;
    const double u = 1 - t;
    const double near1 = ((a + 2) * u - (a + 3)) * u * u + 1;
    const double far0 = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    const double far1 = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
    return far0 * v[0] + near0 * v[1] + near1 * v[2] + far1 * v[3];
}

static int32_t clamped(int32_t index, int32_t size)
{
    return index < 0 ? 0 : index >= size ? size - 1 : index;
}

/* Adds the absolute position embedding, resized to the map as PyTorch's bicubic interpolate does. */
static void add_position(const reference_weights *weights, tokens *x)
{
    const int32_t grid_rows = weights->config.absolute_position[0], grid_columns = weights->config.absolute_position[1];
    for (int32_t row = 0; row < x->rows; row++) {
        const double y = (row + 0.5) * grid_rows / x->rows - 0.5;
        const int32_t top = (int32_t)floor(y);
        for (int32_t column = 0; column < x->columns; column++) {
            const double z = (column + 0.5) * grid_columns / x->columns - 0.5;
            const int32_t left = (int32_t)floor(z);
            for (int32_t c = 0; c < x->channels; c++) {
                double across[4];
                for (int32_t i = 0; i < 4; i++) {
                    double along[4];
                    for (int32_t j = 0; j < 4; j++) {
                        const int32_t r = clamped(top - 1 + i, grid_rows), s = clamped(left - 1 + j, grid_columns);
                        along[j] =
                            weights->position[((size_t)r * (size_t)grid_columns + (size_t)s) * (size_t)x->channels +
                                              (size_t)c];
                    }
                    across[i] = cubic(along, z - left);
                }
                token(x, row, column)[c] += cubic(across, y - top);
            }
        }
    }
}

static tokens embed(const reference_weights *weights, const double *pixels, int32_t height, int32_t width)
{
    const swin_config *config = &weights->config;
    const int32_t patch = config->patch_size;
    int32_t grid[2];
    reference_grid(config, height, width, grid);
    tokens x = tokens_new(grid[0], grid[1], config->embed_dim);
    double *cut = reference_alloc((size_t)weights->patch.in, sizeof *cut);
    for (int32_t row = 0; row < x.rows; row++) {
        for (int32_t column = 0; column < x.columns; column++) {
            double *to = cut;
            for (int32_t c = 0; c < 3; c++) {
                for (int32_t i = 0; i < patch; i++) {
                    for (int32_t j = 0; j < patch; j++) {
                        const int32_t h = row * patch + i, w = column * patch + j;
                        *to++ = h < height && w < width
                            ? pixels[((size_t)c * (size_t)height + (size_t)h) * (size_t)width + (size_t)w] : 0;
                    }
                }
            }
            apply_linear(&weights->patch, 1, cut, token(&x, row, column));
        }
    }
    free(cut);
    apply_norm(&weights->patch_norm, tokens_count(&x), x.channels, x.data);
    if (weights->position != NULL)
        add_position(weights, &x);
    return x;
}

/* ---------------------------------------------------------------------------------------------------------------
 * Blocks
 */

static double dot(const double *a, const double *b, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* The length of a vector, not less than what normalising divides by. */
static double length(const double *a, int32_t n)
{
    return fmax(sqrt(dot(a, a, n)), 1e-12);
}

/* Attention within one window of T tokens, in place, before the projection: x[T][C] becomes the concatenated heads.
 * probabilities: [heads][T][T]. */
static void attend(const reference_weights *weights, int32_t stage, const reference_block *block,
                   const reference_rule *rule, const double *bias, const int32_t *regions, double *x,
                   double *probabilities)
{
    const int32_t rows = rule->window[0], columns = rule->window[1], count = rows * columns;
    const int32_t channels = reference_channels(&weights->config, stage);
    const int32_t heads = weights->config.heads[stage], size = channels / heads;
    double *qkv = reference_alloc((size_t)count * 3 * (size_t)channels, sizeof *qkv);
    apply_linear(&block->qkv, (size_t)count, x, qkv);
    memset(x, 0, (size_t)count * (size_t)channels * sizeof *x);

    for (int32_t h = 0; h < heads; h++) {
        const double *head_bias = bias + (size_t)h * (size_t)((2 * rows - 1) * (2 * columns - 1));
        for (int32_t i = 0; i < count; i++) {
            const double *q = qkv + (size_t)i * 3 * (size_t)channels + h * size;
            double *p = probabilities + ((size_t)h * (size_t)count + (size_t)i) * (size_t)count;
            double largest = -INFINITY, sum = 0;
            for (int32_t j = 0; j < count; j++) {
                const double *k = qkv + (size_t)j * 3 * (size_t)channels + channels + h * size;
                const int32_t dy = i / columns - j / columns, dx = i % columns - j % columns;
                if (weights->config.version == 1)
                    p[j] = dot(q, k, size) / sqrt(size);
                else
                    p[j] = dot(q, k, size) / (length(q, size) * length(k, size)) * block->logit_scale[h];
                p[j] += head_bias[(dy + rows - 1) * (2 * columns - 1) + dx + columns - 1];
                if (regions[i] != regions[j])
                    p[j] += rule->mask;
                largest = fmax(largest, p[j]);
            }
            for (int32_t j = 0; j < count; j++)
                sum += p[j] = exp(p[j] - largest);
            double *to = x + (size_t)i * (size_t)channels + h * size;
            for (int32_t j = 0; j < count; j++) {
                const double *v = qkv + (size_t)j * 3 * (size_t)channels + 2 * channels + h * size;
                p[j] /= sum;
                for (int32_t c = 0; c < size; c++)
                    to[c] += p[j] * v[c];
            }
        }
    }
    free(qkv);
}

/* x becomes the windowed attention of x, projected. */
static void apply_attention(const reference_weights *weights, int32_t stage, int32_t index, const reference_rule *rule,
                            tokens *x, reference_attention *look)
{
    const reference_block *block = &weights->stages[stage].blocks[index];
    const int32_t heads = weights->config.heads[stage], count = rule->window[0] * rule->window[1];
    const size_t channels = (size_t)x->channels;
    reference_layout layout = reference_layout_new(rule, x->rows, x->columns);
    double *bias =
        reference_alloc((size_t)heads * (size_t)((2 * rule->window[0] - 1) * (2 * rule->window[1] - 1)), sizeof *bias);
    weights->position_bias(weights->source, stage, index, rule->window[0], rule->window[1], bias);

    const size_t per_window = (size_t)heads * (size_t)count * (size_t)count;
    const int keep = look != NULL && look->stage == stage && look->block == index;
    double *probabilities = reference_alloc((keep ? (size_t)layout.windows : 1) * per_window, sizeof *probabilities);
    double *window = reference_alloc((size_t)count * channels, sizeof *window);
    tokens mixed = tokens_new(x->rows, x->columns, x->channels);
    for (int32_t n = 0; n < layout.windows; n++) {
        const int32_t *source = layout.token + (size_t)n * (size_t)count;
        for (int32_t i = 0; i < count; i++) {
            if (source[i] < 0) /* padding */
                memset(window + (size_t)i * channels, 0, channels * sizeof *window);
            else
                memcpy(window + (size_t)i * channels, x->data + (size_t)source[i] * channels,
                       channels * sizeof *window);
        }
        attend(weights, stage, block, rule, bias, layout.region + (size_t)n * (size_t)count, window,
               probabilities + (keep ? (size_t)n * per_window : 0));
        for (int32_t i = 0; i < count; i++)
            if (source[i] >= 0)
                memcpy(mixed.data + (size_t)source[i] * channels, window + (size_t)i * channels,
                       channels * sizeof *window);
    }
    apply_linear(&block->proj, tokens_count(x), mixed.data, x->data);

    if (keep) {
        look->windows = layout.windows;
        look->heads = heads;
        look->tokens = count;
        look->probabilities = probabilities;
    } else {
        free(probabilities);
    }
    free(mixed.data);
    free(window);
    free(bias);
    reference_layout_release(&layout);
}

static tokens copy_of(const tokens *x)
{
    tokens copy = tokens_new(x->rows, x->columns, x->channels);
    memcpy(copy.data, x->data, tokens_count(x) * (size_t)x->channels * sizeof *copy.data);
    return copy;
}

/* x += y, and y is gone. */
static void add_and_free(tokens *x, tokens *y)
{
    for (size_t i = 0; i < tokens_count(x) * (size_t)x->channels; i++)
        x->data[i] += y->data[i];
    free(y->data);
}

static void apply_mlp(const reference_block *block, tokens *x)
{
    const size_t count = tokens_count(x), hidden = (size_t)block->fc1.out;
    double *middle = reference_alloc(count * hidden, sizeof *middle);
    apply_linear(&block->fc1, count, x->data, middle);
    for (size_t i = 0; i < count * hidden; i++)
        middle[i] = gelu(middle[i]);
    apply_linear(&block->fc2, count, middle, x->data);
    free(middle);
}

/* V1: x += attention(norm1(x)); x += mlp(norm2(x)).   V2: x += norm1(attention(x)); x += norm2(mlp(x)).
 * The padding of windows is zeros: in V1 after norm1. */
static void apply_block(const reference_weights *weights, int32_t stage, int32_t index, int32_t height, int32_t width,
                        tokens *x, reference_attention *look)
{
    const reference_block *block = &weights->stages[stage].blocks[index];
    const int v1 = weights->config.version == 1;
    const size_t count = tokens_count(x);
    const reference_rule rule = reference_rule_of(&weights->config, stage, index, x->rows, x->columns, height, width);

    tokens branch = copy_of(x);
    if (v1)
        apply_norm(&block->norm1, count, x->channels, branch.data);
    apply_attention(weights, stage, index, &rule, &branch, look);
    if (!v1)
        apply_norm(&block->norm1, count, x->channels, branch.data);
    add_and_free(x, &branch);

    branch = copy_of(x);
    if (v1)
        apply_norm(&block->norm2, count, x->channels, branch.data);
    apply_mlp(block, &branch);
    if (!v1)
        apply_norm(&block->norm2, count, x->channels, branch.data);
    add_and_free(x, &branch);

    apply_norm(&block->norm3, count, x->channels, x->data);
}

/* ---------------------------------------------------------------------------------------------------------------
 * Between and after the stages
 */

/* Four neighbours become one token of twice the channels; an odd map is padded with zeros. */
static tokens merge(const reference_weights *weights, int32_t stage, const tokens *x)
{
    const reference_stage *from = &weights->stages[stage];
    const size_t channels = (size_t)x->channels;
    tokens merged = tokens_new((x->rows + 1) / 2, (x->columns + 1) / 2, 2 * x->channels);
    double *four = reference_alloc(4 * channels, sizeof *four);
    for (int32_t row = 0; row < merged.rows; row++) {
        for (int32_t column = 0; column < merged.columns; column++) {
            for (int32_t part = 0; part < 4; part++) { /* (0,0) (1,0) (0,1) (1,1) */
                const int32_t r = 2 * row + part % 2, c = 2 * column + part / 2;
                if (r < x->rows && c < x->columns)
                    memcpy(four + (size_t)part * channels, token(x, r, c), channels * sizeof *four);
                else
                    memset(four + (size_t)part * channels, 0, channels * sizeof *four);
            }
            if (weights->config.version == 1)
                apply_norm(&from->merge_norm, 1, 4 * x->channels, four);
            apply_linear(&from->merge, 1, four, token(&merged, row, column));
            if (weights->config.version == 2)
                apply_norm(&from->merge_norm, 1, 2 * x->channels, token(&merged, row, column));
        }
    }
    free(four);
    return merged;
}

static reference_map planar(const reference_norm *norm, const tokens *x)
{
    tokens normed = copy_of(x);
    apply_norm(norm, tokens_count(x), x->channels, normed.data);
    reference_map map = {.channels = x->channels, .height = x->rows, .width = x->columns};
    const size_t count = tokens_count(x), channels = (size_t)x->channels;
    map.data = reference_alloc(count * channels, sizeof *map.data);
    for (size_t c = 0; c < channels; c++)
        for (size_t t = 0; t < count; t++)
            map.data[c * count + t] = normed.data[t * channels + c];
    free(normed.data);
    return map;
}

void reference_forward(const reference_weights *weights, const double *pixels, int32_t height, int32_t width,
                       reference_maps *maps, reference_attention *attention)
{
    *maps = (reference_maps){0};
    tokens x = embed(weights, pixels, height, width);
    for (int32_t s = 0; s < weights->config.stages; s++) {
        for (int32_t b = 0; b < weights->config.depths[s]; b++)
            apply_block(weights, s, b, height, width, &x, attention);
        maps->level[s] = planar(&weights->stages[s].out_norm, &x);
        if (s + 1 < weights->config.stages) {
            tokens next = merge(weights, s, &x);
            free(x.data);
            x = next;
        }
    }
    free(x.data);
}

void reference_maps_release(reference_maps *maps)
{
    for (int32_t s = 0; s < SWIN_MAX_STAGES; s++)
        free(maps->level[s].data);
    *maps = (reference_maps){0};
}
