/* SPDX-License-Identifier: MIT */
/*
 * threads.h - a pool of threads that one session owns.
 *
 * Why not OpenMP's: a pool per session works from any thread, from inside somebody's OpenMP region and after fork(),
 * never competes with another session's team, wakes in microseconds, and can be checked by ThreadSanitizer.
 */
#ifndef SW_BASE_THREADS_H
#define SW_BASE_THREADS_H

#include <stdint.h>

#include "status.h"

typedef struct sw_pool sw_pool;

/* `threads` >= 1 counts the thread that calls sw_pool_run(); 1 starts none. Each started thread calls `enter` first,
 * where that is not NULL. */
swin_status sw_pool_create(int32_t threads, void (*enter)(void), sw_pool **pool, swin_error *err);

/* The same, doing without those threads that cannot be had. */
swin_status sw_pool_create_up_to(int32_t threads, void (*enter)(void), sw_pool **pool, swin_error *err);

/* NULL is fine. */
void sw_pool_destroy(sw_pool *pool);

int32_t sw_pool_threads(const sw_pool *pool);

/* One item of work, done by thread 0 .. threads - 1; 0 is the caller of sw_pool_run(). */
typedef void sw_task(void *context, int32_t item, int32_t thread);

/* Does items 0 .. items - 1, each once, in any order and by any thread, and returns when all are done. One caller at a
 * time. In a child after fork() the pool starts threads of its own, or does without where they cannot be had. */
void sw_pool_run(sw_pool *pool, int32_t items, sw_task *task, void *context);

/* CPUs that this process may use, >= 1. */
int32_t sw_cpu_count(void);

#endif
