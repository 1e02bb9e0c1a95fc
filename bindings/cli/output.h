/* SPDX-License-Identifier: MIT */
/*
 * output.h - the files of one image, written under temporary names in their directory and given their real names
 * together when all are complete. A failure or an interruption leaves nothing half-written and no directory that was
 * not there.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdio.h>

#include "failure.h"

enum { OUTPUT_MAX_FILES = 32 };

struct output_file {
    char *path;
    char *temporary;
};

struct output {
    char *directory;
    size_t existing; /* length of the part of `directory` that was there before */
    struct output_file files[OUTPUT_MAX_FILES];
    int count;
    FILE *stream;
};

/* Whether files could be written into the directory, as far as can be told without making anything. */
bool output_probe(const char *directory, struct failure *failure);

/* Creates the directory and its parents where they are missing. */
bool output_open(struct output *output, const char *directory, struct failure *failure);

/* Begins the next file; NULL with a failure set. The stream is closed by output_end(). */
FILE *output_begin(struct output *output, const char *name, struct failure *failure);
const char *output_path(const struct output *output);
bool output_end(struct output *output, struct failure *failure);

/* Gives all files their names. */
bool output_commit(struct output *output, struct failure *failure);

/* Removes what has not been committed, and releases the output; one that was only zeroed is fine. */
void output_close(struct output *output);

#endif
