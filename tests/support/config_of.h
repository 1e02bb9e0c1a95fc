/* SPDX-License-Identifier: MIT */
/*
 * config_of.h - configurations in one line, for tests; what differs from them is set afterwards.
 */
#ifndef TESTS_SUPPORT_CONFIG_OF_H
#define TESTS_SUPPORT_CONFIG_OF_H

#include <swin/swin.h>

/* Detection lineage, patches of 4, one head of the first stage's channels / heads each, two blocks per stage (so that
 * one is shifted), square windows, an output norm on every level. */
static inline swin_config config_of(int32_t version, int32_t stages, int32_t embed_dim, int32_t heads, int32_t window)
{
    swin_config config = {.struct_size = sizeof config,
                          .version = version,
                          .lineage = SWIN_LINEAGE_DETECTION,
                          .patch_size = 4,
                          .embed_dim = embed_dim,
                          .stages = stages,
                          .qkv_bias = 1,
                          .patch_norm = 1,
                          .out_norm = (1 << stages) - 1,
                          .mlp_ratio = 4.0};
    for (int32_t s = 0; s < stages; s++) {
        config.depths[s] = 2;
        config.heads[s] = heads << s;
        config.window[s][0] = config.window[s][1] = window;
    }
    return config;
}

#endif
