/* SPDX-License-Identifier: MIT */
#include "memory_counted.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/checked.h"
#include "../../lib/base/memory.h"

/* In front of every block, so that freeing knows its size. */
struct header {
    size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t live_blocks, live_bytes, allocations, peak_bytes;
static long fail_after = -1;

void *sw_alloc(size_t count, size_t size)
{
    size_t bytes, total;
    if (!sw_mul(count, size, &bytes) || !sw_add(bytes, SW_ALIGNMENT, &total) ||
        !sw_round_up(total, SW_ALIGNMENT, &total))
        return NULL;
    pthread_mutex_lock(&lock);
    allocations++;
    const int fail = fail_after == 0;
    if (fail_after >= 0)
        fail_after--;
    pthread_mutex_unlock(&lock);
    char *block = fail ? NULL : aligned_alloc(SW_ALIGNMENT, total);
    if (block == NULL)
        return NULL;
    ((struct header *)block)->bytes = bytes;
    pthread_mutex_lock(&lock);
    live_blocks++;
    live_bytes += bytes;
    if (live_bytes > peak_bytes)
        peak_bytes = live_bytes;
    pthread_mutex_unlock(&lock);
    /* Whatever reads memory that it never wrote shall notice. */
    memset(block + SW_ALIGNMENT, 0xff, total - SW_ALIGNMENT);
    return block + SW_ALIGNMENT;
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
    if (block == NULL)
        return;
    char *start = (char *)block - SW_ALIGNMENT;
    pthread_mutex_lock(&lock);
    live_blocks--;
    live_bytes -= ((struct header *)start)->bytes;
    pthread_mutex_unlock(&lock);
    free(start);
}

#define READ_LOCKED(name, variable)      \
    size_t name(void)                    \
    {                                    \
        pthread_mutex_lock(&lock);       \
        const size_t value = variable;   \
        pthread_mutex_unlock(&lock);     \
        return value;                    \
    }
READ_LOCKED(memory_live_blocks, live_blocks)
READ_LOCKED(memory_live_bytes, live_bytes)
READ_LOCKED(memory_allocations, allocations)
READ_LOCKED(memory_peak_bytes, peak_bytes)

void memory_reset_peak(void)
{
    pthread_mutex_lock(&lock);
    peak_bytes = live_bytes;
    pthread_mutex_unlock(&lock);
}

void memory_fail_after(long count)
{
    pthread_mutex_lock(&lock);
    fail_after = count;
    pthread_mutex_unlock(&lock);
}
