/* SPDX-License-Identifier: MIT */
#include "clamped_bias.h"

#include <string.h>

#include "../base/memory.h"

void sw_clamped_biases_init(sw_clamped_biases *biases)
{
    pthread_mutex_init(&biases->lock, NULL);
    biases->first = NULL;
}

static void destroy(sw_clamped_bias *bias)
{
    for (int32_t b = 0; bias->blocks != NULL && b < bias->depth; b++)
        sw_position_bias_destroy(&bias->blocks[b]);
    sw_free(bias->blocks);
    sw_free(bias);
}

void sw_clamped_biases_release(sw_clamped_biases *biases)
{
    while (biases->first != NULL) {
        sw_clamped_bias *next = biases->first->next;
        destroy(biases->first);
        biases->first = next;
    }
    pthread_mutex_destroy(&biases->lock);
}

static swin_status make(const sw_model *model, int32_t stage, int32_t depth, int32_t heads, const int32_t window[2],
                        sw_clamped_bias **made, swin_error *err)
{
    sw_clamped_bias *bias = sw_alloc_zeroed(1, sizeof *bias);
    if (bias == NULL)
        return sw_fail_memory(err, sizeof *bias, "position biases of a small map");
    bias->stage = stage;
    bias->window[0] = window[0];
    bias->window[1] = window[1];
    bias->blocks = sw_alloc_zeroed((size_t)depth, sizeof *bias->blocks);
    swin_status status = SWIN_OK;
    if (bias->blocks == NULL)
        status = sw_fail_memory(err, (size_t)depth * sizeof *bias->blocks, "position biases of a small map");
    else
        bias->depth = depth;
    for (int32_t b = 0; b < bias->depth && status == SWIN_OK; b++) {
        status = sw_position_bias_create(&bias->blocks[b], model, stage, b, heads, window, err);
        bias->bytes += sw_position_bias_bytes(&bias->blocks[b]);
    }
    if (status != SWIN_OK) {
        destroy(bias);
        return status;
    }
    *made = bias;
    return SWIN_OK;
}

/* The least recently used go first. */
static void bound_idle(sw_clamped_biases *biases)
{
    size_t idle = 0;
    bool any = false;
    sw_clamped_bias **link = &biases->first;
    while (*link != NULL) {
        sw_clamped_bias *const bias = *link;
        if (bias->users == 0 && any && idle + bias->bytes > SW_CLAMPED_IDLE_BYTES) {
            *link = bias->next;
            destroy(bias);
            continue;
        }
        if (bias->users == 0) {
            idle += bias->bytes;
            any = true;
        }
        link = &bias->next;
    }
}

swin_status sw_clamped_bias_take(sw_clamped_biases *biases, const sw_model *model, int32_t stage, int32_t depth,
                                 int32_t heads, const int32_t window[2], sw_clamped_bias **taken, swin_error *err)
{
    swin_status status = SWIN_OK;
    pthread_mutex_lock(&biases->lock);
    sw_clamped_bias **link = &biases->first;
    while (*link != NULL && ((*link)->stage != stage || memcmp((*link)->window, window, sizeof (*link)->window) != 0))
        link = &(*link)->next;
    sw_clamped_bias *bias = *link;
    if (bias != NULL)
        *link = bias->next;
    else
        status = make(model, stage, depth, heads, window, &bias, err);
    if (status == SWIN_OK) {
        bias->users++;
        bias->next = biases->first;
        biases->first = bias;
        *taken = bias;
    }
    pthread_mutex_unlock(&biases->lock);
    return status;
}

void sw_clamped_bias_give_back(sw_clamped_biases *biases, sw_clamped_bias *taken)
{
    pthread_mutex_lock(&biases->lock);
    taken->users--;
    bound_idle(biases);
    pthread_mutex_unlock(&biases->lock);
}

size_t sw_clamped_biases_bytes(sw_clamped_biases *biases)
{
    size_t bytes = 0;
    pthread_mutex_lock(&biases->lock);
    for (const sw_clamped_bias *bias = biases->first; bias != NULL; bias = bias->next)
        bytes += bias->bytes;
    pthread_mutex_unlock(&biases->lock);
    return bytes;
}
