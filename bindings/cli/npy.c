/* SPDX-License-Identifier: MIT */
#include "npy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "regular_file.h"

enum {
    ALIGNMENT = 64,
    PREAMBLE = 10,       /* magic, version, 16-bit header length */
    MAX_HEADER = 1 << 16 /* far beyond what any writer produces */
};

static const char magic[6] = "\x93NUMPY";

const char *npy_shape_text(const struct npy_shape *shape, char text[NPY_SHAPE_TEXT])
{
    int at = snprintf(text, NPY_SHAPE_TEXT, "(");
    for (int i = 0; i < shape->dimensions; i++)
        at +=
            snprintf(text + at, (size_t)(NPY_SHAPE_TEXT - at), "%s%lld", i > 0 ? ", " : "", (long long)shape->size[i]);
    snprintf(text + at, (size_t)(NPY_SHAPE_TEXT - at), "%s)", shape->dimensions == 1 ? "," : "");
    return text;
}

/* Files and the numbers in them are little-endian, whatever this machine is. */
static bool write_floats(FILE *stream, const float *values, size_t count)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return fwrite(values, sizeof *values, count, stream) == count;
#else
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        const unsigned char bytes[4] = {(unsigned char)bits, (unsigned char)(bits >> 8), (unsigned char)(bits >> 16),
                                        (unsigned char)(bits >> 24)};
        if (fwrite(bytes, 1, sizeof bytes, stream) != sizeof bytes)
            return false;
    }
    return true;
#endif
}

bool npy_write(FILE *stream, const char *path, const struct npy_shape *shape, const float *values,
               struct failure *failure)
{
    char text[NPY_SHAPE_TEXT];
    char header[512];
    size_t count = 1;

    for (int i = 0; i < shape->dimensions; i++)
        count *= (size_t)shape->size[i];
    /* The room that numpy adds for a first dimension to grow lies within the padding, for shapes as short as these. */
    const int length = snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }",
                                npy_shape_text(shape, text));
    /* One byte is the line feed at the end. */
    const int padding = ALIGNMENT - (PREAMBLE + length + 1) % ALIGNMENT;
    const int total = length + padding + 1;
    const unsigned char preamble[PREAMBLE] = {
        (unsigned char)magic[0], 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)total, (unsigned char)(total >> 8)};
    if (fwrite(preamble, 1, PREAMBLE, stream) != PREAMBLE || fprintf(stream, "%s%*s\n", header, padding, "") != total ||
        !write_floats(stream, values, count))
        return failure_set(failure, "%s: cannot be written: %s", path, failure_of_errno(errno));
    return true;
}

/* The header is a Python dictionary literal. This reads as much of the language as numpy writes. */
struct cursor {
    const char *at;
};

static void skip_spaces(struct cursor *cursor)
{
    while (*cursor->at == ' ' || *cursor->at == '\t' || *cursor->at == '\n')
        cursor->at++;
}

static bool take(struct cursor *cursor, char c)
{
    skip_spaces(cursor);
    if (*cursor->at != c)
        return false;
    cursor->at++;
    return true;
}

static bool take_word(struct cursor *cursor, const char *word)
{
    skip_spaces(cursor);
    const size_t length = strlen(word);
    if (strncmp(cursor->at, word, length) != 0)
        return false;
    cursor->at += length;
    return true;
}

static bool take_string(struct cursor *cursor, char *text, size_t size)
{
    skip_spaces(cursor);
    const char quote = *cursor->at;
    if (quote != '\'' && quote != '"')
        return false;
    const char *end = strchr(cursor->at + 1, quote);
    if (end == NULL || (size_t)(end - cursor->at) > size)
        return false;
    const size_t length = (size_t)(end - cursor->at - 1);
    memcpy(text, cursor->at + 1, length);
    text[length] = '\0';
    cursor->at = end + 1;
    return true;
}

static bool take_shape(struct cursor *cursor, struct npy_shape *shape)
{
    shape->dimensions = 0;
    if (!take(cursor, '('))
        return false;
    while (!take(cursor, ')')) {
        if (shape->dimensions == NPY_MAX_DIMENSIONS || *cursor->at < '0' || *cursor->at > '9')
            return false;
        char *end;
        errno = 0;
        shape->size[shape->dimensions++] = strtoll(cursor->at, &end, 10);
        if (errno != 0)
            return false;
        cursor->at = *end == 'L' ? end + 1 : end;
        if (!take(cursor, ',')) {
            if (take(cursor, ')'))
                return true;
            return false;
        }
    }
    return true;
}

struct header {
    char type[16];
    bool fortran;
    struct npy_shape shape;
};

static bool parse_header(const char *text, struct header *header)
{
    struct cursor cursor = {text};
    bool seen[3] = {false, false, false};

    if (!take(&cursor, '{'))
        return false;
    while (!take(&cursor, '}')) {
        char key[32];
        if (!take_string(&cursor, key, sizeof key) || !take(&cursor, ':'))
            return false;
        if (strcmp(key, "descr") == 0) {
            seen[0] = take_string(&cursor, header->type, sizeof header->type);
            if (!seen[0])
                return false;
        } else if (strcmp(key, "fortran_order") == 0) {
            header->fortran = take_word(&cursor, "True");
            seen[1] = header->fortran || take_word(&cursor, "False");
            if (!seen[1])
                return false;
        } else if (strcmp(key, "shape") == 0) {
            seen[2] = take_shape(&cursor, &header->shape);
            if (!seen[2])
                return false;
        } else {
            return false;
        }
        if (!take(&cursor, ',') && *cursor.at != '}')
            return false;
    }
    return seen[0] && seen[1] && seen[2];
}

/* The text between the preamble and the data, NUL-terminated; NULL with a failure set. */
static char *read_header(FILE *stream, const char *path, struct failure *failure)
{
    unsigned char preamble[PREAMBLE + 2];
    size_t length = 0;

    if (fread(preamble, 1, PREAMBLE, stream) != PREAMBLE || memcmp(preamble, magic, sizeof magic) != 0) {
        failure_set(failure, "%s: is no .npy file; write it with numpy.save or swin-dump --npy", path);
        return NULL;
    }
    length = (size_t)preamble[8] | (size_t)preamble[9] << 8;
    if (preamble[6] == 2 || preamble[6] == 3) {
        if (fread(preamble + PREAMBLE, 1, 2, stream) != 2)
            length = MAX_HEADER + 1;
        else
            length |= (size_t)preamble[10] << 16 | (size_t)preamble[11] << 24;
    } else if (preamble[6] != 1) {
        failure_set(failure, "%s: .npy version %d is not known (1, 2 and 3 are); write it with numpy.save", path,
                    preamble[6]);
        return NULL;
    }
    char *text = length <= MAX_HEADER ? malloc(length + 1) : NULL;
    if (text == NULL || fread(text, 1, length, stream) != length) {
        failure_set(failure, "%s: broken .npy header (%zu bytes of it are not there); write the file again", path,
                    length);
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

static bool count_of(const struct npy_shape *shape, size_t *count)
{
    *count = 1;
    for (int i = 0; i < shape->dimensions; i++) {
        if (__builtin_mul_overflow(*count, (size_t)shape->size[i], count))
            return false;
    }
    return *count <= SIZE_MAX / 16;
}

/* Converted in pieces, so that a lying shape costs no more memory than the file has bytes. */
static bool read_values(FILE *stream, const char *path, size_t value_size, struct npy_array *array,
                        struct failure *failure)
{
    enum { PIECE = 4096 };
    unsigned char bytes[PIECE * 8];
    size_t capacity = 0;

    for (size_t done = 0; done < array->count;) {
        const size_t piece = array->count - done < PIECE ? array->count - done : PIECE;
        if (fread(bytes, value_size, piece, stream) != piece) {
            return failure_set(failure, "%s: ends before its %zu values (truncated); write the file again", path,
                               array->count);
        }
        if (done + piece > capacity) {
            const size_t wanted = 2 * capacity > PIECE ? 2 * capacity : PIECE;
            capacity = wanted < array->count ? wanted : array->count;
            double *values = realloc(array->values, capacity * sizeof *values);
            if (values == NULL)
                return failure_no_memory(failure, capacity * sizeof *values, path);
            array->values = values;
        }
        for (size_t i = 0; i < piece; i++) {
            uint64_t bits = 0;
            for (size_t byte = 0; byte < value_size; byte++)
                bits |= (uint64_t)bytes[i * value_size + byte] << (8 * byte);
            if (value_size == sizeof(float)) {
                const uint32_t low = (uint32_t)bits;
                float value;
                memcpy(&value, &low, sizeof value);
                array->values[done + i] = (double)value;
            } else {
                memcpy(&array->values[done + i], &bits, sizeof bits);
            }
        }
        done += piece;
    }
    return true;
}

/* Opens a file up to its values, of `value_size` bytes each; NULL with a failure set. */
static FILE *open_array(const char *path, struct npy_array *array, size_t *value_size, struct failure *failure)
{
    struct header header = {0};
    *array = (struct npy_array){0};
    FILE *stream = regular_file_open(path, failure);
    if (stream == NULL)
        return NULL;
    char *text = read_header(stream, path, failure);
    if (text == NULL)
        goto fail;
    if (!parse_header(text, &header)) {
        failure_set(failure, "%s: broken .npy header; write the file again with numpy.save", path);
        goto fail;
    }
    const bool is_float = strcmp(header.type, "<f4") == 0;
    *value_size = is_float ? 4 : 8;
    if (!is_float && strcmp(header.type, "<f8") != 0) {
        failure_set(failure, "%s: holds '%s', not float32 ('<f4') or float64 ('<f8'); save array.astype('float32')",
                    path, header.type);
        goto fail;
    }
    if (header.fortran) {
        failure_set(failure, "%s: is in Fortran order; save numpy.ascontiguousarray(array)", path);
        goto fail;
    }
    array->shape = header.shape;
    if (!count_of(&header.shape, &array->count)) {
        failure_set(failure, "%s: its shape has more values than a file can hold; write the file again", path);
        goto fail;
    }
    free(text);
    return stream;

fail:
    free(text);
    fclose(stream);
    return NULL;
}

bool npy_probe(const char *path, struct npy_shape *shape, struct failure *failure)
{
    struct npy_array array;
    size_t value_size;
    FILE *stream = open_array(path, &array, &value_size, failure);
    if (stream == NULL)
        return false;
    fclose(stream);
    *shape = array.shape;
    return true;
}

bool npy_read(const char *path, struct npy_array *array, struct failure *failure)
{
    size_t value_size;
    FILE *stream = open_array(path, array, &value_size, failure);
    const bool done = stream != NULL && read_values(stream, path, value_size, array, failure);
    if (stream != NULL)
        fclose(stream);
    if (!done)
        npy_destroy(array);
    return done;
}

void npy_destroy(struct npy_array *array)
{
    free(array->values);
    array->values = NULL;
}
