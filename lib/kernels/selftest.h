/* SPDX-License-Identifier: MIT */
/*
 * selftest.h - the kernels of this CPU against plain C, one at a time, on small pseudo-random numbers: what a wrong
 * instruction set, a broken compiler or an emulator that does not know an instruction would get wrong.
 */
#ifndef SW_KERNELS_SELFTEST_H
#define SW_KERNELS_SELFTEST_H

#include "../base/status.h"
#include "kernels.h"

typedef struct sw_selftest {
    const char *kernel; /* NULL: there is no such check */
    const char *isa;
    double error;       /* the largest difference, in units of what is allowed; NaN is none */
} sw_selftest;

/* Check number `index` of a table of kernels; those of AMX come last, and only where this CPU and build have them and
 * `amx` asks for them. Fails with INTERNAL where the error is larger than 1, and then fills `result` as well. */
swin_status sw_selftest_run(const sw_kernels *kernels, bool amx, size_t index, sw_selftest *result, swin_error *err);

#endif
