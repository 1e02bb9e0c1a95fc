/* SPDX-License-Identifier: MIT */
/* Comparing with references and summing up timings. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "npy.h"
#include "place.h"
#include "verify.h"

enum { COUNT = 1000 };

static void fill(float *values, double *reference)
{
    uint32_t random = 3;
    for (int i = 0; i < COUNT; i++) {
        random = random * 1664525 + 1013904223;
        values[i] = (float)((int32_t)random / 2147483648.0);
        reference[i] = (double)values[i];
    }
}

static double norm(const double *values)
{
    double sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += values[i] * values[i];
    return sqrt(sum);
}

static void measures(void **state)
{
    float values[COUNT];
    double reference[COUNT];
    struct comparison result;
    (void)state;
    fill(values, reference);
    result = verify_compare(values, reference, COUNT, false);
    assert_true(result.within && result.max_difference == 0 && result.relative_l2 == 0);
    assert_true(fabs(result.cosine - 1) < 1e-12);

    reference[17] += 0.5;
    result = verify_compare(values, reference, COUNT, false);
    assert_true(fabs(result.max_difference - 0.5) < 1e-12);
    assert_true(fabs(result.relative_l2 - 0.5 / norm(reference)) < 1e-9);
    assert_false(result.within);

    for (int i = 0; i < COUNT; i++)
        reference[i] = -(double)values[i];
    result = verify_compare(values, reference, COUNT, true);
    assert_true(fabs(result.cosine + 1) < 1e-12 && fabs(result.relative_l2 - 2) < 1e-12 && !result.within);
}

/* Just inside and just outside of each bound. */
static void tolerances(void **state)
{
    float values[COUNT];
    double reference[COUNT];
    (void)state;
    for (int outside = 0; outside < 2; outside++) {
        const double scale = outside ? 1.02 : 0.98;
        fill(values, reference);
        const double length = norm(reference);
        /* Spread over all values: relative L2 decides. */
        for (int i = 0; i < COUNT; i++)
            reference[i] *= 1 + 1e-5 * scale;
        assert_true(verify_compare(values, reference, COUNT, false).within == !outside);
        for (int i = 0; i < COUNT; i++)
            reference[i] = (double)values[i] * (1 + 1.5e-2 * scale);
        /* error / reference is a little less than error / value */
        assert_true(verify_compare(values, reference, COUNT, true).within ==
                    (1.5e-2 * scale / (1 + 1.5e-2 * scale) <= 1.5e-2));
        /* In one value of a long vector: the largest difference decides. */
        fill(values, reference);
        double largest = 0;
        for (int i = 0; i < COUNT; i++)
            largest = fmax(largest, fabs(reference[i]));
        reference[5] = largest;
        values[5] = (float)(largest * (1 - 1e-4 * scale));
        const struct comparison one = verify_compare(values, reference, COUNT, false);
        assert_true(one.relative_l2 <= 1e-5 || largest * 1e-4 / length > 1e-5);
        assert_true(fabs(one.max_difference / one.max_reference - 1e-4 * scale) < 1e-6);
        if (outside)
            assert_false(one.within);
    }
}

static void nothing_finite_is_within(void **state)
{
    float values[2] = {1, NAN};
    double reference[2] = {1, NAN};
    (void)state;
    assert_false(verify_compare(values, reference, 2, false).within);
    assert_false(verify_compare(values, reference, 2, true).within);
    values[1] = INFINITY;
    reference[1] = 2;
    assert_false(verify_compare(values, reference, 2, false).within);
    values[1] = 0;
    values[0] = 0;
    reference[0] = reference[1] = 0;
    assert_true(verify_compare(values, reference, 2, false).within);
    assert_true(verify_compare(values, reference, 2, true).within);
    values[0] = 1e-6f;
    assert_false(verify_compare(values, reference, 2, false).within);
}

static void write_reference(const char *name, const struct npy_shape *shape, const float *values)
{
    struct failure failure;
    FILE *stream = fopen(place_path(name), "wb");
    assert_non_null(stream);
    assert_true(npy_write(stream, name, shape, values, &failure));
    assert_int_equal(fclose(stream), 0);
}

static void files_are_found_by_level(void **state)
{
    float values[24];
    struct image_run run = {.path = "photo.png", .level_count = 1};
    struct verification verification;
    struct failure failure;
    (void)state;
    for (int i = 0; i < 24; i++)
        values[i] = (float)i;
    run.levels[0] = (struct feature_map){.info = {2, 16, 2, 3, 4, 0}, .data = values};
    assert_false(verify_run(&verification, &run, place_path(""), &failure));
    assert_non_null(strstr(failure.text, "/c4.npy: cannot be opened"));

    write_reference("c4.npy", &(struct npy_shape){4, {1, 2, 3, 4}}, values);
    assert_true(verify_run(&verification, &run, place_path(""), &failure));
    assert_int_equal(verification.count, 1);
    assert_int_equal(verification.levels[0].level, 2);
    assert_true(verify_judge(&verification, &run, place_path(""), &failure));
    write_reference("c4.npy", &(struct npy_shape){3, {2, 3, 4}}, values);
    assert_true(verify_run(&verification, &run, place_path(""), &failure));

    write_reference("c4.npy", &(struct npy_shape){4, {1, 2, 4, 3}}, values);
    assert_false(verify_run(&verification, &run, place_path(""), &failure));
    assert_non_null(strstr(failure.text, "has shape (1, 2, 4, 3), this image gives (1, 2, 3, 4)"));

    run.levels[0].nhwc = true;
    write_reference("c4.npy", &(struct npy_shape){4, {1, 3, 4, 2}}, values);
    assert_true(verify_run(&verification, &run, place_path(""), &failure));

    values[3] += 1;
    assert_true(verify_run(&verification, &run, place_path(""), &failure));
    assert_false(verify_judge(&verification, &run, "ref", &failure));
    assert_non_null(strstr(failure.text, "photo.png: c4 beyond the f32 tolerance"));
}

static void timings(void **state)
{
    double odd[5] = {5, 1, 4, 2, 3};
    double even[4] = {4, 1, 3, 2};
    double one[1] = {7};
    struct bench_part part = bench_summarise(odd, 5);
    (void)state;
    assert_true(part.least == 1 && part.median == 3);
    part = bench_summarise(even, 4);
    assert_true(part.least == 1 && part.median == 2.5);
    part = bench_summarise(one, 1);
    assert_true(part.least == 7 && part.median == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measures),
        cmocka_unit_test(tolerances),
        cmocka_unit_test(nothing_finite_is_within),
        cmocka_unit_test(files_are_found_by_level),
        cmocka_unit_test(timings),
    };
    return cmocka_run_group_tests_name("cli-verify", tests, place_set_up, place_tear_down);
}
