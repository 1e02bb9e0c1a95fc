/* SPDX-License-Identifier: MIT */
/*
 * image_run.h - one image on its way through the network: read, resized, computed. What is to be written, compared or
 * timed is taken from here.
 */
#ifndef CLI_IMAGE_RUN_H
#define CLI_IMAGE_RUN_H

#include "feature_map.h"
#include "picture.h"
#include "plan.h"

struct image_run {
    const char *path;
    int32_t file_height, file_width;     /* as in the file */
    struct picture photo;                /* as the network sees it, without padding */
    int32_t canvas_height, canvas_width; /* with padding */
    float first_pixel[3];                /* normalised, in the network's order */

    struct feature_map levels[SWIN_MAX_STAGES]; /* the chosen ones; none where no map is wanted */
    int level_count;
    float *data[SWIN_MAX_STAGES]; /* by level, owned */
    size_t size[SWIN_MAX_STAGES]; /* floats */

    swin_session_info session;
    double read_ms, resize_ms, run_ms;
};

/* Everything before the maps are computed: pixels, sizes, memory. To be released with image_run_destroy() on success.
 */
bool image_run_create(struct image_run *run, const struct plan *plan, const char *path, struct failure *failure);

/* The photo on its canvas, as libswin takes it. */
swin_image image_run_image(const struct image_run *run, const struct options *options);

/* Computes the maps, as often as it is called. */
bool image_run_compute(struct image_run *run, const struct plan *plan, swin_session *session, struct failure *failure);

void image_run_destroy(struct image_run *run);

#endif
