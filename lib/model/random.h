/* SPDX-License-Identifier: MIT */
/*
 * random.h - the weights of seeded models, the same on every machine: element i is a hash of seed, tensor and i.
 *
 *      mix(x):    x ^= x >> 30; x *= 0xbf58476d1ce4e5b9; x ^= x >> 27; x *= 0x94d049bb133111eb; x ^= x >> 31
 *      stream  =  mix(seed + mix((kind << 32 | stage << 16 | block) + 1))
 *      bits    =  mix(stream + (i + 1) * 0x9e3779b97f4a7c15)                            all modulo 2^64
 *      unit    =  ((bits >> 40) - 2^23) / 2^23                                          in [-1, 1), exact in float32
 *      value   =  center + unit * spread                                                rounded to float32 twice
 *
 * Linear weights have spread sqrt(3 / inputs), hence standard deviation 1 / sqrt(inputs), so that activations keep
 * their size through any depth.
 */
#ifndef SW_MODEL_RANDOM_H
#define SW_MODEL_RANDOM_H

#include "model.h"

/* Tensors that canonical form does not have because only position biases use them; they follow sw_kind. Shapes as
 * Microsoft's code has them: [(2*rows-1) * (2*columns-1), heads]; [512, 2]; [512]; [heads, 512]. */
enum {
    SW_RANDOM_BIAS_TABLE = SW_KIND_COUNT,
    SW_RANDOM_CPB1_WEIGHT,
    SW_RANDOM_CPB1_BIAS,
    SW_RANDOM_CPB2_WEIGHT
};

/* Elements first .. first + count - 1 of a tensor of `columns` columns: an sw_kind or one of the above. Logit scales
 * are as stored in files: about ln 10. Biases that the configuration does not have are zero. */
void sw_random_fill(const swin_config *config, uint64_t seed, int32_t kind, int32_t stage, int32_t block,
                    int32_t columns, uint64_t first, uint64_t count, float *dst);

#endif
