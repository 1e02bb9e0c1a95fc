/* SPDX-License-Identifier: MIT */
#include "block.h"

/* Rows that a thread takes at a time where rows are shared out. */
#define ROW_CHUNK 32

typedef struct step {
    sw_run *run;
    const sw_stage *stage;
    const sw_block *block;
    sw_attention attention;
    int32_t stage_number;
    sw_tile *tiles; /* wide form: one per image in work */
} step;

/* ------------------------------------------------------------------------------------------------------------------
 * The parts of a block, on rows or panels of a tile
 */

static void gather_input(const step *s, const sw_tile *tile, const float *x, int32_t first, int32_t rows)
{
    const bool pre_norm = s->run->network->config.version == 1;
    const sw_panels input = sw_panels_from_row(&tile->input, first);
    s->run->kernels->gather(&input, x, tile->tokens + first, rows, s->stage->channels,
                            pre_norm ? &s->block->norm1 : NULL);
}

/* x += attention's output; the input of the MLP */
static void add_attention(const step *s, const sw_tile *tile, float *x, int32_t first, int32_t rows)
{
    const bool pre_norm = s->run->network->config.version == 1;
    const sw_panels out = sw_panels_from_row(&tile->out, first), input = sw_panels_from_row(&tile->input, first);
    s->run->kernels->residual(x, tile->tokens + first, &out, pre_norm ? NULL : &s->block->norm1, rows,
                              s->stage->channels, &input, pre_norm ? &s->block->norm2 : NULL);
}

/* x += the MLP's output */
static void add_mlp(const step *s, const sw_tile *tile, float *x, int32_t first, int32_t rows)
{
    const bool pre_norm = s->run->network->config.version == 1;
    const sw_panels out = sw_panels_from_row(&tile->out, first);
    s->run->kernels->residual(x, tile->tokens + first, &out, pre_norm ? NULL : &s->block->norm2, rows,
                              s->stage->channels, NULL, NULL);
}

/* On the rows of a part of the hidden layer: one panel of oneDNN's, or several of 32 columns. */
static void apply_gelu(const step *s, const sw_tile *tile, const sw_panels *part)
{
    const int32_t panels = s->block->fc1.out_width / part->width;
    for (int32_t i = 0; i < panels; i++) {
        void *panel = (char *)part->data + (size_t)i * part->stride * sw_type_size(part->type);
        s->run->kernels->gelu(panel, part->type, panel, part->type, (size_t)tile->rows * (size_t)part->width);
    }
}

/* Part j of the hidden layer, to `place`. */
static swin_status run_fc1(const step *s, const sw_tile *tile, int32_t j, const sw_panels *place,
                           const sw_worker *worker)
{
    const sw_linear *fc1 = &s->block->fc1;
    SW_TRY(sw_linear_run(fc1, &worker->linear, tile->menu, tile->rows, &tile->input, 0, 1, place, j));
    if (!fc1->gelu)
        apply_gelu(s, tile, place);
    return SWIN_OK;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Tile form: each thread takes a tile through the whole block
 */

static swin_status project(const step *s, const sw_tile *tile, const float *x, const sw_worker *worker)
{
    gather_input(s, tile, x, 0, tile->rows);
    return sw_linear_run_all(&s->block->qkv, &worker->linear, tile->menu, tile->rows, &tile->input, 0, 1, &tile->qkv);
}

static swin_status compute_tile(const step *s, const sw_tile *tile, float *x, const sw_worker *worker)
{
    const sw_block *block = s->block;
    SW_TRY(project(s, tile, x, worker));
    for (int32_t part = 0; part < s->attention.parts; part++)
        SW_TRY(sw_attention_run(&s->attention, tile, part, 0, tile->windows, &worker->attention, worker->linear.dnn));
    SW_TRY(sw_linear_run_all(&block->proj, &worker->linear, tile->menu, tile->rows, &tile->context, 0,
                             block->proj.in_parts, &tile->out));
    add_attention(s, tile, x, 0, tile->rows);
    for (int32_t i = 0; i < block->fc1.out_parts; i++) {
        SW_TRY(run_fc1(s, tile, i, &tile->hidden, worker));
        SW_TRY(sw_linear_run_all(&block->fc2, &worker->linear, tile->menu, tile->rows, &tile->hidden, i, 1,
                                 &tile->out));
    }
    add_mlp(s, tile, x, 0, tile->rows);
    return SWIN_OK;
}

static void tile_task(void *context, int32_t item, int32_t thread)
{
    const step *s = context;
    sw_run *run = s->run;
    if (sw_run_failed(run))
        return;
    const sw_stage_plan *plan = &run->plan->stage[s->stage_number];
    const int32_t tiles = plan->tiling[s->attention.shifted].tiles;
    const sw_worker *worker = &run->workers[thread];
    sw_tile tile;
    sw_tile_init(&tile, &worker->tile, run->network, run->plan, s->stage_number, s->attention.shifted, item % tiles);
    sw_run_note(run, compute_tile(s, &tile, sw_run_map(run, item / tiles, s->stage_number), worker));
    sw_run_release_tiles(run);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Wide form: one tile per image, whose rows, panels and windows are shared out among the threads
 */

/* An image, and which part of its work an item is. The same part of all images comes first, for they read the same
 * weights. */
typedef struct share {
    const sw_tile *tile;
    float *x;
    const sw_worker *worker;
    int32_t part;
} share;

static share take(const step *s, int32_t item, int32_t thread)
{
    const int32_t image = item % s->run->images;
    return (share){&s->tiles[image], sw_run_map(s->run, image, s->stage_number), &s->run->workers[thread],
                   item / s->run->images};
}

static int32_t row_chunks(const step *s)
{
    /* There is at least one image. NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    return (s->tiles[0].rows + ROW_CHUNK - 1) / ROW_CHUNK;
}

static int32_t chunk_rows(const sw_tile *tile, int32_t part)
{
    const int32_t rows = tile->rows - part * ROW_CHUNK;
    return rows < ROW_CHUNK ? rows : ROW_CHUNK;
}

static void gather_task(void *context, int32_t item, int32_t thread)
{
    const step *s = context;
    const share w = take(s, item, thread);
    gather_input(s, w.tile, w.x, w.part * ROW_CHUNK, chunk_rows(w.tile, w.part));
}

/* AMX: two shares of a layer for each thread: more even out better what holds up a thread, but float32 splits its input
 * anew for each. */
static int32_t layer_shares(const step *s, const sw_linear *linear)
{
    const int32_t threads = sw_pool_threads(s->run->pool);
    return sw_linear_shares(linear, threads == 1 ? 1 : 2 * threads);
}

static void run_layer(const step *s, const share *w, const sw_linear *linear, const sw_panels *in, const sw_panels *out)
{
    sw_run_note(s->run, sw_linear_run_share(linear, &w->worker->linear, w->tile->menu, w->tile->rows, in, out, w->part,
                                            layer_shares(s, linear)));
    sw_run_release_tiles(s->run);
}

static void qkv_task(void *context, int32_t item, int32_t thread)
{
    const step *s = context;
    const share w = take(s, item, thread);
    run_layer(s, &w, &s->block->qkv, &w.tile->input, &w.tile->qkv);
}

static void attention_task(void *context, int32_t item, int32_t thread)
{
    const step *s = context;
    const int32_t parts = s->attention.parts;
    const share w = take(s, item, thread);
    sw_run_note(s->run, sw_attention_run(&s->attention, w.tile, w.part % parts, w.part / parts, 1,
                                         &w.worker->attention, w.worker->linear.dnn));
    sw_run_release_tiles(s->run);
}

static void proj_task(void *context, int32_t item, int32_t thread)
{
    const step *s = context;
    const share w = take(s, item, thread);
    run_layer(s, &w, &s->block->proj, &w.tile->context, &w.tile->out);
}

static void add_attention_task(void *context, int32_t item, int32_t thread)
{
    const step *s = context;
    const share w = take(s, item, thread);
    add_attention(s, w.tile, w.x, w.part * ROW_CHUNK, chunk_rows(w.tile, w.part));
}

static void fc1_task(void *context, int32_t item, int32_t thread)
{
    const step *s = context;
    const share w = take(s, item, thread);
    run_layer(s, &w, &s->block->fc1, &w.tile->input, &w.tile->hidden);
    if (!s->block->fc1.gelu) {
        const sw_panels place = sw_linear_part(&s->block->fc1, &w.tile->hidden, w.part);
        apply_gelu(s, w.tile, &place);
    }
}

static void fc2_task(void *context, int32_t item, int32_t thread)
{
    const step *s = context;
    const share w = take(s, item, thread);
    run_layer(s, &w, &s->block->fc2, &w.tile->hidden, &w.tile->out);
}

static void add_mlp_task(void *context, int32_t item, int32_t thread)
{
    const step *s = context;
    const share w = take(s, item, thread);
    add_mlp(s, w.tile, w.x, w.part * ROW_CHUNK, chunk_rows(w.tile, w.part));
}

static void run_wide(step *s)
{
    sw_run *run = s->run;
    sw_tile tiles[SW_MAX_IMAGES_IN_WORK];
    for (int32_t i = 0; i < run->images; i++)
        sw_tile_init(&tiles[i], &run->wide_tiles[i], run->network, run->plan, s->stage_number, s->attention.shifted, 0);
    s->tiles = tiles;
    const struct {
        sw_task *task;
        int32_t parts;
    } parts[] = {
        {gather_task, row_chunks(s)},
        {qkv_task, layer_shares(s, &s->block->qkv)},
        {attention_task, s->attention.parts * tiles[0].windows},
        {proj_task, layer_shares(s, &s->block->proj)},
        {add_attention_task, row_chunks(s)},
        {fc1_task, layer_shares(s, &s->block->fc1)},
        {fc2_task, layer_shares(s, &s->block->fc2)},
        {add_mlp_task, row_chunks(s)},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && !sw_run_failed(run); i++)
        sw_pool_run(run->pool, run->images * parts[i].parts, parts[i].task, s);
    s->tiles = NULL;
}

/* ------------------------------------------------------------------------------------------------------------------
 * The extra norm of V2's huge and giant models, on the whole map
 */

static void block_norm_task(void *context, int32_t item, int32_t thread)
{
    (void)thread;
    const step *s = context;
    const int32_t tokens = s->run->plan->stage[s->stage_number].tokens, channels = s->stage->channels;
    const int32_t chunks = (tokens + ROW_CHUNK - 1) / ROW_CHUNK, first = item % chunks * ROW_CHUNK;
    float *x = sw_run_map(s->run, item / chunks, s->stage_number) + (size_t)first * (size_t)channels;
    const sw_panels rows = {x, SW_F32, channels, 0};
    const int32_t count = tokens - first < ROW_CHUNK ? tokens - first : ROW_CHUNK;
    s->run->kernels->gather(&rows, x, NULL, count, channels, &s->block->norm3);
}

void sw_block_run(sw_run *run, int32_t stage, int32_t block)
{
    const sw_stage_plan *plan = &run->plan->stage[stage];
    const bool shifted = block % 2 == 1 && sw_geometry_shifts(&plan->geometry);
    step s = {.run = run,
              .stage = &run->network->stages[stage],
              .block = &run->network->stages[stage].blocks[block],
              .stage_number = stage,
              .attention = {.network = run->network,
                            .kernels = run->kernels,
                            .stage = stage,
                            .block = block,
                            .geometry = &plan->geometry,
                            .bias = sw_plan_bias(run->plan, run->network, stage, block),
                            .shifted = shifted}};
    s.attention.parts = plan->wide && run->network->amx ? s.stage->heads : s.stage->head_parts;
    if (plan->wide)
        run_wide(&s);
    else
        sw_pool_run(run->pool, run->images * plan->tiling[shifted].tiles, tile_task, &s);
    if (s.block->norm3.weight != NULL && !sw_run_failed(run))
        sw_pool_run(run->pool, run->images * ((plan->tokens + ROW_CHUNK - 1) / ROW_CHUNK), block_norm_task, &s);
}

swin_status sw_block_project(sw_run *run, int32_t stage, int32_t block, const sw_tile *tile, const float *x,
                             const sw_worker *worker)
{
    const step s = {.run = run,
                    .stage = &run->network->stages[stage],
                    .block = &run->network->stages[stage].blocks[block],
                    .stage_number = stage};
    return project(&s, tile, x, worker);
}
