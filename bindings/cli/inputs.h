/* SPDX-License-Identifier: MIT */
/*
 * inputs.h - the images of a run: files as named, directories as the PNG files in them, in alphabetical order. Each has
 * a name of its own for its output directory.
 */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include "failure.h"

struct input {
    char *path;
    char *name;    /* file name without .png; "-2" and so on where names clash */
    char *problem; /* a directory that gives no image: why; else NULL */
};

struct inputs {
    struct input *items;
    int count;
    bool single;     /* one file was named: its output needs no directory of its own */
    int passed_over; /* other files in the directories, hidden ones aside            */
};

bool inputs_collect(struct inputs *inputs, char **paths, int count, struct failure *failure);
void inputs_destroy(struct inputs *inputs);

#endif
