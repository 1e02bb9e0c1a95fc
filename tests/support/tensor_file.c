/* SPDX-License-Identifier: MIT */
#include "tensor_file.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct file_tensor {
    char *name;
    char dtype[16];
    int rank;
    uint64_t shape[16];
    void *data; /* NULL: zeros */
    size_t bytes;
};

static void stop(const char *what, const char *name)
{
    fprintf(stderr, "test support: %s: %s\n", what, name);
    abort();
}

static void *need(void *block)
{
    if (block == NULL)
        stop("no memory", "");
    return block;
}

void tensor_file_add(tensor_file *file, const char *name, const char *dtype, int rank, const uint64_t *shape,
                     const void *data, size_t bytes)
{
    file->tensors = need(realloc(file->tensors, (file->count + 1) * sizeof *file->tensors));
    struct file_tensor *tensor = &file->tensors[file->count++];
    *tensor = (struct file_tensor){.name = need(strdup(name)), .rank = rank, .bytes = bytes};
    snprintf(tensor->dtype, sizeof tensor->dtype, "%s", dtype);
    if (rank > 0)
        memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
    if (data != NULL) {
        tensor->data = need(malloc(bytes + 1));
        memcpy(tensor->data, data, bytes);
    }
}

void tensor_file_add_f32(tensor_file *file, const char *name, const float *data, int rank, ...)
{
    uint64_t shape[16];
    size_t bytes = sizeof *data;
    va_list sides;
    va_start(sides, rank);
    for (int i = 0; i < rank; i++) {
        shape[i] = (uint64_t)va_arg(sides, int);
        bytes *= (size_t)shape[i];
    }
    va_end(sides);
    tensor_file_add(file, name, "F32", rank, shape, data, bytes);
}

static struct file_tensor *find_surely(const tensor_file *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    }
    stop("no such tensor", name);
    return NULL;
}

const char *tensor_file_name(const tensor_file *file, size_t index)
{
    return file->tensors[index].name;
}

int tensor_file_shape(const tensor_file *file, const char *name, uint64_t shape[16])
{
    const struct file_tensor *tensor = find_surely(file, name);
    memcpy(shape, tensor->shape, (size_t)tensor->rank * sizeof *shape);
    return tensor->rank;
}

void tensor_file_remove(tensor_file *file, const char *name)
{
    struct file_tensor *tensor = find_surely(file, name);
    free(tensor->name);
    free(tensor->data);
    const size_t index = (size_t)(tensor - file->tensors);
    memmove(tensor, tensor + 1, (file->count - index - 1) * sizeof *tensor);
    file->count--;
}

void tensor_file_rename(tensor_file *file, const char *name, const char *new_name)
{
    struct file_tensor *tensor = find_surely(file, name);
    char *copy = need(strdup(new_name));
    free(tensor->name);
    tensor->name = copy;
}

void tensor_file_reshape(tensor_file *file, const char *name, int rank, const uint64_t *shape)
{
    struct file_tensor *tensor = find_surely(file, name);
    size_t before = 1, after = 1;
    for (int i = 0; i < tensor->rank; i++)
        before *= (size_t)tensor->shape[i];
    for (int i = 0; i < rank; i++)
        after *= (size_t)shape[i];
    const size_t bytes = tensor->bytes / before * after;
    if (tensor->data != NULL) {
        tensor->data = need(realloc(tensor->data, bytes + 1));
        if (bytes > tensor->bytes)
            memset((char *)tensor->data + tensor->bytes, 0, bytes - tensor->bytes);
    }
    tensor->bytes = bytes;
    tensor->rank = rank;
    memcpy(tensor->shape, shape, (size_t)rank * sizeof *shape);
}

void tensor_file_prefix(tensor_file *file, const char *prefix)
{
    for (size_t i = 0; i < file->count; i++) {
        char *name = file->tensors[i].name;
        char *longer = need(malloc(strlen(prefix) + strlen(name) + 1));
        strcpy(longer, prefix);
        strcat(longer, name);
        free(name);
        file->tensors[i].name = longer;
    }
}

void tensor_file_append(tensor_file *file, const tensor_file *from, const char *prefix)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct file_tensor *tensor = &from->tensors[i];
        char name[1024];
        snprintf(name, sizeof name, "%s%s", prefix, tensor->name);
        tensor_file_add(file, name, tensor->dtype, tensor->rank, tensor->shape, tensor->data, tensor->bytes);
    }
}

void tensor_file_retype(tensor_file *file, const char *name, const char *dtype, size_t element_bytes)
{
    struct file_tensor *tensor = find_surely(file, name);
    snprintf(tensor->dtype, sizeof tensor->dtype, "%s", dtype);
    free(tensor->data);
    tensor->data = NULL;
    tensor->bytes = element_bytes;
    for (int i = 0; i < tensor->rank; i++)
        tensor->bytes *= (size_t)tensor->shape[i];
}

void tensor_file_clear(tensor_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        free(file->tensors[i].data);
        file->tensors[i].data = NULL;
    }
}

void tensor_file_write(const tensor_file *file, const char *path)
{
    char *header = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&header, &length);
    if (text == NULL)
        stop("no memory", "");
    uint64_t offset = 0;
    fputc('{', text);
    for (size_t i = 0; i < file->count; i++) {
        const struct file_tensor *tensor = &file->tensors[i];
        fprintf(text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i == 0 ? "" : ",", tensor->name, tensor->dtype);
        for (int s = 0; s < tensor->rank; s++)
            fprintf(text, "%s%" PRIu64, s == 0 ? "" : ",", tensor->shape[s]);
        fprintf(text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset, offset + tensor->bytes);
        offset += tensor->bytes;
    }
    fputc('}', text);
    fclose(text);

    FILE *out = fopen(path, "wb");
    const uint64_t stated = length;
    if (out == NULL || fwrite(&stated, sizeof stated, 1, out) != 1 || fwrite(header, 1, length, out) != length)
        stop("cannot write", path);
    for (size_t i = 0; i < file->count; i++) {
        const struct file_tensor *tensor = &file->tensors[i];
        if (tensor->data == NULL ? fseek(out, (long)tensor->bytes, SEEK_CUR) != 0
                                 : fwrite(tensor->data, 1, tensor->bytes, out) != tensor->bytes)
            stop("cannot write", path);
    }
    if (fflush(out) != 0 || ftruncate(fileno(out), (off_t)(sizeof stated + length + offset)) != 0 || fclose(out) != 0)
        stop("cannot write", path);
    free(header);
}

void tensor_file_free(tensor_file *file)
{
    for (size_t i = 0; i < file->count; i++) {
        free(file->tensors[i].name);
        free(file->tensors[i].data);
    }
    free(file->tensors);
    *file = (tensor_file){0};
}

void write_raw(const char *path, const char *header, size_t header_length, uint64_t stated_length, size_t data_bytes)
{
    FILE *out = fopen(path, "wb");
    if (out == NULL || fwrite(&stated_length, sizeof stated_length, 1, out) != 1 ||
        fwrite(header, 1, header_length, out) != header_length || fflush(out) != 0 ||
        ftruncate(fileno(out), (off_t)(sizeof stated_length + header_length + data_bytes)) != 0 || fclose(out) != 0)
        stop("cannot write", path);
}

void write_bytes(const char *path, const void *bytes, size_t count)
{
    FILE *out = fopen(path, "wb");
    if (out == NULL || fwrite(bytes, 1, count, out) != count || fclose(out) != 0)
        stop("cannot write", path);
}

static char directory[64];

const char *make_directory(void)
{
    snprintf(directory, sizeof directory, "./swin-test-XXXXXX");
    if (mkdtemp(directory) == NULL)
        stop("cannot make a directory", directory);
    return directory;
}

void make_subdirectory(const char *name)
{
    if (mkdir(in_directory(name), 0777) != 0 && errno != EEXIST)
        stop("cannot make a directory", name);
}

static int remove_entry(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    (void)info;
    (void)flag;
    (void)walk;
    return remove(path);
}

void remove_directory(void)
{
    if (directory[0] != '\0')
        nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    directory[0] = '\0';
}

const char *in_directory(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next];
    next = (next + 1) % 4;
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}
