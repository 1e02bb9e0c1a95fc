/* SPDX-License-Identifier: MIT */
/*
 * json.h - hostile JSON through jansson, whose memory use is bounded beforehand: a few bytes of text can ask for many
 * times their size in objects.
 */
#ifndef SW_WEIGHTS_JSON_H
#define SW_WEIGHTS_JSON_H

#include <jansson.h>

#include "../base/status.h"

/* Values in one document: some 100 000 tensors. */
#define SW_JSON_MAX_VALUES ((size_t)1 << 20)

/* Parses a document whose root is an object and which nests at most `max_depth` deep, the root counting as 1. `what`
 * names it in messages. The result is to be released with json_decref(). */
swin_status sw_json_parse(const char *text, size_t length, int max_depth, const char *what, json_t **root,
                          swin_error *err);

#endif
