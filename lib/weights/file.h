/* SPDX-License-Identifier: MIT */
/*
 * file.h - a regular file read at positions.
 *
 * Not mapped: a mapping of a file that shrinks kills the process with SIGBUS, where a read gives a status. Any thread
 * may read; the descriptor has no position of its own.
 */
#ifndef SW_WEIGHTS_FILE_H
#define SW_WEIGHTS_FILE_H

#include <time.h>

#include "../base/status.h"

typedef struct sw_file {
    int descriptor; /* -1: closed */
    uint64_t size;
    struct timespec modified;
    char *path;
} sw_file;

/* Refuses anything but a regular file. */
swin_status sw_file_open(const char *path, sw_file *file, swin_error *err);

/* A closed or zeroed-and-closed file is fine. */
void sw_file_close(sw_file *file);

/* Reads exactly `bytes` bytes from `offset` on; less is an error. */
swin_status sw_file_read(const sw_file *file, uint64_t offset, void *dst, size_t bytes, swin_error *err);

/* IO where the file's size or modification time is no longer what it was when it was opened. */
swin_status sw_file_check_unchanged(const sw_file *file, swin_error *err);

/* The whole of a small text file, NUL-terminated, to be freed; LIMIT where it is larger than `limit`. */
swin_status sw_file_load(const char *path, size_t limit, char **text, size_t *length, swin_error *err);

#endif
