/* SPDX-License-Identifier: MIT */
#include "guarded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCKS = 32 };

static struct block {
    unsigned char *map, *start;
    size_t map_bytes, bytes;
} blocks[BLOCKS];

static enum guarded_side current;

void guarded_use_side(enum guarded_side side)
{
    current = side;
}

void *guarded_alloc(size_t count, size_t size)
{
    struct block *b = blocks;
    while (b->map != NULL) {
        b++;
        assert_true(b < blocks + BLOCKS);
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    b->bytes = count * size;
    const size_t inner = (b->bytes + page - 1) / page * page + page;
    b->map_bytes = inner + 2 * page;
    b->map = mmap(NULL, b->map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(b->map, MAP_FAILED);
    memset(b->map, GUARDED_FILL, b->map_bytes);
    assert_int_equal(mprotect(b->map, page, PROT_NONE), 0);
    assert_int_equal(mprotect(b->map + page + inner, page, PROT_NONE), 0);
    b->start = current == GUARDED_START ? b->map + page : b->map + page + inner - b->bytes;
    return b->start;
}

static struct block *find(const void *start)
{
    for (struct block *b = blocks; b < blocks + BLOCKS; b++) {
        if (b->map != NULL && b->start == start)
            return b;
    }
    fail_msg("not a guarded block");
    return NULL;
}

void *guarded_seal(void *start)
{
    const struct block *b = find(start);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(mprotect(b->map + page, b->map_bytes - 2 * page, PROT_READ), 0);
    return start;
}

static void check_pattern(const unsigned char *from, const unsigned char *to)
{
    for (const unsigned char *p = from; p < to; p++) {
        if (*p != GUARDED_FILL)
            fail_msg("written to outside of a block, %td bytes from its surroundings' start", p - from);
    }
}

void guarded_free(void *start)
{
    struct block *b = find(start);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    check_pattern(b->map + page, b->start);
    check_pattern(b->start + b->bytes, b->map + b->map_bytes - page);
    assert_int_equal(munmap(b->map, b->map_bytes), 0);
    memset(b, 0, sizeof *b);
}

void guarded_free_all(void)
{
    for (struct block *b = blocks; b < blocks + BLOCKS; b++) {
        if (b->map != NULL)
            guarded_free(b->start);
    }
}
