/* SPDX-License-Identifier: MIT */
/*
 * selftest.h - --selftest: the kernels that this CPU gets, compared with plain C.
 */
#ifndef CLI_SELFTEST_H
#define CLI_SELFTEST_H

#include <stdio.h>

#include "failure.h"

/* A line for each; false where one computes something else. */
bool selftest_print(FILE *stream, struct failure *failure);

#endif
