/* SPDX-License-Identifier: MIT */
/* The input is a file that claims to be an array of numpy's, such as `swin-dump --verify` compares with. */
#include <stdint.h>
#include <string.h>

#include "npy.h"
#include "target.h"

/* Whether the values are those behind the header, taken as floats or as doubles. */
static bool holds(const uint8_t *data, size_t size, const struct npy_array *array, size_t value_size)
{
    const size_t wide = data[6] == 1 ? 0 : 2;
    const size_t start = 10 + wide + ((size_t)data[8] | (size_t)data[9] << 8 | (wide ? (size_t)data[10] << 16 : 0));
    TARGET_REQUIRE(start <= size);
    if (array->count > (size - start) / value_size)
        return false;
    for (size_t i = 0; i < array->count; i++) {
        float narrow;
        double value;
        memcpy(&narrow, data + start + i * value_size, sizeof narrow);
        if (value_size == sizeof value)
            memcpy(&value, data + start + i * value_size, sizeof value);
        else
            value = (double)narrow;
        if (memcmp(&value, &array->values[i], sizeof value) != 0)
            return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy_array array;
    struct npy_shape shape;
    struct failure failure = {.text = ""};
    char text[NPY_SHAPE_TEXT];
    target_memory_write(data, size);
    const bool probed = npy_probe(target_memory_path(), &shape, &failure);
    TARGET_REQUIRE(probed == (failure.text[0] == '\0'));
    failure.text[0] = '\0';
    if (npy_read(target_memory_path(), &array, &failure)) {
        TARGET_REQUIRE(probed && shape.dimensions == array.shape.dimensions && shape.dimensions <= NPY_MAX_DIMENSIONS);
        size_t count = 1;
        for (int i = 0; i < shape.dimensions; i++) {
            TARGET_REQUIRE(shape.size[i] >= 0 && shape.size[i] == array.shape.size[i]);
            count *= (size_t)shape.size[i];
        }
        TARGET_REQUIRE(count == array.count && count <= size / sizeof(float));
        TARGET_REQUIRE(strlen(npy_shape_text(&shape, text)) < sizeof text - 1);
        TARGET_REQUIRE(holds(data, size, &array, sizeof(float)) || holds(data, size, &array, sizeof(double)));
        npy_destroy(&array);
    } else {
        TARGET_REQUIRE(failure.text[0] != '\0' && array.values == NULL);
    }
    return 0;
}
