/* SPDX-License-Identifier: MIT */
/*
 * place.h - a directory of a test's own, and files in it.
 */
#ifndef TESTS_CLI_PLACE_H
#define TESTS_CLI_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* CMocka group fixtures: make a directory and remove it with all it holds. */
int place_set_up(void **state);
int place_tear_down(void **state);

/* The path of `name` in the directory; valid until eight more were asked for. "" is the directory itself. */
const char *place_path(const char *name);

void place_write(const char *name, const void *bytes, size_t count);
void place_write_text(const char *name, const char *text);

/* The whole file, NUL-terminated, to be freed; NULL where there is none. */
char *place_read(const char *path, size_t *count);

/* How many entries a directory has, those with a dot included; -1 where it is not there. */
int place_count(const char *path);

#endif
