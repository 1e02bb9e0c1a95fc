/* SPDX-License-Identifier: MIT */
#include "image_run.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "resample.h"

static bool set_canvas(struct image_run *run, const struct options *options, struct failure *failure)
{
    const int64_t divisor = options->pad_divisor;
    const int64_t height = (run->photo.height + divisor - 1) / divisor * divisor;
    const int64_t width = (run->photo.width + divisor - 1) / divisor * divisor;
    if (height > INT32_MAX || width > INT32_MAX)
        return failure_set(failure, "%s: too large to be padded to a multiple of %d; use a smaller --pad-divisor",
                           run->path, options->pad_divisor);
    run->canvas_height = (int32_t)height;
    run->canvas_width = (int32_t)width;
    return true;
}

static bool read_photo(struct image_run *run, const struct options *options, struct failure *failure)
{
    const double started = clock_now();
    if (!picture_read_png(&run->photo, run->path, options->max_pixels, failure))
        return false;
    run->file_height = run->photo.height;
    run->file_width = run->photo.width;
    run->read_ms = 1e3 * (clock_now() - started);
    if (options->height == 0 || (options->height == run->file_height && options->width == run->file_width))
        return true;

    const double resizing = clock_now();
    struct picture resized;
    if (!picture_resize(&run->photo, options->height, options->width, &resized, failure))
        return false;
    picture_destroy(&run->photo);
    run->photo = resized;
    run->resize_ms = 1e3 * (clock_now() - resizing);
    return true;
}

/* --mean and --std are R, G, B whatever the network takes; libswin wants them in the order of its own channels. */
static void reorder(float ordered[3], const float rgb[3], bool bgr)
{
    for (int i = 0; i < 3; i++)
        ordered[i] = rgb[bgr ? 2 - i : i];
}

static bool choose_levels(struct image_run *run, const struct plan *plan, struct failure *failure)
{
    const struct options *options = plan->options;
    swin_output_info infos[SWIN_MAX_STAGES];
    swin_error error;
    if (swin_model_output_info(plan->model, run->canvas_height, run->canvas_width, infos, &error) != SWIN_OK)
        return failure_set(failure, "%s: %s", run->path, error.message);
    for (int level = 0; level < SWIN_MAX_STAGES; level++) {
        if (!options->levels[level])
            continue;
        if (level >= plan->config.stages) {
            if (!options->levels_given)
                continue;
            return failure_set(failure, "%s: level %d does not exist in this model; choose --levels from 0 to %d",
                               run->path, level, plan->config.stages - 1);
        }
        const swin_output_info *info = &infos[level];
        size_t bytes = sizeof(float);
        if (__builtin_mul_overflow(bytes, (size_t)info->channels, &bytes) ||
            __builtin_mul_overflow(bytes, (size_t)info->height, &bytes) ||
            __builtin_mul_overflow(bytes, (size_t)info->width, &bytes))
            bytes = SIZE_MAX;
        run->size[level] = bytes / sizeof(float);
        run->data[level] = bytes < SIZE_MAX ? malloc(bytes) : NULL;
        if (run->data[level] == NULL) {
            failure_set(failure,
                        "%s: no memory for the map of level %d (%zu bytes); use a smaller --size or fewer --levels",
                        run->path, level, bytes);
            return false;
        }
        run->levels[run->level_count++] =
            (struct feature_map){.info = *info, .nhwc = options->nhwc, .data = run->data[level]};
    }
    return true;
}

swin_image image_run_image(const struct image_run *run, const struct options *options)
{
    /* libswin sorts the channels of a BGR picture into R, G, B. Handed an RGB one under that name, it gives B, G, R. */
    swin_image image;
    swin_image_init(&image, sizeof image);
    image.data = run->photo.pixels;
    image.format = options->bgr ? SWIN_PIXEL_BGR8 : SWIN_PIXEL_RGB8;
    image.height = run->photo.height;
    image.width = run->photo.width;
    image.canvas_height = run->canvas_height;
    image.canvas_width = run->canvas_width;
    reorder(image.mean, options->mean, options->bgr);
    reorder(image.std, options->std, options->bgr);
    return image;
}

static bool run_maps(struct image_run *run, const struct options *options, const swin_image *image,
                     swin_session *session, struct failure *failure)
{
    swin_maps maps;
    swin_error error;
    swin_maps_init(&maps, sizeof maps);
    maps.layout = options->nhwc ? SWIN_LAYOUT_NHWC : SWIN_LAYOUT_NCHW;
    memcpy(maps.data, run->data, sizeof maps.data);
    memcpy(maps.capacity, run->size, sizeof maps.capacity);

    const double started = clock_now();
    if (swin_session_run(session, image, 1, &maps, &error) != SWIN_OK)
        return failure_set(failure, "%s: %s", run->path, error.message);
    run->run_ms = 1e3 * (clock_now() - started);
    return true;
}

bool image_run_compute(struct image_run *run, const struct plan *plan, swin_session *session, struct failure *failure)
{
    const struct options *options = plan->options;
    const swin_image image = image_run_image(run, options);
    swin_error error;
    for (int i = 0; i < 3; i++)
        run->first_pixel[i] = ((float)run->photo.pixels[options->bgr ? 2 - i : i] - image.mean[i]) / image.std[i];
    if (run->level_count > 0 && !run_maps(run, options, &image, session, failure))
        return false;
    if (swin_session_get_info(session, &run->session, sizeof run->session, &error) != SWIN_OK)
        return failure_set(failure, "%s: %s", run->path, error.message);
    return true;
}

bool image_run_create(struct image_run *run, const struct plan *plan, const char *path, struct failure *failure)
{
    *run = (struct image_run){.path = path};
    if (read_photo(run, plan->options, failure) && set_canvas(run, plan->options, failure) &&
        (!options_want_maps(plan->options) || choose_levels(run, plan, failure)))
        return true;
    image_run_destroy(run);
    return false;
}

void image_run_destroy(struct image_run *run)
{
    picture_destroy(&run->photo);
    for (int level = 0; level < SWIN_MAX_STAGES; level++)
        free(run->data[level]);
    *run = (struct image_run){0};
}
