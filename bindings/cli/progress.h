/* SPDX-License-Identifier: MIT */
/*
 * progress.h - everything that is said while images are worked on: on a terminal a bar with rate and time left,
 * elsewhere a plain line for each image; failures on stderr, at once. Any worker may call; lines are never mixed.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <pthread.h>

#include "failure.h"

struct progress {
    pthread_mutex_t lock;
    int total, done, failed;
    bool bar;       /* stderr is a terminal and there is more than one image */
    bool lines;     /* say each image that is done */
    double started; /* seconds, see clock_now() */
};

void progress_start(struct progress *progress, int total, bool quiet);

/* An image is done. `report` goes to stdout, `failed` (or NULL) to stderr. Neither ends in a line feed; "" is no
 * report. */
void progress_step(struct progress *progress, const char *path, const char *report, const struct failure *failed);

/* Takes the bar away. */
void progress_finish(struct progress *progress);

/* The line of a bar, at most `width` columns. */
enum { PROGRESS_LINE = 512 };
void progress_bar(char line[PROGRESS_LINE], int width, int done, int total, double seconds, const char *path);

#endif
