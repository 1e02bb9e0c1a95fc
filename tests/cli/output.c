/* SPDX-License-Identifier: MIT */
/* Where results go: all files or none, directories made and taken away again, names that do not clash. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inputs.h"
#include "output.h"
#include "place.h"
#include "progress.h"

static void write_text(struct output *output, const char *name, const char *text)
{
    struct failure failure;
    FILE *stream = output_begin(output, name, &failure);
    if (stream == NULL)
        fail_msg("%s", failure.text);
    fputs(text, stream);
    assert_true(output_end(output, &failure));
}

static void assert_content(const char *path, const char *text)
{
    size_t count;
    char *bytes = place_read(path, &count);
    assert_non_null(bytes);
    assert_string_equal(bytes, text);
    free(bytes);
}

static void files_appear_together(void **state)
{
    struct output output;
    struct failure failure;
    struct stat status;
    (void)state;
    assert_true(output_open(&output, place_path("new/deep/er"), &failure));
    write_text(&output, "c2.npy", "two");
    write_text(&output, "c3.npy", "three");
    assert_int_equal(access(place_path("new/deep/er/c2.npy"), F_OK), -1);
    assert_int_equal(place_count(place_path("new/deep/er")), 2);
    assert_true(output_commit(&output, &failure));
    output_close(&output);
    assert_content(place_path("new/deep/er/c2.npy"), "two");
    assert_content(place_path("new/deep/er/c3.npy"), "three");
    assert_int_equal(place_count(place_path("new/deep/er")), 2);
    /* As the user's umask says, not as a private temporary file. */
    const mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(stat(place_path("new/deep/er/c2.npy"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0666 & ~mask);
}

static void older_files_are_replaced(void **state)
{
    struct output output;
    struct failure failure;
    (void)state;
    assert_true(output_open(&output, place_path("old/"), &failure));
    write_text(&output, "a", "first");
    assert_true(output_commit(&output, &failure));
    output_close(&output);
    assert_true(output_open(&output, place_path("old"), &failure));
    write_text(&output, "a", "second");
    assert_content(place_path("old/a"), "first");
    assert_true(output_commit(&output, &failure));
    output_close(&output);
    assert_content(place_path("old/a"), "second");
}

static void nothing_is_left_of_what_was_given_up(void **state)
{
    struct output output;
    struct failure failure;
    (void)state;
    assert_int_equal(mkdir(place_path("here"), 0777), 0);
    assert_true(output_open(&output, place_path("here/x//y"), &failure));
    write_text(&output, "c2.npy", "whole");
    assert_non_null(output_begin(&output, "c3.npy", &failure));
    output_close(&output);
    assert_int_equal(place_count(place_path("here")), 0);
    output_close(&output);

    /* A directory that holds something else stays. */
    assert_true(output_open(&output, place_path("here/z"), &failure));
    place_write_text("here/z/other", "kept");
    output_close(&output);
    assert_int_equal(place_count(place_path("here/z")), 1);
}

static void a_name_in_the_way_is_said(void **state)
{
    struct output output;
    struct failure failure;
    (void)state;
    place_write_text("file", "x");
    assert_false(output_open(&output, place_path("file"), &failure));
    assert_non_null(strstr(failure.text, "file: cannot be made a directory"));
    assert_false(output_open(&output, place_path("file/below"), &failure));
    assert_non_null(strstr(failure.text, "cannot be made a directory"));
    assert_false(output_open(&output, "/proc/swin-dump", &failure));
    assert_non_null(strstr(failure.text, "/proc/swin-dump: cannot be made a directory"));

    /* A directory where a file should go: the others must not appear half. */
    assert_int_equal(mkdir(place_path("taken"), 0777), 0);
    assert_int_equal(mkdir(place_path("taken/c2.npy"), 0777), 0);
    assert_true(output_open(&output, place_path("taken"), &failure));
    write_text(&output, "c2.npy", "x");
    assert_false(output_commit(&output, &failure));
    assert_non_null(strstr(failure.text, "taken/c2.npy: cannot be written: is a directory"));
    output_close(&output);
    assert_int_equal(place_count(place_path("taken")), 1);
}

static void input_names_do_not_clash(void **state)
{
    struct inputs inputs;
    struct failure failure;
    static const char *const wanted[] = {"a", "b", "x.y", "a-2", "a-2-2", "a-3", "a.jpg", "image", "?", "?", "missing",
                                         "image-2", "image-3", "image-4", "..a"};
    (void)state;
    assert_int_equal(mkdir(place_path("set"), 0777), 0);
    assert_int_equal(mkdir(place_path("none"), 0777), 0);
    place_write_text("set/b.png", "");
    place_write_text("set/a.PNG", "");
    place_write_text("set/x.y.png", "");
    place_write_text("set/notes.txt", "");
    place_write_text("set/.hidden.png", "");
    char set[256];
    char none[256];
    snprintf(set, sizeof set, "%s/", place_path("set"));
    snprintf(none, sizeof none, "%s", place_path("none"));
    char *paths[] = {set,
                     (char *)"p/a.png",
                     (char *)"q/a-2.png",
                     (char *)"q/a.png",
                     (char *)"a.jpg",
                     (char *)"r/.png",
                     none,
                     (char *)"/proc/self/fdinfo/../task",
                     (char *)"missing.png",
                     (char *)"t/..png",
                     (char *)"t/...png",
                     (char *)"u/...png",
                     (char *)"..a.png"};
    assert_true(inputs_collect(&inputs, paths, 13, &failure));
    assert_false(inputs.single);
    assert_int_equal(inputs.count, 15);
    for (int i = 0; i < inputs.count; i++) {
        if (*wanted[i] != '?')
            assert_string_equal(inputs.items[i].name, wanted[i]);
        assert_true((inputs.items[i].problem != NULL) == (*wanted[i] == '?'));
    }
    assert_non_null(strstr(inputs.items[0].path, "set/a.PNG"));
    assert_non_null(strstr(inputs.items[8].problem, "there is no .png file in this directory"));
    inputs_destroy(&inputs);

    assert_true(inputs_collect(&inputs, paths + 1, 1, &failure));
    assert_true(inputs.single);
    inputs_destroy(&inputs);
    assert_true(inputs_collect(&inputs, paths, 1, &failure));
    assert_false(inputs.single);
    inputs_destroy(&inputs);
}

static void bars_tell_rate_and_time_left(void **state)
{
    char line[PROGRESS_LINE];
    (void)state;
    progress_bar(line, 200, 30, 120, 12, "c.png");
    assert_string_equal(line, "[######------------------] 30/120  2.5 images/s  0:36 left  c.png");
    progress_bar(line, 200, 2, 20000, 1.9, "c.png");
    assert_non_null(strstr(line, "2/20000"));
    assert_non_null(strstr(line, "5:16:38 left"));
    progress_bar(line, 200, 0, 4, 0, "c.png");
    assert_non_null(strstr(line, "[------------------------] 0/4"));
    progress_bar(line, 200, 4, 4, 2, "c.png");
    assert_non_null(strstr(line, "[########################] 4/4  2 images/s  0:00 left"));
    progress_bar(line, 40, 1, 2, 1, "a name that is longer than the terminal has columns.png");
    assert_int_equal(strlen(line), 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_appear_together),
        cmocka_unit_test(older_files_are_replaced),
        cmocka_unit_test(nothing_is_left_of_what_was_given_up),
        cmocka_unit_test(a_name_in_the_way_is_said),
        cmocka_unit_test(input_names_do_not_clash),
        cmocka_unit_test(bars_tell_rate_and_time_left),
    };
    return cmocka_run_group_tests_name("cli-output", tests, place_set_up, place_tear_down);
}
