/* SPDX-License-Identifier: MIT */
/*
 * matrix.h - operands for the products, what the products make of them in double precision, and how close they must
 * come.
 */
#ifndef TESTS_DNN_MATRIX_H
#define TESTS_DNN_MATRIX_H

#include <stdbool.h>

#include "../kernels/trial.h"
#include "dnn/dnn.h"

/* Where the elements of a matrix lie: element (row, column) at first + row * row_step + column * column_step. */
typedef struct matrix {
    const void *data;
    sw_type type;
    size_t first, row_step, column_step;
} matrix;

static inline matrix dense(const void *data, sw_type type, int32_t columns)
{
    return (matrix){data, type, 0, (size_t)columns, 1};
}

/* Ends the test unless the status is OK; prints the message. */
void must(swin_status status, const swin_error *err);

/* Fails unless C [m, n] is A [m, k] B [k, n] + start, where start [m, n] is what the sum begins with: a bias with
 * row_step 0, an earlier C, or nothing (data NULL).
 *
 * Tolerance. A term that passes at most r roundings, in whatever order terms are added, fused or not, makes the sum
 * wrong by at most r u times the sum of the magnitudes, u = 2^-24 (Higham, Accuracy and Stability, 3.1, first order):
 * oneDNN sums k products, r = k + 1. With bf16 operands each product is exact, and AMX flushes denormal intermediate
 * results, which 2^-120 covers. bf16 results are rounded once more. */
void product_check(const matrix *c, const matrix *a, const matrix *b, const matrix *start, int32_t m, int32_t n,
                   int32_t k, int32_t roundings, const char *where);

#endif
