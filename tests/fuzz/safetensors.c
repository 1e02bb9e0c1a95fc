/* SPDX-License-Identifier: MIT */
/* The input is a file that claims to be a safetensors file. */
#include <string.h>

#include "memory_counted.h"
#include "target.h"
#include "weights/checkpoint.h"

enum { HEADER_LIMIT = 1 << 20, VALUES = 600 };

/* What the table promises of a tensor, checked against the file and by reading its two ends. */
static void inspect(const sw_checkpoint *checkpoint, const sw_tensor *tensor, size_t file_size)
{
    float values[VALUES];
    char text[64];
    TARGET_REQUIRE(tensor->rank >= 0 && tensor->rank <= SW_MAX_RANK);
    TARGET_REQUIRE(tensor->offset <= file_size && tensor->bytes <= file_size - tensor->offset);
    TARGET_REQUIRE(sw_tensor_table_find(&checkpoint->table, tensor->name) == tensor);
    TARGET_REQUIRE(strlen(sw_tensor_shape_text(tensor, text, sizeof text)) < sizeof text);
    uint64_t elements = 1;
    for (int32_t i = 0; i < tensor->rank; i++)
        elements *= tensor->shape[i];
    TARGET_REQUIRE(elements == tensor->elements && elements <= file_size * 8);
    if (!sw_dtype_is_weight(tensor->dtype))
        return;
    const size_t count = elements < VALUES ? (size_t)elements : VALUES;
    TARGET_REQUIRE(sw_checkpoint_read(checkpoint, tensor, 0, count, values, NULL) == SWIN_OK);
    TARGET_REQUIRE(sw_checkpoint_read(checkpoint, tensor, elements - count, count, values, NULL) == SWIN_OK);
    TARGET_REQUIRE(sw_count_nonfinite(values, count) <= count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sw_checkpoint checkpoint;
    swin_error err;
    sw_error_reset(&err);
    target_memory_write(data, size);
    const swin_status status = sw_checkpoint_open(target_memory_path(), HEADER_LIMIT, &checkpoint, &err);
    TARGET_REQUIRE((status == SWIN_OK) == (err.message[0] == '\0') && err.status == (int32_t)status);
    TARGET_REQUIRE(status == SWIN_OK || status == SWIN_ERR_FORMAT || status == SWIN_ERR_UNSUPPORTED ||
                   status == SWIN_ERR_LIMIT);
    for (const char *p = err.message; *p != '\0'; p++)
        TARGET_REQUIRE(*p >= 0x20 && *p < 0x7f);
    if (status == SWIN_OK) {
        for (size_t i = 0; i < checkpoint.table.count; i++)
            inspect(&checkpoint, &checkpoint.table.tensors[i], size);
        sw_checkpoint_close(&checkpoint);
    }
    TARGET_REQUIRE(memory_live_blocks() == 0);
    return 0;
}
