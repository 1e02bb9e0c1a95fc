/* SPDX-License-Identifier: MIT */
/*
 * failure.h - what every failure of an exported function looks like.
 */
#ifndef TESTS_API_FAILURE_H
#define TESTS_API_FAILURE_H

#include <swin/swin.h>

/* Fails unless the status returned and the one stored are `expected`, with one line of message that has `part` in it
 * and nothing of an earlier message. */
void failure_check(swin_status status, swin_status expected, const swin_error *err, const char *part, const char *what);

/* As an earlier failure left it. */
swin_error failure_stale(void);

#endif
