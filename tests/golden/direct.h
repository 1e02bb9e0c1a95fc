/* SPDX-License-Identifier: MIT */
/*
 * direct.h - the small V1 and V2 networks of weights.py for the reference, read from their files without the library:
 * in double precision throughout, position biases included.
 */
#ifndef TESTS_GOLDEN_DIRECT_H
#define TESTS_GOLDEN_DIRECT_H

#include "fixture.h"
#include "reference/weights.h"

/* A file under the names of Microsoft's detection code, and the configuration that it is read for. */
typedef struct direct_origin {
    const fixture *file;
    swin_config config;
} direct_origin;

/* `origin` must outlive the weights. Released with reference_weights_release(). */
reference_weights direct_weights(const direct_origin *origin);

#endif
