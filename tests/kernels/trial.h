/* SPDX-License-Identifier: MIT */
/*
 * trial.h - what the kernel tests share: numbers to work on, comparison against double precision, and the loop over
 * instruction sets.
 */
#ifndef TESTS_KERNELS_TRIAL_H
#define TESTS_KERNELS_TRIAL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "guarded.h"
#include "kernels/kernels.h"

/* Half a unit in the last place of 1, relative rounding error of one float32 operation. */
#define UNIT 0x1p-24

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* The random sequence starts over. */
void trial_seed(uint64_t seed);
uint32_t trial_bits(void);
float trial_uniform(float low, float high);
float trial_normal(float mean, float deviation);

/* A sealed guarded array of normal numbers, in the type asked for. */
void *trial_normals(size_t count, sw_type type, float mean, float deviation);

/* Elements as numbers and back. */
float trial_get(const void *array, sw_type type, size_t at);
void trial_put(void *array, sw_type type, size_t at, float value);
uint16_t trial_bf16(float value);

/* Fails unless `got` is `exact` within `tolerance`, plus the rounding to bf16 where that is the type. NaN and
 * infinities must be the same. The text says where. */
void trial_close(double got, double exact, double tolerance, sw_type type, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The distance between neighbouring bf16 numbers at a value. */
double trial_bf16_ulp(double value);

/* Fails unless every byte still holds the pattern that guarded_alloc() left. */
void trial_untouched(const void *from, size_t bytes, const char *where);

/* Runs `body` for each instruction set of this CPU and each side of guarded.h, and frees all blocks after each. */
typedef void trial_body(const sw_kernels *kernels);
void trial_run(trial_body *body);

#endif
