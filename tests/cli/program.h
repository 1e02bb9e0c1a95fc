/* SPDX-License-Identifier: MIT */
/*
 * program.h - runs swin-dump and keeps what it said.
 */
#ifndef TESTS_CLI_PROGRAM_H
#define TESTS_CLI_PROGRAM_H

#include <stdbool.h>

struct program {
    int code;  /* exit code; 128 + the signal where one ended it */
    char *out; /* stdout */
    char *err; /* stderr; with `terminal` what a terminal got */
    int err_lines;
    long peak_kilobytes;
};

/* How to run it. All zero is the ordinary way. */
struct circumstances {
    bool terminal;         /* stderr is a terminal                                   */
    long file_limit;       /* bytes that a file may have                             */
    const char *stdout_to; /* a file in place of the pipe                            */
    bool deaf;             /* nobody reads stdout                                    */
    const char *interrupt; /* a signal as soon as this path exists                   */
    int signal;            /* which one; 0: SIGINT                                   */
};

/* Whether `terminal` can be had here. */
bool program_has_terminals(void);

/* `line` is split at spaces; the further arguments replace "%s" and the like in it. The word "@" stands for a small
 * checkpoint. To be released with program_free(). */
struct program program_run(const struct circumstances *circumstances, const char *line, ...)
    __attribute__((format(printf, 2, 3)));
void program_free(struct program *program);

/* Ended with `code` and said `out` and `err` among other things (NULL: whatever it said). Releases it. */
void program_assert(struct program program, int code, const char *out, const char *err);

/* The same, and stderr is one line that begins with the program's name. */
void program_assert_failure(struct program program, int code, const char *err);

/* Where the program and the small checkpoint are. */
void program_set_paths(const char *program, const char *checkpoint);

#endif
