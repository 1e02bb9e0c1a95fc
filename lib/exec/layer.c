/* SPDX-License-Identifier: MIT */
#include "layer.h"

#include <math.h>

/* Measured in bench/README.md. Parts of q, k, v and of the hidden layer: wide stages are cut so that threads can
 * share a single window. */
#define PART_CHANNELS 384
#define HIDDEN_PART_CHANNELS 768

/* The fewest parts not wider than `width` channels that divide `units` (heads, or single channels) evenly. */
static int32_t choose_parts(int32_t channels, int32_t units, int32_t width)
{
    for (int32_t parts = 1; parts <= units; parts++) {
        if (units % parts == 0 && channels / parts <= width)
            return parts;
    }
    return units;
}

/* Parts of a layer's output. */
static int32_t choose_linear_parts(const sw_network *network, int32_t out, int32_t width)
{
    return choose_parts(out, network->amx ? out / SW_AMX_WIDTH : out, width);
}

int32_t sw_layer_head_parts(int32_t channels, int32_t heads)
{
    return choose_parts(channels, heads, PART_CHANNELS);
}

int32_t sw_layer_count(const sw_network *network)
{
    int32_t count = 1;
    for (int32_t s = 0; s < network->config.stages; s++)
        count += 4 * network->stages[s].depth + network->stages[s].has_merge;
    return count;
}

static void describe_block_layer(const sw_network *network, int32_t s, int32_t b, int32_t which, sw_layer *l)
{
    const sw_stage *stage = &network->stages[s];
    sw_block *block = &stage->blocks[b];
    const bool v2 = network->config.version == 2;
    const int32_t channels = stage->channels, head_parts = stage->head_parts;
    const int32_t hidden_parts =
        choose_linear_parts(network, stage->hidden, network->amx ? PART_CHANNELS : HIDDEN_PART_CHANNELS);
    const int32_t proj_parts = choose_linear_parts(network, channels, PART_CHANNELS);
    const int32_t fc2_parts = choose_linear_parts(network, channels, PART_CHANNELS);
    l->menu = &stage->menu;
    switch (which) {
    case 0:
        l->linear = &block->qkv;
        l->spec = (sw_linear_spec){
            .in = channels,
            .in_parts = 1,
            .out = 3 * channels,
            .out_parts = 3 * head_parts,
            .amx = network->amx,
            .type = network->type,
            /* V2 normalises q and k, which wants them in full precision; with AMX that is done on the way */
            .out_type = v2 && !network->amx ? SW_F32 : network->type,
            .weight = {SW_QKV_WEIGHT, s, b},
            .scaled = v2 ? 0 : channels,
            .scale = (float)(1.0 / sqrt((double)stage->head_channels)),
        };
        l->bias = (sw_tensor_id){SW_QKV_BIAS, s, b};
        break;
    case 1:
        l->linear = &block->proj;
        l->spec = (sw_linear_spec){.in = channels,
                                   .in_parts = network->amx ? 1 : head_parts,
                                   .out = channels,
                                   .out_parts = proj_parts,
                                   .type = network->type,
                                   .out_type = SW_F32,
                                   .amx = network->amx,
                                   .weight = {SW_PROJ_WEIGHT, s, b}};
        l->bias = (sw_tensor_id){SW_PROJ_BIAS, s, b};
        break;
    case 2:
        l->linear = &block->fc1;
        l->spec = (sw_linear_spec){.in = channels,
                                   .in_parts = 1,
                                   .out = stage->hidden,
                                   .out_parts = hidden_parts,
                                   .type = network->type,
                                   .out_type = network->type,
                                   .amx = network->amx,
                                   .weight = {SW_FC1_WEIGHT, s, b},
                                   .gelu = true};
        l->bias = (sw_tensor_id){SW_FC1_BIAS, s, b};
        break;
    default:
        l->linear = &block->fc2;
        l->spec = (sw_linear_spec){.in = stage->hidden,
                                   .in_parts = hidden_parts,
                                   .out = channels,
                                   .out_parts = fc2_parts,
                                   .type = network->type,
                                   .out_type = SW_F32,
                                   .amx = network->amx,
                                   .weight = {SW_FC2_WEIGHT, s, b}};
        l->bias = (sw_tensor_id){SW_FC2_BIAS, s, b};
        break;
    }
    l->spec.bias = &l->bias;
}

void sw_layer_describe(sw_network *network, int32_t index, sw_layer *l)
{
    if (index == 0) {
        const swin_config *c = &network->config;
        l->linear = &network->patch;
        l->menu = &network->patch_menu;
        l->spec = (sw_linear_spec){.in = 3 * c->patch_size * c->patch_size,
                                   .in_parts = 1,
                                   .out = c->embed_dim,
                                   .out_parts = 1,
                                   .type = network->type,
                                   .out_type = SW_F32,
                                   .weight = {SW_PATCH_WEIGHT, 0, 0},
                                   .bias = &l->bias};
        l->bias = (sw_tensor_id){SW_PATCH_BIAS, 0, 0};
        return;
    }
    index--;
    for (int32_t s = 0; s < network->config.stages; s++) {
        sw_stage *stage = &network->stages[s];
        if (index < 4 * stage->depth) {
            describe_block_layer(network, s, index / 4, index % 4, l);
            return;
        }
        index -= 4 * stage->depth;
        if (stage->has_merge && index-- == 0) {
            l->linear = &stage->merge;
            l->menu = &stage->merge_menu;
            l->spec = (sw_linear_spec){
                .in = 4 * stage->channels,
                .in_parts = 1,
                .out = 2 * stage->channels,
                .out_parts = choose_linear_parts(network, 2 * stage->channels, PART_CHANNELS),
                .type = network->type,
                .out_type = SW_F32,
                .amx = network->amx,
                .weight = {SW_MERGE_WEIGHT, s, 0}};
            return;
        }
    }
}

size_t sw_layer_scratch(const sw_network *network)
{
    size_t bytes = 0;
    for (int32_t i = 0; i < sw_layer_count(network) && network->amx && network->type == SW_F32; i++) {
        sw_layer l = {0};
        sw_layer_describe((sw_network *)network, i, &l);
        const size_t wanted =
            l.spec.amx ? sw_amx_linear_scratch(sw_menu_largest(l.menu), l.spec.in / l.spec.in_parts) : 0;
        bytes = wanted > bytes ? wanted : bytes;
    }
    return bytes;
}
