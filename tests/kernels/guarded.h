/* SPDX-License-Identifier: MIT */
/*
 * guarded.h - memory that notices: blocks against a page that must not be touched, filled with a pattern, sealable.
 *
 * A block ends right before such a page, or begins right after one, as the current side says; what lies between the
 * other edge and its page holds the pattern, which guarded_free() checks. Tests run once per side, which also gives
 * every kernel pointers of different alignment.
 */
#ifndef TESTS_KERNELS_GUARDED_H
#define TESTS_KERNELS_GUARDED_H

#include <stddef.h>

enum guarded_side {
    GUARDED_END,
    GUARDED_START,
    GUARDED_SIDES
};

void guarded_use_side(enum guarded_side side);

/* A block of `count` elements of `size` bytes, every byte GUARDED_FILL. Zero elements give a pointer that must not be
 * followed. */
#define GUARDED_FILL 0xa7
void *guarded_alloc(size_t count, size_t size);

/* From here on writing is a crash. Returns the block. */
void *guarded_seal(void *block);

/* Fails the test where the surroundings were written to. */
void guarded_free(void *block);

/* Frees every block there is. */
void guarded_free_all(void);

#endif
