/* SPDX-License-Identifier: MIT */
/*
 * dump.h - all that is asked for of one image: compute, compare, time, write.
 */
#ifndef CLI_DUMP_H
#define CLI_DUMP_H

#include "image_run.h"

/* Writes into `directory`, compares with `reference` (NULL: does not). `*report` becomes what is to be told, without a
 * line feed at its end, to be freed; NULL without memory, "" where there is nothing to tell. False with a failure set.
 */
bool dump_image(const struct plan *plan, swin_session *session, const char *path, const char *directory,
                const char *reference, bool single, char **report, struct failure *failure);

#endif
