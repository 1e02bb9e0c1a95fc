/* SPDX-License-Identifier: MIT */
/*
 * machine.h - what a benchmark ran on, in one line: figures of different machines must not be mixed up.
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

/* "machine: <CPU>, <CPUs that the process may use>, <kernel>". */
void machine_print(void);

#endif
