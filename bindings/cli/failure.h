/* SPDX-License-Identifier: MIT */
/*
 * failure.h - why something did not work: one line for the user that says what, where and what to do.
 *
 * Functions of the tool that can fail return false and fill a failure; nobody but main.c and progress.c prints.
 */
#ifndef CLI_FAILURE_H
#define CLI_FAILURE_H

#include <stdbool.h>
#include <stdio.h>

struct failure {
    char text[1024];
};

/* Writes the line and returns false. Control characters (a line break in a file name) become '?'. The first `%s` may be
 * the old text itself. */
bool failure_set(struct failure *failure, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

/* For an allocation of `bytes` for `what`. */
bool failure_no_memory(struct failure *failure, unsigned long long bytes, const char *what) __attribute__((cold));

/* Prints the name of a file, which may hold anything: control characters (a line break, what moves a terminal's cursor)
 * become '?'. */
void failure_print_name(FILE *stream, const char *name);

/* In words of a command line: "no such file or directory", with what to do about it where that is known. */
const char *failure_of_errno(int error);

#endif
