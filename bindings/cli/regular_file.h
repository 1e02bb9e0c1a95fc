/* SPDX-License-Identifier: MIT */
/*
 * regular_file.h - files as they are opened for reading: no pipes and devices, which a directory may hold under any
 * name, and which could keep the program waiting for ever.
 */
#ifndef CLI_REGULAR_FILE_H
#define CLI_REGULAR_FILE_H

#include <stdio.h>

#include "failure.h"

/* NULL with a failure set. */
FILE *regular_file_open(const char *path, struct failure *failure);

#endif
