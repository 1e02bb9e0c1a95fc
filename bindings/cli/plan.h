/* SPDX-License-Identifier: MIT */
/*
 * plan.h - what holds for every image of a run. Shared by all workers, never changed once made.
 */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "colormap.h"
#include "options.h"

struct plan {
    const struct options *options;
    const swin_model *model;
    const char *label; /* of the weights */
    swin_config config;
    swin_model_info info;
    struct colormap colours;
};

#endif
