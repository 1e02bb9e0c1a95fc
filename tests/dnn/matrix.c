/* SPDX-License-Identifier: MIT */
#include "matrix.h"

void must(swin_status status, const swin_error *err)
{
    if (status != SWIN_OK)
        fail_msg("status %d: %s", (int)status, err->message);
}

static double element(const matrix *x, int32_t row, int32_t column)
{
    return trial_get(x->data, x->type, x->first + (size_t)row * x->row_step + (size_t)column * x->column_step);
}

void product_check(const matrix *c, const matrix *a, const matrix *b, const matrix *start, int32_t m, int32_t n,
                   int32_t k, int32_t roundings, const char *where)
{
    for (int32_t i = 0; i < m; i++) {
        for (int32_t j = 0; j < n; j++) {
            double sum = start->data != NULL ? element(start, i, j) : 0;
            double magnitude = fabs(sum);
            for (int32_t p = 0; p < k; p++) {
                const double product = element(a, i, p) * element(b, p, j);
                sum += product;
                magnitude += fabs(product);
            }
            trial_close(element(c, i, j), sum, roundings * UNIT * magnitude + 0x1p-120, c->type,
                        "%s, row %d, column %d", where, i, j);
        }
    }
}
