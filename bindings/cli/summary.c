/* SPDX-License-Identifier: MIT */
#include "summary.h"

#include "info.h"
#include "json_value.h"

const char *summary_preprocessing(const struct options *options, char text[SUMMARY_PREPROCESSING])
{
    snprintf(text, SUMMARY_PREPROCESSING, "%s, mean R,G,B %g,%g,%g, std %g,%g,%g", options->bgr ? "BGR" : "RGB",
             (double)options->mean[0], (double)options->mean[1], (double)options->mean[2], (double)options->std[0],
             (double)options->std[1], (double)options->std[2]);
    return text;
}

static const char *precision_name(const swin_session_info *session)
{
    return session->precision == SWIN_PRECISION_BF16 ? "bf16" : "f32";
}

static json_t *preprocessing_json(const struct plan *plan, const struct image_run *run)
{
    const struct options *options = plan->options;
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:i, s:[i,i], s:[i,i]}", "channels", options->bgr ? "BGR" : "RGB",
                     "mean_rgb", json_value_floats(options->mean, 3), "std_rgb", json_value_floats(options->std, 3),
                     "first_pixel_normalised", json_value_floats(run->first_pixel, 3), "resampling",
                     options->height > 0 ? json_string("bilinear, antialiased") : json_null(), "pad_divisor",
                     options->pad_divisor, "size", run->photo.height, run->photo.width, "padded_size",
                     run->canvas_height, run->canvas_width);
}

/* What was written of a level, by the names that were chosen for it. */
static json_t *files_json(const struct plan *plan, int32_t level)
{
    json_t *files = json_array();
    const struct {
        bool wanted;
        const char *format;
    } kinds[] = {
        {plan->options->npy, "c%d.npy"}, {plan->options->png, "c%d.png"}, {plan->options->png, "c%d-channels.png"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && files != NULL; i++) {
        if (kinds[i].wanted && json_array_append_new(files, json_sprintf(kinds[i].format, level + 2)) != 0) {
            json_decref(files);
            return NULL;
        }
    }
    return files;
}

static json_t *level_json(const struct plan *plan, const struct feature_map *map)
{
    const swin_output_info *info = &map->info;
    const struct map_statistics statistics = feature_map_statistics(map);
    const int32_t nchw[4] = {1, info->channels, info->height, info->width};
    const int32_t nhwc[4] = {1, info->height, info->width, info->channels};
    return json_pack("{s:o, s:i, s:i, s:i, s:i, s:i, s:o, s:b, s:o, s:o, s:o, s:o, s:I, s:o}", "name",
                     json_sprintf("c%d", info->level + 2), "level", info->level, "stride", info->stride, "channels",
                     info->channels, "height", info->height, "width", info->width, "shape",
                     json_value_integers(map->nhwc ? nhwc : nchw, 4), "normed", info->normed, "min",
                     json_value_number(statistics.minimum), "max", json_value_number(statistics.maximum), "mean",
                     json_value_number(statistics.mean), "std", json_value_number(statistics.deviation), "nonfinite",
                     (json_int_t)statistics.nonfinite, "files", files_json(plan, info->level));
}

static json_t *levels_json(const struct plan *plan, const struct image_run *run)
{
    json_t *levels = json_array();
    for (int i = 0; i < run->level_count && levels != NULL; i++) {
        if (json_array_append_new(levels, level_json(plan, &run->levels[i])) != 0) {
            json_decref(levels);
            return NULL;
        }
    }
    return levels;
}

static json_t *engine_json(const swin_session_info *session)
{
    return json_pack("{s:s, s:i, s:s, s:s, s:s, s:I, s:I}", "precision", precision_name(session), "threads",
                     session->threads, "kernels", session->kernels, "backend", session->backend, "matmul",
                     session->matmul, "weight_bytes", (json_int_t)session->weight_bytes, "scratch_bytes",
                     (json_int_t)session->scratch_bytes);
}

static json_t *summary_json(const struct plan *plan, const struct image_run *run,
                            const struct verification *verification, const struct bench *bench,
                            const struct attention *attention)
{
    json_t *summary = json_pack(
        "{s:s, s:{s:o, s:[i,i]}, s:o, s:o, s:s, s:o, s:o, s:{s:o, s:o, s:o}, s:o}", "swin", swin_version_string(),
        "image", "path", json_value_text(run->path), "size", run->file_height, run->file_width, "preprocessing",
        preprocessing_json(plan, run), "model", info_json(plan->model, plan->label, false), "layout",
        plan->options->nhwc ? "NHWC" : "NCHW", "levels", levels_json(plan, run), "engine", engine_json(&run->session),
        "timings", "read_ms", json_value_number(run->read_ms), "resize_ms", json_value_number(run->resize_ms), "run_ms",
        json_value_number(run->run_ms), "overview", plan->options->png ? json_string("overview.png") : json_null());
    if (summary == NULL ||
        (verification != NULL && json_object_set_new(summary, "verify", verify_json(verification)) != 0) ||
        (bench != NULL && json_object_set_new(summary, "bench", bench_json(bench)) != 0) ||
        (attention != NULL && json_object_set_new(summary, "attention", attention_json(attention)) != 0)) {
        json_decref(summary);
        return NULL;
    }
    return summary;
}

bool summary_write(const struct plan *plan, const struct image_run *run, const struct verification *verification,
                   const struct bench *bench, const struct attention *attention, struct output *output,
                   struct failure *failure)
{
    json_t *summary = summary_json(plan, run, verification, bench, attention);
    if (summary == NULL)
        return failure_set(failure, "%s: no memory for its summary", run->path);
    FILE *stream = output_begin(output, "summary.json", failure);
    bool done = stream != NULL;
    /* A stream that failed is noticed, with its reason, by output_end(). */
    if (done && json_value_write(summary, stream) != 0 && !ferror(stream))
        done = failure_set(failure, "%s: no memory to write it", output_path(output));
    json_decref(summary);
    return done && output_end(output, failure);
}

void summary_print(const struct plan *plan, const struct image_run *run, FILE *stream)
{
    char preprocessing[SUMMARY_PREPROCESSING];
    fputs("model    ", stream);
    failure_print_name(stream, plan->label);
    fprintf(stream, "\nwindows  %s\nimage    ", plan->info.window_reason);
    failure_print_name(stream, run->path);
    fprintf(stream, ": %d x %d", run->file_width, run->file_height);
    if (run->photo.width != run->file_width || run->photo.height != run->file_height)
        fprintf(stream, ", resized to %d x %d", run->photo.width, run->photo.height);
    if (run->canvas_width != run->photo.width || run->canvas_height != run->photo.height)
        fprintf(stream, ", padded to %d x %d", run->canvas_width, run->canvas_height);
    fprintf(stream, " (width x height)\ninput    %s\n", summary_preprocessing(plan->options, preprocessing));
    fprintf(stream, "engine   %s, %d thread%s, %s, %s %s", precision_name(&run->session), run->session.threads,
            run->session.threads == 1 ? "" : "s", run->session.kernels, run->session.backend, run->session.matmul);
    if (run->level_count > 0)
        fprintf(stream, ": %.1f ms", run->run_ms);
    fputc('\n', stream);
    for (int i = 0; i < run->level_count; i++) {
        const swin_output_info *info = &run->levels[i].info;
        const struct map_statistics statistics = feature_map_statistics(&run->levels[i]);
        char shape[64];
        if (run->levels[i].nhwc)
            snprintf(shape, sizeof shape, "1 x %d x %d x %d", info->height, info->width, info->channels);
        else
            snprintf(shape, sizeof shape, "1 x %d x %d x %d", info->channels, info->height, info->width);
        fprintf(stream, "c%d       stride %-3d %-22s mean %9.3g  std %9.3g  from %9.3g to %9.3g\n", info->level + 2,
                info->stride, shape, statistics.mean, statistics.deviation, statistics.minimum, statistics.maximum);
        if (statistics.nonfinite > 0)
            fprintf(stream, "         %llu values of c%d are NaN or infinite\n",
                    (unsigned long long)statistics.nonfinite, info->level + 2);
    }
}
