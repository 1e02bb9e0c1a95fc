/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#include "checked.h"

void *sw_alloc(size_t count, size_t size)
{
    size_t bytes;
    if (!sw_mul(count, size, &bytes) || !sw_round_up(bytes == 0 ? 1 : bytes, SW_ALIGNMENT, &bytes))
        return NULL;
    return aligned_alloc(SW_ALIGNMENT, bytes);
}

void *sw_alloc_zeroed(size_t count, size_t size)
{
    void *block = sw_alloc(count, size);
    if (block != NULL)
        memset(block, 0, count * size);
    return block;
}

char *sw_copy_string(const char *text, size_t length)
{
    char *copy = sw_alloc(length + 1, 1);
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

void sw_free(void *block)
{
    free(block);
}
