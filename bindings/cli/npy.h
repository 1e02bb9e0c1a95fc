/* SPDX-License-Identifier: MIT */
/*
 * npy.h - NumPy's array files. Written as numpy.save writes a C-ordered float32 array, to the byte; read with a
 * suspicious eye: little-endian float32 or float64 in C order, whatever version of the header.
 */
#ifndef CLI_NPY_H
#define CLI_NPY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "failure.h"

enum { NPY_MAX_DIMENSIONS = 8 };

struct npy_shape {
    int dimensions;
    int64_t size[NPY_MAX_DIMENSIONS];
};

/* An array in memory: `count` is the product of its shape. */
struct npy_array {
    struct npy_shape shape;
    size_t count;
    double *values;
};

/* `path` is for the message. */
bool npy_write(FILE *stream, const char *path, const struct npy_shape *shape, const float *values,
               struct failure *failure);

/* The shape alone: what npy_read() would find, short of values that are missing. */
bool npy_probe(const char *path, struct npy_shape *shape, struct failure *failure);

/* Frees with npy_destroy(). */
bool npy_read(const char *path, struct npy_array *array, struct failure *failure);
void npy_destroy(struct npy_array *array);

/* "(1, 96, 56, 56)", in `text`. */
enum { NPY_SHAPE_TEXT = 192 };
const char *npy_shape_text(const struct npy_shape *shape, char text[NPY_SHAPE_TEXT]);

#endif
