/* SPDX-License-Identifier: MIT */
#include "attention.h"

#include <stdlib.h>

#include "clock.h"
#include "json_value.h"
#include "npy.h"

bool attention_check(const struct options *options, const swin_config *config, struct failure *failure)
{
    const int32_t stage = options->attention_stage, block = options->attention_block, head = options->attention_head;
    if (stage >= config->stages)
        return failure_set(failure, "--attention: stage %d does not exist in this model; choose from 0 to %d", stage,
                           config->stages - 1);
    if (block >= config->depths[stage])
        return failure_set(failure, "--attention: block %d does not exist in stage %d; choose from 0 to %d", block,
                           stage, config->depths[stage] - 1);
    if (head >= config->heads[stage])
        return failure_set(failure, "--attention: head %d does not exist in stage %d; choose from 0 to %d", head, stage,
                           config->heads[stage] - 1);
    return true;
}

/* The query is a pixel of the file; what the network sees may be larger or smaller. */
static bool set_query(struct attention *attention, const struct options *options, const struct image_run *run,
                      struct failure *failure)
{
    const int32_t file[2] = {run->file_height, run->file_width};
    const int32_t seen[2] = {run->photo.height, run->photo.width};
    for (int axis = 0; axis < 2; axis++) {
        const int32_t at = options->query_given ? options->query[axis] : file[axis] / 2;
        if (at >= file[axis])
            return failure_set(failure, "%s: --query %d,%d is outside; rows go from 0 to %d and columns from 0 to %d",
                               run->path, options->query[0], options->query[1], file[0] - 1, file[1] - 1);
        attention->query[axis] = at;
        attention->request.query[axis] = (int32_t)((at + 0.5) * seen[axis] / file[axis]);
    }
    return true;
}

static void measure(struct attention *attention)
{
    const size_t cells = (size_t)attention->info.map[0] * (size_t)attention->info.map[1];
    bool any = false;
    for (size_t i = 0; i < cells; i++) {
        const double weight = (double)attention->weights[i];
        attention->on_map += weight;
        if (attention->weights[i] < ATTENTION_SEEN)
            continue;
        if (!any || weight < attention->range.low)
            attention->range.low = weight;
        if (!any || weight > attention->range.high)
            attention->range.high = weight;
        any = true;
    }
}

bool attention_create(struct attention *attention, const struct plan *plan, const struct image_run *run,
                      swin_session *session, struct failure *failure)
{
    const struct options *options = plan->options;
    const swin_image image = image_run_image(run, options);
    swin_attention out;
    swin_error error;

    *attention = (struct attention){.weights = NULL};
    swin_attention_request_init(&attention->request, sizeof attention->request);
    attention->request.stage = options->attention_stage;
    attention->request.block = options->attention_block;
    attention->request.head = options->attention_head;
    if (!set_query(attention, options, run, failure))
        return false;
    if (swin_model_attention_info(plan->model, run->canvas_height, run->canvas_width, &attention->request,
                                  &attention->info, sizeof attention->info, &error) != SWIN_OK)
        return failure_set(failure, "%s: %s", run->path, error.message);
    swin_attention_init(&out, sizeof out);
    out.weight_capacity = attention->info.weight_count;
    out.weights = attention->weights = malloc(out.weight_capacity * sizeof *out.weights);
    if (out.weights == NULL)
        return failure_no_memory(failure, out.weight_capacity * sizeof *out.weights, "attention weights");
    const double started = clock_now();
    if (swin_session_attention(session, &image, &attention->request, &out, &error) != SWIN_OK) {
        attention_destroy(attention);
        return failure_set(failure, "%s: %s", run->path, error.message);
    }
    attention->ms = 1e3 * (clock_now() - started);
    measure(attention);
    return true;
}

void attention_destroy(struct attention *attention)
{
    free(attention->weights);
    attention->weights = NULL;
}

const char *attention_head(const struct attention *attention, char text[ATTENTION_HEAD_TEXT])
{
    if (attention->request.head >= 0)
        snprintf(text, ATTENTION_HEAD_TEXT, "head %d", attention->request.head);
    else if (attention->info.heads == 1)
        snprintf(text, ATTENTION_HEAD_TEXT, "its one head");
    else
        snprintf(text, ATTENTION_HEAD_TEXT, "mean of %d heads", attention->info.heads);
    return text;
}

bool attention_write(const struct attention *attention, struct output *output, struct failure *failure)
{
    const struct npy_shape shape = {2, {attention->info.map[0], attention->info.map[1]}};
    FILE *stream = output_begin(output, "attention.npy", failure);
    return stream != NULL && npy_write(stream, output_path(output), &shape, attention->weights, failure) &&
           output_end(output, failure);
}

void attention_print(const struct attention *attention, FILE *stream)
{
    const swin_attention_info *info = &attention->info;
    char head[ATTENTION_HEAD_TEXT];
    fprintf(stream, "attends  stage %d, block %d, %s: %.1f ms\n", attention->request.stage, attention->request.block,
            attention_head(attention, head), attention->ms);
    fprintf(stream, "         cell %d,%d of %d x %d (rows x columns), stride %d, in a window of %d x %d", info->cell[0],
            info->cell[1], info->map[0], info->map[1], info->stride, info->window[0], info->window[1]);
    if (info->shift[0] > 0 || info->shift[1] > 0)
        fprintf(stream, ", shifted by %d,%d", info->shift[0], info->shift[1]);
    fprintf(stream, "\n         weights from %.3g to %.3g, %.4f in all", attention->range.low, attention->range.high,
            attention->on_map);
    fprintf(stream, attention->on_map < 0.9999 ? "; the rest went to padding\n" : "\n");
}

json_t *attention_json(const struct attention *attention)
{
    const swin_attention_request *request = &attention->request;
    const swin_attention_info *info = &attention->info;
    return json_pack("{s:i, s:i, s:o, s:i, s:[i,i], s:[i,i], s:i, s:[i,i], s:[i,i], s:[i,i], s:o, s:o, s:o, s:o, "
                     "s:[s,s]}",
                     "stage", request->stage, "block", request->block, "head",
                     request->head >= 0 ? json_integer(request->head) : json_string("mean"), "heads", info->heads,
                     "query", attention->query[0], attention->query[1], "cell", info->cell[0], info->cell[1], "stride",
                     info->stride, "map", info->map[0], info->map[1], "window", info->window[0], info->window[1],
                     "shift", info->shift[0], info->shift[1], "min", json_value_number(attention->range.low), "max",
                     json_value_number(attention->range.high), "on_map", json_value_number(attention->on_map),
                     "run_ms", json_value_number(attention->ms), "files", "attention.npy", "attention.png");
}
