/* SPDX-License-Identifier: MIT */
/* The progress bar, on a terminal. Where none can be had, e.g. without /dev/pts, the test is skipped. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "place.h"
#include "program.h"
#include "specimen.h"

enum { SKIPPED = 77 };

static void progress_on_a_terminal(void **state)
{
    const struct circumstances terminal = {.terminal = true};
    struct program program;
    (void)state;
    specimen_write_set();
    program = program_run(&terminal, "@ %s -o %s --json --levels 0", place_path("set"), place_path("bar"));
    assert_int_equal(program.code, 1);
    assert_non_null(strstr(program.err, "\r["));
    assert_non_null(strstr(program.err, "] 0/4  "));
    assert_non_null(strstr(program.err, "] 4/4  "));
    assert_non_null(strstr(program.err, " images/s  "));
    assert_non_null(strstr(program.err, " left  "));
    assert_non_null(strstr(program.err, "set/c.png: "));
    assert_null(strstr(program.out, "/4] "));
    program_free(&program);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(progress_on_a_terminal)};
    if (argc != 3) {
        fprintf(stderr, "usage: %s SWIN-DUMP CHECKPOINT\n", argv[0]);
        return 2;
    }
    if (!program_has_terminals()) {
        puts("no pseudo-terminal can be had here");
        return SKIPPED;
    }
    program_set_paths(argv[1], argv[2]);
    return cmocka_run_group_tests_name("cli-driver-terminal", tests, place_set_up, place_tear_down);
}
