/* SPDX-License-Identifier: MIT */
/*
 * panels.h - how a matrix of activations lies in memory: columns in panels of equal width, each panel dense.
 *
 *      columns   0 .. width-1   width .. 2*width-1   ...
 *               [ rows x width ][    rows x width   ]
 *
 * oneDNN's fast kernels want dense operands, so a product whose output columns are computed in several pieces writes
 * one panel per piece. An ordinary row-major matrix is the case of a single panel.
 */
#ifndef SW_KERNELS_PANELS_H
#define SW_KERNELS_PANELS_H

#include <stddef.h>
#include <stdint.h>

#include "../base/type.h"

typedef struct sw_panels {
    void *data;
    sw_type type;
    int32_t width;  /* columns per panel; divides the number of columns             */
    size_t stride;  /* elements from one panel to the next; a row's stride is width */
} sw_panels;

#endif
