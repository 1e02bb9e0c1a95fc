/* SPDX-License-Identifier: MIT */
/*
 * attention.h - what a pixel attends to in one block: the weights on the map, and what can be said about them.
 */
#ifndef CLI_ATTENTION_H
#define CLI_ATTENTION_H

#include <jansson.h>

#include "heatmap.h"
#include "image_run.h"
#include "output.h"

struct attention {
    int32_t query[2]; /* row and column in the file; the request's are of the photo as the network sees it */
    swin_attention_request request;
    swin_attention_info info;
    float *weights;          /* [info.map rows, columns] */
    struct value_range range; /* of the cells that are seen */
    double on_map;           /* the sum: what is missing to 1 went to padding */
    double ms;
};

/* A weight below this is that of a pair which the mask of a shifted window keeps apart, or of another window. */
#define ATTENTION_SEEN 1e-20f

/* Whether the model has the stage, block and head that are asked for. */
bool attention_check(const struct options *options, const swin_config *config, struct failure *failure);

/* To be released with attention_destroy() on success. One that was only zeroed is fine there. */
bool attention_create(struct attention *attention, const struct plan *plan, const struct image_run *run,
                      swin_session *session, struct failure *failure);
void attention_destroy(struct attention *attention);

/* "head 3" or "mean of 12 heads", in `text`. */
enum { ATTENTION_HEAD_TEXT = 32 };
const char *attention_head(const struct attention *attention, char text[ATTENTION_HEAD_TEXT]);

/* attention.npy: float32 [rows, columns]. */
bool attention_write(const struct attention *attention, struct output *output, struct failure *failure);

void attention_print(const struct attention *attention, FILE *stream);
json_t *attention_json(const struct attention *attention);

#endif
