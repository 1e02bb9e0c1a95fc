/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    char *path;
    unsigned char *bytes;
    const unsigned char *data;
    json_t *header;
};

__attribute__((format(printf, 1, 2), noreturn)) static void give_up(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

char *fixture_path(const char *name)
{
    const size_t size = strlen(GOLDEN_DIRECTORY) + strlen(name) + 2;
    char *path = malloc(size);
    if (path == NULL)
        give_up("out of memory");
    snprintf(path, size, "%s/%s", GOLDEN_DIRECTORY, name);
    return path;
}

fixture *fixture_open(const char *name)
{
    fixture *file = calloc(1, sizeof *file);
    if (file == NULL)
        give_up("out of memory");
    file->path = fixture_path(name);
    FILE *stream = fopen(file->path, "rb");
    if (stream == NULL)
        give_up("%s: cannot be opened", file->path);
    fseek(stream, 0, SEEK_END);
    const long size = ftell(stream);
    rewind(stream);
    file->bytes = malloc((size_t)size);
    if (file->bytes == NULL || fread(file->bytes, 1, (size_t)size, stream) != (size_t)size)
        give_up("%s: cannot be read", file->path);
    fclose(stream);

    uint64_t length;
    memcpy(&length, file->bytes, sizeof length);
    json_error_t error;
    file->header = json_loadb((const char *)file->bytes + 8, length, 0, &error);
    if (file->header == NULL)
        give_up("%s: %s", file->path, error.text);
    file->data = file->bytes + 8 + length;
    return file;
}

void fixture_close(fixture *file)
{
    json_decref(file->header);
    free(file->bytes);
    free(file->path);
    free(file);
}

bool fixture_has(const fixture *file, const char *tensor)
{
    return json_object_get(file->header, tensor) != NULL;
}

static const json_t *entry_of(const fixture *file, const char *tensor)
{
    const json_t *entry = json_object_get(file->header, tensor);
    if (entry == NULL)
        give_up("%s: no tensor %s", file->path, tensor);
    return entry;
}

size_t fixture_shape(const fixture *file, const char *tensor, int64_t shape[FIXTURE_MAX_RANK])
{
    const json_t *dimensions = json_object_get(entry_of(file, tensor), "shape");
    size_t count = 1;
    for (size_t i = 0; i < json_array_size(dimensions); i++) {
        const json_int_t size = json_integer_value(json_array_get(dimensions, i));
        count *= (size_t)size;
        if (shape != NULL && i < FIXTURE_MAX_RANK)
            shape[i] = size;
    }
    for (size_t i = json_array_size(dimensions); shape != NULL && i < FIXTURE_MAX_RANK; i++)
        shape[i] = 1;
    return count;
}

double *fixture_doubles(const fixture *file, const char *tensor)
{
    const json_t *entry = entry_of(file, tensor);
    const size_t count = fixture_shape(file, tensor, NULL);
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    const unsigned char *from =
        file->data + json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 0));
    double *values = malloc((count > 0 ? count : 1) * sizeof *values);
    if (values == NULL)
        give_up("out of memory");
    for (size_t i = 0; i < count; i++) {
        if (strcmp(type, "F64") == 0) {
            memcpy(&values[i], from + 8 * i, 8);
        } else if (strcmp(type, "F32") == 0) {
            float value;
            memcpy(&value, from + 4 * i, 4);
            values[i] = value;
        } else if (strcmp(type, "I32") == 0) {
            int32_t value;
            memcpy(&value, from + 4 * i, 4);
            values[i] = value;
        } else {
            give_up("%s: tensor %s is %s", file->path, tensor, type);
        }
    }
    return values;
}

float *fixture_floats(const fixture *file, const char *tensor)
{
    const size_t count = fixture_shape(file, tensor, NULL);
    double *doubles = fixture_doubles(file, tensor);
    float *values = malloc((count > 0 ? count : 1) * sizeof *values);
    if (values == NULL)
        give_up("out of memory");
    for (size_t i = 0; i < count; i++)
        values[i] = (float)doubles[i];
    free(doubles);
    return values;
}

const char *fixture_metadata(const fixture *file, const char *key)
{
    return json_string_value(json_object_get(json_object_get(file->header, "__metadata__"), key));
}

double fixture_distance(const double *values, const double *expected, size_t count)
{
    double difference = 0, size = 0;
    for (size_t i = 0; i < count; i++) {
        difference += (values[i] - expected[i]) * (values[i] - expected[i]);
        size += expected[i] * expected[i];
    }
    const double distance = sqrt(difference / size);
    return isfinite(distance) ? distance : INFINITY;
}
