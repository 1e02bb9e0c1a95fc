/* SPDX-License-Identifier: MIT */
#include "set.h"

#define SW_TEXT_OF(name) #name
#define SW_TEXT(name) SW_TEXT_OF(name)

const sw_kernels sw_kernels_of_set = {
    .name = SW_TEXT(SW_ISA_NAME),
    .gather = sw_gather,
    .residual = sw_residual,
    .gather_merge = sw_gather_merge,
    .gather_patches = sw_gather_patches,
    .store_map = sw_store_map,
    .gather_head = sw_gather_head,
    .scatter_head = sw_scatter_head,
    .softmax = sw_softmax,
    .gelu = sw_gelu,
    .to_bf16 = sw_to_bf16,
    .from_bf16 = sw_from_bf16,
};
