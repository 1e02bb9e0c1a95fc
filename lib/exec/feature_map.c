/* SPDX-License-Identifier: MIT */
#include "feature_map.h"

/* Tokens per item. */
#define CHUNK 64

typedef struct step {
    sw_run *run;
    int32_t stage;
    float *map;
    bool nhwc;
    int32_t chunks;
} step;

static void store_task(void *context, int32_t item, int32_t thread)
{
    (void)thread;
    const step *s = context;
    const sw_stage *stage = &s->run->network->stages[s->stage];
    const int32_t tokens = s->run->plan->stage[s->stage].tokens;
    const int32_t image = item / s->chunks, first = item % s->chunks * CHUNK;
    const int32_t rows = tokens - first < CHUNK ? tokens - first : CHUNK;
    const size_t plane = (size_t)tokens;
    s->run->kernels->store_map(s->map + (size_t)image * plane * (size_t)stage->channels, s->nhwc, plane,
                               sw_run_map(s->run, image, s->stage), first, rows, stage->channels,
                               stage->out_norm.weight != NULL ? &stage->out_norm : NULL);
}

void sw_feature_map_run(sw_run *run, int32_t stage, float *map, bool nhwc)
{
    step s = {.run = run, .stage = stage, .map = map, .nhwc = nhwc};
    s.chunks = (run->plan->stage[stage].tokens + CHUNK - 1) / CHUNK;
    sw_pool_run(run->pool, run->images * s.chunks, store_task, &s);
}
