/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/status.h"
#include "memory_counted.h"

static void the_first_failure_wins(void **state)
{
    (void)state;
    swin_error err;
    memset(&err, 0xff, sizeof err);
    sw_error_reset(&err);
    assert_int_equal(err.status, SWIN_OK);
    assert_string_equal(err.message, "");
    assert_int_equal(sw_fail(&err, SWIN_ERR_IO, "file %d", 7), SWIN_ERR_IO);
    assert_int_equal(sw_fail(&err, SWIN_ERR_FORMAT, "later"), SWIN_ERR_FORMAT);
    assert_int_equal(err.status, SWIN_ERR_IO);
    assert_string_equal(err.message, "file 7");
    assert_int_equal(sw_fail_backend(&err, 3, "what"), SWIN_ERR_BACKEND);
    assert_int_equal(err.backend, 0);
    assert_int_equal(sw_fail(NULL, SWIN_ERR_LIMIT, "nobody listens"), SWIN_ERR_LIMIT);
    sw_error_reset(NULL);
}

static void oneDNNs_status_is_kept(void **state)
{
    (void)state;
    swin_error err;
    sw_error_reset(&err);
    sw_fail_backend(&err, 3, "a product");
    assert_int_equal(err.status, SWIN_ERR_BACKEND);
    assert_int_equal(err.backend, 3);
    assert_non_null(strstr(err.message, "a product"));
}

static void messages_are_one_printable_line(void **state)
{
    (void)state;
    char name[1000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memcpy(name, "a\nb\x1b[31m\xff\xc3\xa9\t", 12);
    swin_error err;
    sw_error_reset(&err);
    sw_fail(&err, SWIN_ERR_MISMATCH, "%s", name);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    for (const char *p = err.message; *p != '\0'; p++)
        assert_in_range(*p, 0x20, 0x7e);
    assert_memory_equal(err.message, "a?b?[31m????x", 12);
}

static void sizes_do_not_overflow(void **state)
{
    (void)state;
    size_t n;
    assert_true(sw_add(1, SIZE_MAX - 1, &n) && n == SIZE_MAX);
    assert_false(sw_add(1, SIZE_MAX, &n));
    assert_true(sw_mul(SIZE_MAX, 1, &n) && n == SIZE_MAX);
    assert_false(sw_mul(SIZE_MAX / 2 + 1, 2, &n));
    assert_int_equal(sw_ceil_div(0, 4), 0);
    assert_int_equal(sw_ceil_div(1, 4), 1);
    assert_int_equal(sw_ceil_div(INT32_MAX, 4), INT32_MAX / 4 + 1);
}

static void blocks_are_aligned_and_refused(void **state)
{
    (void)state;
    assert_null(sw_alloc(SIZE_MAX / 2, 3));
    assert_null(sw_alloc(SIZE_MAX - 8, 1));
    void *empty = sw_alloc(0, 8);
    char *zeroed = sw_alloc_zeroed(13, 7), *text = sw_copy_string("abcdef", 3);
    assert_non_null(empty);
    assert_int_equal((uintptr_t)empty % SW_ALIGNMENT, 0);
    assert_int_equal((uintptr_t)zeroed % SW_ALIGNMENT, 0);
    for (int i = 0; i < 13 * 7; i++)
        assert_int_equal(zeroed[i], 0);
    assert_string_equal(text, "abc");
    sw_free(empty);
    sw_free(zeroed);
    sw_free(text);
    sw_free(NULL);
    assert_int_equal(memory_live_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_failure_wins),        cmocka_unit_test(oneDNNs_status_is_kept),
        cmocka_unit_test(messages_are_one_printable_line), cmocka_unit_test(sizes_do_not_overflow),
        cmocka_unit_test(blocks_are_aligned_and_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
