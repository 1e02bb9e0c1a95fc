/* SPDX-License-Identifier: MIT */
#include "random.h"

#include <math.h>

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* What the values of a tensor lie around, and how far. */
static void distribution(int32_t kind, int32_t columns, float *center, float *spread)
{
    *center = 0.0f;
    *spread = 0.1f;
    switch (kind) {
    case SW_PATCH_WEIGHT:
    case SW_QKV_WEIGHT:
    case SW_PROJ_WEIGHT:
    case SW_FC1_WEIGHT:
    case SW_FC2_WEIGHT:
    case SW_MERGE_WEIGHT:
    case SW_RANDOM_CPB2_WEIGHT:
        *spread = sqrtf(3.0f / (float)columns);
        break;
    case SW_PATCH_NORM_WEIGHT:
    case SW_NORM1_WEIGHT:
    case SW_NORM2_WEIGHT:
    case SW_NORM3_WEIGHT:
    case SW_MERGE_NORM_WEIGHT:
    case SW_OUT_NORM_WEIGHT:
        *center = 1.0f;
        *spread = 0.2f;
        break;
    case SW_LOGIT_SCALE:
        *center = 2.302585093f;
        *spread = 0.5f;
        break;
    case SW_ABSOLUTE_POSITION:
    case SW_RANDOM_BIAS_TABLE:
    case SW_RANDOM_CPB1_BIAS:
        *spread = 0.5f;
        break;
    case SW_RANDOM_CPB1_WEIGHT:
        *spread = 1.0f;
        break;
    default:
        break;
    }
}

void sw_random_fill(const swin_config *config, uint64_t seed, int32_t kind, int32_t stage, int32_t block,
                    int32_t columns, uint64_t first, uint64_t count, float *dst)
{
    const uint64_t stream =
        mix(seed + mix(((uint64_t)kind << 32 | (uint64_t)stage << 16 | (uint64_t)block) + 1));
    float center, spread;
    distribution(kind, columns, &center, &spread);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bits = mix(stream + (first + i + 1) * UINT64_C(0x9e3779b97f4a7c15));
        const float unit = (float)((int32_t)(bits >> 40) - (1 << 23)) * 0x1p-23f;
        dst[i] = center + unit * spread;
    }

    if (kind == SW_QKV_BIAS) {
        const uint64_t channels = (uint64_t)sw_config_channels(config, stage);
        for (uint64_t i = 0; i < count; i++) {
            const bool key = first + i >= channels && first + i < 2 * channels;
            if (config->qkv_bias == 0 || (config->version == 2 && key))
                dst[i] = 0.0f;
        }
    }
}
