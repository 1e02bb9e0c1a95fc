/* SPDX-License-Identifier: MIT */
/*
 * memory.h - the only allocator of the library.
 *
 * Every block is aligned to 64 bytes: a cache line, and the widest vector. The library links memory.c; the tests link
 * tests/support/memory_counted.c in its place, which counts and can refuse.
 */
#ifndef SW_BASE_MEMORY_H
#define SW_BASE_MEMORY_H

#include <stddef.h>

#define SW_ALIGNMENT 64

/* NULL when there is no memory or `count * size` overflows. A zero size gives a block of its own. Contents undefined.
 * */
void *sw_alloc(size_t count, size_t size) __attribute__((malloc, warn_unused_result));

/* The same, zeroed. */
void *sw_alloc_zeroed(size_t count, size_t size) __attribute__((malloc, warn_unused_result));

/* A copy of a string, or of its first `length` bytes, NUL-terminated. */
char *sw_copy_string(const char *text, size_t length) __attribute__((malloc, warn_unused_result));

/* NULL is fine. */
void sw_free(void *block);

#endif
