/* SPDX-License-Identifier: MIT */
/*
 * tensor_file.h - safetensors files made by tests, good ones and broken ones. Everything here ends the test on failure.
 */
#ifndef TESTS_SUPPORT_TENSOR_FILE_H
#define TESTS_SUPPORT_TENSOR_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Tensors in the order in which they were added, their data one behind the other. */
typedef struct tensor_file {
    struct file_tensor *tensors;
    size_t count;
} tensor_file;

/* Adds a tensor. `data` is copied; NULL stands for zeros that take no room on the disk. `bytes` is its size in the
 * file. */
void tensor_file_add(tensor_file *file, const char *name, const char *dtype, int rank, const uint64_t *shape,
                     const void *data, size_t bytes);

/* The same for float32, shape given as arguments: tensor_file_add_f32(&file, "norm.weight", data, 1, 96). */
void tensor_file_add_f32(tensor_file *file, const char *name, const float *data, int rank, ...);

/* The name of a tensor by its number, and its shape; returns the rank. */
const char *tensor_file_name(const tensor_file *file, size_t index);
int tensor_file_shape(const tensor_file *file, const char *name, uint64_t shape[16]);

void tensor_file_remove(tensor_file *file, const char *name);
void tensor_file_rename(tensor_file *file, const char *name, const char *new_name);

/* Another shape of as many elements, or of others: the data is cut, or filled up with zeros. */
void tensor_file_reshape(tensor_file *file, const char *name, int rank, const uint64_t *shape);

/* Puts a prefix in front of every name. */
void tensor_file_prefix(tensor_file *file, const char *prefix);

/* Every tensor of `from`, its name behind a prefix. */
void tensor_file_append(tensor_file *file, const tensor_file *from, const char *prefix);

/* Makes a tensor one of zeros of another type. */
void tensor_file_retype(tensor_file *file, const char *name, const char *dtype, size_t element_bytes);

/* Forgets all values: zeros, which take no room on the disk. */
void tensor_file_clear(tensor_file *file);

void tensor_file_write(const tensor_file *file, const char *path);
void tensor_file_free(tensor_file *file);

/* A file of this header and this many zero bytes behind it. The length in front is the header's own, or as given. */
void write_raw(const char *path, const char *header, size_t header_length, uint64_t stated_length, size_t data_bytes);

/* A file of these bytes. */
void write_bytes(const char *path, const void *bytes, size_t count);

/* A new empty directory below the working directory's build tree, removed again with all that is in it. */
const char *make_directory(void);
void make_subdirectory(const char *name);
void remove_directory(void);

/* The path of a name in that directory; valid until the fourth call after. */
const char *in_directory(const char *name);

#endif
