/* SPDX-License-Identifier: MIT */
/*
 * target.h - what a fuzz target is: the function that libFuzzer calls, or replay.c, which gives it the files of a
 * corpus; and the files that targets put their input into. Anything wrong ends the program with a signal.
 */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* libFuzzer's own, to build another mutator on: replay.c has none and refuses. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Ends the program unless `condition` holds. */
#define TARGET_REQUIRE(condition)      \
    do {                               \
        if (!(condition))              \
            target_fail(#condition);   \
    } while (0)
void target_fail(const char *condition) __attribute__((noreturn));

/* A file without a name on any disk, to be opened by target_memory_path(); what it held before is gone. */
void target_memory_write(const void *bytes, size_t count);
const char *target_memory_path(void);

/* A file of a directory of this process, removed at its end. Returns its path, valid until the fourth call after. */
const char *target_file(const char *name, const void *bytes, size_t count);

/* Removes them now, where the next input shall not find them. */
void target_files_remove(void);

#endif
