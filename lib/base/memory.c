/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "checked.h"

/* Large blocks are put on large pages where the system has them: walking through packed weights costs a look at a
 * page table every 4 KB otherwise, a fifth of the time of a small image (bench/README.md). */
#define LARGE_PAGE ((size_t)2 << 20)

void *sw_alloc(size_t count, size_t size)
{
    size_t bytes;
    void *block = NULL;
    if (!sw_mul(count, size, &bytes))
        return NULL;
    /* Not rounded up: sanitizers shall see what lies behind. */
    if (posix_memalign(&block, bytes < LARGE_PAGE ? SW_ALIGNMENT : LARGE_PAGE, bytes == 0 ? 1 : bytes) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (bytes >= LARGE_PAGE)
        (void)madvise(block, bytes / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE); /* advice: may be refused */
#endif
    return block;
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
