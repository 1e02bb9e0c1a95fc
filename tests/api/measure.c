/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <math.h>
#include <string.h>

difference difference_of(const float *map, bool nhwc, const reference_map *reference)
{
    const size_t channels = (size_t)reference->channels, plane = (size_t)reference->height * (size_t)reference->width;
    double difference_squares = 0, map_squares = 0, squares = 0, product = 0, worst = 0, largest = 0;
    for (size_t c = 0; c < channels; c++) {
        for (size_t t = 0; t < plane; t++) {
            const double expected = reference->data[c * plane + t];
            const double got = nhwc ? map[t * channels + c] : map[c * plane + t];
            const double d = fabs(got - expected);
            difference_squares += d * d;
            map_squares += got * got;
            squares += expected * expected;
            product += got * expected;
            worst = d > worst || isnan(d) ? d : worst;
            largest = fmax(largest, fabs(expected));
        }
    }
    return (difference){sqrt(difference_squares / squares), worst / largest, product / sqrt(squares * map_squares)};
}

bool difference_is_small(const difference *d, int32_t precision, double amplified)
{
    if (precision != SWIN_PRECISION_BF16)
        return d->relative_l2 <= 1e-5 && d->relative_max <= 1e-4;
    /* an error of length e at right angles to the map makes a cosine of 1 - e^2 / 2 */
    const double allowed = fmax(1.5e-2, 2.7 * amplified);
    return d->relative_l2 <= allowed && d->cosine >= fmin(0.9998, 1 - allowed * allowed / 2);
}

static void round_matrix(reference_linear *linear, uint64_t *seed)
{
    const size_t count = (size_t)linear->in * (size_t)linear->out;
    for (size_t i = 0; i < count && linear->weight != NULL; i++) {
        const float value = (float)linear->weight[i];
        uint32_t bits, up;
        memcpy(&bits, &value, sizeof bits);
        if (*seed == 0) {
            up = 0x7fff + (bits >> 16 & 1); /* to nearest, ties to even; weights are finite */
        } else {
            *seed = *seed * 6364136223846793005u + 1442695040888963407u;
            up = (uint32_t)(*seed >> 48);
        }
        bits = (bits + up) & 0xffff0000;
        float rounded;
        memcpy(&rounded, &bits, sizeof rounded);
        linear->weight[i] = rounded;
    }
}

void round_to_bf16(reference_weights *weights, uint64_t seed)
{
    round_matrix(&weights->patch, &seed);
    for (int32_t s = 0; s < weights->config.stages; s++) {
        reference_stage *stage = &weights->stages[s];
        for (int32_t b = 0; b < weights->config.depths[s]; b++) {
            round_matrix(&stage->blocks[b].qkv, &seed);
            round_matrix(&stage->blocks[b].proj, &seed);
            round_matrix(&stage->blocks[b].fc1, &seed);
            round_matrix(&stage->blocks[b].fc2, &seed);
        }
        round_matrix(&stage->merge, &seed);
    }
}

double distance_of(const reference_map *a, const reference_map *b)
{
    const size_t count = (size_t)a->channels * (size_t)a->height * (size_t)a->width;
    double difference_squares = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        difference_squares += (a->data[i] - b->data[i]) * (a->data[i] - b->data[i]);
        squares += b->data[i] * b->data[i];
    }
    return sqrt(difference_squares / squares);
}
