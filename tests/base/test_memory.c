/* SPDX-License-Identifier: MIT */
/* The allocator that the library itself has: other tests link one that counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"

static void blocks_are_aligned_and_usable(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4097, (2 << 20) - 64, (2 << 20) - 63, (2 << 20) + 1, 9 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *block = sw_alloc(sizes[i], 1), *zeros = sw_alloc_zeroed(1, sizes[i]);
        assert_non_null(block);
        assert_non_null(zeros);
        assert_int_equal((uintptr_t)block % SW_ALIGNMENT, 0);
        assert_int_equal((uintptr_t)zeros % SW_ALIGNMENT, 0);
        memset(block, 0, sizes[i]);
        assert_memory_equal(block, zeros, sizes[i]);
        sw_free(block);
        sw_free(zeros);
    }
    sw_free(NULL);
}

static void what_cannot_be_had_is_refused(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {
        {SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX / 2 + 1, 2}, {SIZE_MAX, 1}, {1, SIZE_MAX - 62}, {SIZE_MAX / 4, 2},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_null(sw_alloc(sizes[i][0], sizes[i][1]));
        assert_null(sw_alloc_zeroed(sizes[i][0], sizes[i][1]));
    }
    assert_null(sw_copy_string("", SIZE_MAX / 2));
}

static void strings_are_copied_up_to_a_length(void **state)
{
    (void)state;
    char *copy = sw_copy_string("windows", 3);
    assert_non_null(copy);
    assert_string_equal(copy, "win");
    sw_free(copy);
    copy = sw_copy_string("", 0);
    assert_non_null(copy);
    assert_string_equal(copy, "");
    sw_free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_aligned_and_usable),
        cmocka_unit_test(what_cannot_be_had_is_refused),
        cmocka_unit_test(strings_are_copied_up_to_a_length),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
