/* SPDX-License-Identifier: MIT */
#include "checkpoint.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/memory.h"
#include "advice.h"
#include "safetensors.h"
#include "shards.h"

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), ending_length = strlen(ending);
    return length >= ending_length && strcmp(text + length - ending_length, ending) == 0;
}

static swin_status open_single(const char *path, uint64_t max_header_bytes, sw_checkpoint *checkpoint, swin_error *err)
{
    checkpoint->files = sw_alloc(1, sizeof *checkpoint->files);
    if (checkpoint->files == NULL)
        return sw_fail_memory(err, sizeof *checkpoint->files, "a file");
    SW_TRY(sw_file_open(path, &checkpoint->files[0], err));
    checkpoint->file_count = 1;
    SW_TRY(sw_safetensors_sniff(&checkpoint->files[0], err));
    return sw_safetensors_read_header(&checkpoint->files[0], 0, max_header_bytes, &checkpoint->table, err);
}

swin_status sw_checkpoint_open(const char *path, uint64_t max_header_bytes, sw_checkpoint *checkpoint, swin_error *err)
{
    *checkpoint = (sw_checkpoint){0};
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return sw_fail_directory(path, err);
    swin_status status;
    if (ends_with(path, ".index.json"))
        status = sw_shards_open(path, max_header_bytes, checkpoint, err);
    else
        status = open_single(path, max_header_bytes, checkpoint, err);
    if (status == SWIN_OK)
        status = sw_tensor_table_sort(&checkpoint->table, err);
    if (status != SWIN_OK)
        sw_checkpoint_close(checkpoint);
    return status;
}

void sw_checkpoint_close(sw_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->file_count; i++)
        sw_file_close(&checkpoint->files[i]);
    sw_free(checkpoint->files);
    sw_tensor_table_release(&checkpoint->table);
    *checkpoint = (sw_checkpoint){0};
}

swin_status sw_checkpoint_read(const sw_checkpoint *checkpoint, const sw_tensor *tensor, uint64_t first, size_t count,
                               float *dst, swin_error *err)
{
    const sw_file *file = &checkpoint->files[tensor->file];
    const size_t size = sw_dtype_bits(tensor->dtype) / 8;
    assert(sw_dtype_is_weight(tensor->dtype) && first <= tensor->elements && count <= tensor->elements - first);

    uint64_t offset = tensor->offset + first * size;
    if (size <= sizeof *dst) {
        /* Narrow elements are read into the end of dst and widened from its beginning on. */
        char *raw = (char *)dst + count * (sizeof *dst - size);
        SW_TRY(sw_file_read(file, offset, raw, count * size, err));
        if (size < sizeof *dst)
            sw_dtype_to_f32(tensor->dtype, raw, dst, count);
        return SWIN_OK;
    }
    double buffer[2048];
    while (count > 0) {
        const size_t part = count < 2048 ? count : 2048;
        SW_TRY(sw_file_read(file, offset, buffer, part * size, err));
        sw_dtype_to_f32(tensor->dtype, buffer, dst, part);
        offset += part * size;
        dst += part;
        count -= part;
    }
    return SWIN_OK;
}

swin_status sw_checkpoint_check_unchanged(const sw_checkpoint *checkpoint, const sw_tensor *tensor, swin_error *err)
{
    return sw_file_check_unchanged(&checkpoint->files[tensor->file], err);
}
