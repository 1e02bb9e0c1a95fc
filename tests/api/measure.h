/* SPDX-License-Identifier: MIT */
/*
 * measure.h - how far a map is from what double precision makes of it, and how far it may be.
 */
#ifndef TESTS_API_MEASURE_H
#define TESTS_API_MEASURE_H

#include <stdbool.h>

#include <swin/swin.h>

#include "reference/backbone.h"

typedef struct difference {
    double relative_l2;  /* |map - reference| / |reference|         */
    double relative_max; /* max |map - reference| / max |reference| */
    double cosine;
} difference;

difference difference_of(const float *map, bool nhwc, const reference_map *reference);

/* The contract for a level: float32 within relative L2 1e-5 and 1e-4 of the largest, bf16 within relative L2 1.5e-2
 * with a cosine of at least 0.9998.
 *
 * `amplified`: how far the level moves, in relative L2 and in double precision, when nothing but the weights is rounded
 * to bf16; 0 where that is not known. Networks of random weights can amplify such roundings beyond the contract,
 * whoever computes them: V2 gives every branch of a block the same length as the stream it is added to. Weights, the
 * inputs of layers, queries and keys, probabilities and values, and the hidden layer before and after GELU are each
 * rounded once, to the same relative accuracy: seven sources, independent, sqrt(7) < 2.7 times what one of them does.
 */
bool difference_is_small(const difference *d, int32_t precision, double amplified);

/* Rounds every matrix of the weights to bf16: to nearest with seed 0, else to either neighbour at random, the nearer
 * one being the likelier. */
void round_to_bf16(reference_weights *weights, uint64_t seed);

/* |a - b| / |b| */
double distance_of(const reference_map *a, const reference_map *b);

#endif
