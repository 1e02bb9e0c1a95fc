/* SPDX-License-Identifier: MIT */
/*
 * outcome.h - the must-fail corpus that make.py writes, file by file: what comes of each must be what its name says.
 */
#ifndef TESTS_HOSTILE_OUTCOME_H
#define TESTS_HOSTILE_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>

/* Opens `path`: whether what came of it is what the word at the end of its name, `expected`, stands for; `message` is
 * shown in any case. */
typedef bool outcome_check(const char *path, const char *expected, char *message, size_t size);

/* Checks every entry of a directory, and that no file stays open. Ends the program with 1 where there is none, or one
 * is not as it should be; returns how many there are. */
int outcome_check_all(const char *directory, outcome_check *check);

/* Open file descriptors of this process. */
int outcome_descriptors(void);

#endif
