/* SPDX-License-Identifier: MIT */
#include "memory_counted.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/checked.h"
#include "../../lib/base/memory.h"

/* In front of every block, so that freeing knows its size. */
struct header {
    size_t bytes;
};

/* Relaxed, and no mutex: whatever orders threads here hides from ThreadSanitizer what the library fails to order. */
static atomic_size_t live_blocks, live_bytes, allocations, peak_bytes;
static atomic_long fail_after = -1;
static atomic_bool failed;

static size_t add(atomic_size_t *counter, size_t value)
{
    return atomic_fetch_add_explicit(counter, value, memory_order_relaxed) + value;
}

static void subtract(atomic_size_t *counter, size_t value)
{
    atomic_fetch_sub_explicit(counter, value, memory_order_relaxed);
}

static size_t value_of(const atomic_size_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void raise_peak(size_t bytes)
{
    size_t peak = value_of(&peak_bytes);
    while (peak < bytes && !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, bytes, memory_order_relaxed,
                                                                  memory_order_relaxed))
        continue;
}

void *sw_alloc(size_t count, size_t size)
{
    size_t bytes, total;
    if (!sw_mul(count, size, &bytes) || !sw_add(bytes, SW_ALIGNMENT, &total))
        return NULL;
    add(&allocations, 1);
    const bool fails = atomic_fetch_sub_explicit(&fail_after, 1, memory_order_relaxed) == 0;
    if (fails)
        atomic_store_explicit(&failed, true, memory_order_relaxed);
    /* Not a byte more than asked for: sanitizers and valgrind shall see what lies behind. */
    void *memory = NULL;
    if (fails || posix_memalign(&memory, SW_ALIGNMENT, total) != 0)
        return NULL;
    char *block = memory;
    ((struct header *)block)->bytes = bytes;
    add(&live_blocks, 1);
    raise_peak(add(&live_bytes, bytes));
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
    subtract(&live_blocks, 1);
    subtract(&live_bytes, ((struct header *)start)->bytes);
    free(start);
}

size_t memory_live_blocks(void)
{
    return value_of(&live_blocks);
}

size_t memory_live_bytes(void)
{
    return value_of(&live_bytes);
}

size_t memory_allocations(void)
{
    return value_of(&allocations);
}

size_t memory_peak_bytes(void)
{
    return value_of(&peak_bytes);
}

void memory_reset_peak(void)
{
    atomic_store_explicit(&peak_bytes, value_of(&live_bytes), memory_order_relaxed);
}

void memory_fail_after(long count)
{
    atomic_store_explicit(&failed, false, memory_order_relaxed);
    atomic_store_explicit(&fail_after, count, memory_order_relaxed);
}

bool memory_fail_no_more(void)
{
    atomic_store_explicit(&fail_after, -1, memory_order_relaxed);
    return atomic_load_explicit(&failed, memory_order_relaxed);
}
