/* SPDX-License-Identifier: MIT */
/* .npy files: the bytes that numpy.save writes, and what a reader must take and refuse. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "npy.h"
#include "place.h"

/* Headers as numpy 1.24 and 2.x write them, up to the padding, which is spaces and a line feed to a multiple of 64. */
static void writes_as_numpy_does(void **state)
{
    static const struct {
        struct npy_shape shape;
        const char *header;
        size_t size;
    } cases[] = {
        {{4, {1, 2, 3, 5}}, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3, 5), }", 128},
        {{3, {2, 3, 5}}, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 5), }", 128},
        {{1, {1}}, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 128},
        {{1, {12345}}, "{'descr': '<f4', 'fortran_order': False, 'shape': (12345,), }", 128},
        {{0, {0}}, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 128},
        {{8, {1, 1, 1, 1, 1, 1, 1, 11}},
         "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 11), }",
         128},
        {{8, {1, 1, 1, 1, 1, 1, 1, 1111111}},
         "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1111111), }",
         128},
    };
    static float values[1111111];
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        values[i] = (float)i * 0.25f - 7;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = place_path("array.npy");
        struct failure failure;
        size_t count;
        size_t wanted = 1;
        for (int d = 0; d < cases[i].shape.dimensions; d++)
            wanted *= (size_t)cases[i].shape.size[d];
        FILE *stream = fopen(path, "wb");
        assert_non_null(stream);
        assert_true(npy_write(stream, path, &cases[i].shape, values, &failure));
        assert_int_equal(fclose(stream), 0);
        char *bytes = place_read(path, &count);
        assert_memory_equal(bytes, "\x93NUMPY\1\0", 8);
        const size_t length = (size_t)(uint8_t)bytes[8] | (size_t)(uint8_t)bytes[9] << 8;
        assert_int_equal(10 + length, cases[i].size);
        const size_t text = strlen(cases[i].header);
        assert_memory_equal(bytes + 10, cases[i].header, text);
        for (size_t at = 10 + text; at < 10 + length - 1; at++)
            assert_int_equal(bytes[at], ' ');
        assert_int_equal(bytes[10 + length - 1], '\n');
        assert_int_equal(count, 10 + length + 4 * wanted);
        assert_memory_equal(bytes + 10 + length, values, 4 * wanted);
        free(bytes);
    }
}

static void put_float64(uint8_t *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(bits >> (8 * i));
}

/* A file of the given version, header and data. */
static size_t make_file(uint8_t *to, int version, const char *header, const double *values, size_t count, bool wide)
{
    const size_t length = strlen(header);
    size_t at = 6;
    memcpy(to, "\x93NUMPY", 6);
    to[at++] = (uint8_t)version;
    to[at++] = 0;
    for (int i = 0; i < (version == 1 ? 2 : 4); i++)
        to[at++] = (uint8_t)(length >> (8 * i));
    memcpy(to + at, header, length);
    at += length;
    for (size_t i = 0; i < count; i++) {
        const float narrow = (float)values[i];
        if (wide)
            put_float64(to + at, values[i]);
        else
            memcpy(to + at, &narrow, sizeof narrow);
        at += wide ? 8 : 4;
    }
    return at;
}

static void reads_what_others_write(void **state)
{
    static const struct {
        int version;
        const char *header;
        bool wide;
        int dimensions;
    } cases[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", false, 2},
        {2, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }   \n", true, 2},
        {3, "{\"shape\":(6,),\"fortran_order\":False,\"descr\":\"<f8\"}", true, 1},
        {1, "{'shape': (1L, 2L, 3L), 'descr': '<f4', 'fortran_order': False}", false, 3},
        {1, "{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 3 , 2 ) , } ", false, 2},
    };
    static const double values[6] = {0, -1.5, 1e-30, 3.25, 65536, -0.0009765625};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t file[512];
        struct npy_array array;
        struct failure failure;
        place_write("other.npy", file, make_file(file, cases[i].version, cases[i].header, values, 6, cases[i].wide));
        if (!npy_read(place_path("other.npy"), &array, &failure))
            fail_msg("%s: %s", cases[i].header, failure.text);
        assert_int_equal(array.shape.dimensions, cases[i].dimensions);
        assert_int_equal(array.count, 6);
        for (int v = 0; v < 6; v++)
            assert_true(array.values[v] == (cases[i].wide ? values[v] : (double)(float)values[v]));
        npy_destroy(&array);
    }
}

static void assert_refused(const void *bytes, size_t count, const char *with)
{
    struct npy_array array;
    struct failure failure = {""};
    const char *path = place_path("bad.npy");
    place_write("bad.npy", bytes, count);
    if (npy_read(path, &array, &failure))
        fail_msg("read although: %s", with);
    assert_null(array.values);
    if (strstr(failure.text, path) == NULL || strstr(failure.text, with) == NULL)
        fail_msg("'%s' should name the file and say '%s'", failure.text, with);
}

static void refuses_bad_headers(void **state)
{
    static const struct {
        const char *header;
        const char *with;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", "Fortran order"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", "holds '>f4'"},
        {"{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }", "holds '<i8'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }", "broken .npy header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }", "broken .npy header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3.5), }", "broken .npy header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 6, }", "broken .npy header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", "broken .npy header"},
        {"{'descr': '<f4', 'fortran_order': False, }", "broken .npy header"},
        {"{'descr': '<f4', 'fortran_order': None, 'shape': (2, 3), }", "broken .npy header"},
        {"{'descr': '<f4, 'fortran_order': False, 'shape': (2, 3), }", "broken .npy header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}", "broken .npy header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 6), }", "broken .npy header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "broken .npy header"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }", "more values than"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,), }", "more values than"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }", "truncated"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }", "truncated"},
        {"", "broken .npy header"},
    };
    static const double values[6] = {0};
    uint8_t file[512];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(file, make_file(file, 1, cases[i].header, values, 6, false), cases[i].with);
    const size_t count = make_file(file, 4, cases[0].header, values, 6, false);
    assert_refused(file, count, "version 4");
    assert_refused("no array at all", 15, "no .npy file");
    assert_refused("", 0, "no .npy file");
    /* A header that claims four gigabytes. */
    memcpy(file, "\x93NUMPY\2\0\xff\xff\xff\xff{", 13);
    assert_refused(file, 13, "broken .npy header");
}

static void refuses_every_truncation(void **state)
{
    static const double values[6] = {0};
    uint8_t file[512];
    const size_t count =
        make_file(file, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", values, 6, false);
    (void)state;
    for (size_t kept = 0; kept < count; kept++)
        assert_refused(file, kept, "");
}

static void names_a_missing_file(void **state)
{
    struct npy_array array;
    struct failure failure;
    (void)state;
    assert_false(npy_read(place_path("missing.npy"), &array, &failure));
    assert_non_null(strstr(failure.text, "missing.npy: cannot be opened: no such file"));
}

static void says_that_the_disk_is_full(void **state)
{
    static const float values[100000];
    const struct npy_shape shape = {1, {100000}};
    struct failure failure;
    FILE *stream = fopen("/dev/full", "wb");
    (void)state;
    if (stream == NULL)
        skip();
    assert_false(npy_write(stream, "out/c2.npy", &shape, values, &failure));
    assert_non_null(strstr(failure.text, "out/c2.npy: cannot be written: the disk is full"));
    fclose(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_as_numpy_does), cmocka_unit_test(reads_what_others_write),
        cmocka_unit_test(refuses_bad_headers),  cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(names_a_missing_file), cmocka_unit_test(says_that_the_disk_is_full),
    };
    return cmocka_run_group_tests_name("cli-npy", tests, place_set_up, place_tear_down);
}
