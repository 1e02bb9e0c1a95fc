/* SPDX-License-Identifier: MIT */
/*
 * memory_counted.h - the library's allocator as the tests link it: it counts, and refuses on request.
 */
#ifndef TESTS_SUPPORT_MEMORY_COUNTED_H
#define TESTS_SUPPORT_MEMORY_COUNTED_H

#include <stdbool.h>
#include <stddef.h>

/* Blocks alive, bytes alive, and allocations ever asked for. */
size_t memory_live_blocks(void);
size_t memory_live_bytes(void);
size_t memory_allocations(void);

/* The most bytes that were alive at once since the last reset. */
size_t memory_peak_bytes(void);
void memory_reset_peak(void);

/* The next `count` allocations succeed, the one after fails, and all later ones succeed again. */
void memory_fail_after(long count);

/* From now on none fails. Returns whether one has: what succeeds all the same did not notice. */
bool memory_fail_no_more(void);

#endif
