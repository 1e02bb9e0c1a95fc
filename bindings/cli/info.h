/* SPDX-License-Identifier: MIT */
/*
 * info.h - what a model is, for people and for machines.
 */
#ifndef CLI_INFO_H
#define CLI_INFO_H

#include <jansson.h>
#include <stdio.h>

#include "options.h"

/* A new object, or NULL without memory; `names`: with the names of the tensors that were left aside. */
json_t *info_json(const swin_model *model, const char *label, bool names);

/* For --info. */
bool info_print(const struct options *options, const swin_model *model, FILE *stream, struct failure *failure);

#endif
