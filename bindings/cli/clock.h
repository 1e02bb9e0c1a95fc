/* SPDX-License-Identifier: MIT */
/*
 * clock.h - time that only goes forward.
 */
#ifndef CLI_CLOCK_H
#define CLI_CLOCK_H

#include <time.h>

/* Seconds since some moment. */
static inline double clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
