/* SPDX-License-Identifier: MIT */
#include "patch_embed.h"

#include "absolute_position.h"

typedef struct step {
    sw_run *run;
    const sw_pixels *pixels;
    int32_t chunk, chunks; /* tokens per item, items per image */
    int32_t menu;
} step;

static void patch_task(void *context, int32_t item, int32_t thread)
{
    const step *s = context;
    sw_run *run = s->run;
    if (sw_run_failed(run))
        return;
    const sw_network *network = run->network;
    const swin_config *config = &network->config;
    const sw_worker *worker = &run->workers[thread];
    const int32_t image = item / s->chunks, first = item % s->chunks * s->chunk;
    const int32_t left = run->plan->stage[0].tokens - first, rows = left < s->chunk ? left : s->chunk;
    const int32_t channels = config->embed_dim;

    run->kernels->gather_patches(worker->rows, network->type, &s->pixels[image], config->patch_size,
                                 run->plan->patch_grid[1], first, rows);
    const sw_panels in = {worker->rows, network->type, network->patch.in_width, 0};
    const sw_panels out = {worker->out, SW_F32, channels, 0};
    const swin_status status = sw_linear_run(&network->patch, &worker->linear, s->menu, rows, &in, 0, 1, &out, 0);
    if (status != SWIN_OK) {
        sw_run_note(run, status);
        return;
    }
    float *x = sw_run_map(run, image, 0) + (size_t)first * (size_t)channels;
    const sw_panels tokens = {x, SW_F32, channels, 0};
    run->kernels->gather(&tokens, worker->out, NULL, rows, channels,
                         network->patch_norm.weight != NULL ? &network->patch_norm : NULL);
    if (network->absolute_position != NULL)
        sw_absolute_position_add(x, network->absolute_position, config->absolute_position, run->plan->patch_grid,
                                 channels, first, rows);
}

void sw_patch_embed_run(sw_run *run, const sw_pixels *pixels)
{
    const int32_t tokens = run->plan->stage[0].tokens;
    const sw_menu *menu = &run->network->patch_menu;
    step s = {.run = run, .pixels = pixels, .menu = sw_menu_choose(menu, tokens)};
    s.chunk = menu->rows[s.menu];
    s.chunks = (tokens + s.chunk - 1) / s.chunk;
    sw_pool_run(run->pool, run->images * s.chunks, patch_task, &s);
}
