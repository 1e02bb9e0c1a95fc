/* SPDX-License-Identifier: MIT */
/*
 * crowd.h - images of some sizes with the maps that a session makes of them in peace, to be compared with what others
 * make of them in a crowd. Nothing here asserts but crowd_make(): it may be used in threads and child processes.
 */
#ifndef TESTS_API_CROWD_H
#define TESTS_API_CROWD_H

#include <stdbool.h>

#include <swin/swin.h>

enum { CROWD_SIZES = 5 };

typedef struct crowd {
    const swin_model *model; /* borrowed */
    int32_t precision;
    swin_image images[CROWD_SIZES];
    swin_maps expected[CROWD_SIZES];
    float *planes[CROWD_SIZES];
} crowd;

void crowd_make(crowd *c, const swin_model *model, int32_t precision);
void crowd_release(crowd *c);

/* Runs all images in a session, beginning with number `first`; false where anything is not as it was in peace. */
bool crowd_runs(const crowd *c, swin_session *session, int first);

/* The same in a session of its own. */
bool crowd_visit(const crowd *c, int32_t threads, int first);

/* Threads of this process. */
int crowd_thread_count(void);

#endif
