/* SPDX-License-Identifier: MIT */
/*
 * What surrounds the products: how many there are, refusals, lack of memory, threads.
 */
#include "matrix.h"

#include <pthread.h>
#include <stdlib.h>

#include "backend_refusing.h"
#include "memory_counted.h"

#define SHAPE(...) ((sw_linear_shape){__VA_ARGS__})

static void equal_shapes_are_one_product(void **state)
{
    (void)state;
    static const struct {
        sw_linear_shape shape;
        int32_t count; /* after it is asked for */
    } steps[] = {
        {{16, 24, 32, SW_F32, SW_F32, true, false}, 1},   {{16, 24, 32, SW_F32, SW_F32, true, false}, 1},
        {{17, 24, 32, SW_F32, SW_F32, true, false}, 2},   {{16, 25, 32, SW_F32, SW_F32, true, false}, 3},
        {{16, 24, 33, SW_F32, SW_F32, true, false}, 4},   {{16, 24, 32, SW_BF16, SW_F32, true, false}, 5},
        {{16, 24, 32, SW_BF16, SW_BF16, true, false}, 6}, {{16, 24, 32, SW_F32, SW_F32, false, false}, 7},
        {{16, 24, 32, SW_F32, SW_F32, false, true}, 8},   {{16, 24, 32, SW_F32, SW_F32, false, true}, 8},
        {{16, 24, 32, SW_F32, SW_F32, true, false}, 8},
    };
    swin_error err;
    sw_dnn *dnn;
    must(sw_dnn_create(&dnn, &err), &err);
    assert_int_equal(sw_dnn_product_count(dnn), 0);
    const sw_product *first = NULL, *product;
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        must(sw_dnn_linear(dnn, &steps[i].shape, NULL, &product, &err), &err);
        assert_int_equal(sw_dnn_product_count(dnn), steps[i].count);
        assert_true(strlen(sw_product_name(product)) > 0);
        if (i == 0)
            first = product;
        assert_int_equal(product == first, i <= 1 || i == COUNT_OF(steps) - 1);
    }

    sw_attention_shape attention = {.windows = 1, .heads = 2, .queries = 9, .tokens = 9, .head_channels = 8};
    for (int32_t i = 0; i < 2; i++) {
        must(sw_dnn_scores(dnn, &attention, &product, &err), &err);
        must(sw_dnn_context(dnn, &attention, &product, &err), &err);
        assert_int_equal(sw_dnn_product_count(dnn), 10);
    }
    attention.split = true;
    must(sw_dnn_scores(dnn, &attention, &product, &err), &err);
    assert_int_equal(sw_dnn_product_count(dnn), 11);
    /* more than the list is first made for */
    for (int32_t m = 1; m <= 150; m++)
        must(sw_dnn_linear(dnn, &SHAPE(m, 8, 8, SW_F32, SW_F32, true, false), NULL, &product, &err), &err);
    assert_int_equal(sw_dnn_product_count(dnn), 161);
    must(sw_dnn_linear(dnn, &steps[0].shape, NULL, &product, &err), &err);
    assert_ptr_equal(product, first);
    sw_dnn_destroy(dnn);
    assert_int_equal(memory_live_blocks(), 0);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const struct {
        sw_linear_shape shape, like;
        const char *named; /* in the message */
    } cases[] = {
        /* weights of another shape */
        {{16, 24, 32, SW_F32, SW_F32, true, false},
         {16, 48, 32, SW_F32, SW_F32, true, false},
         "m 16, n 24, k 32, float32"},
        {{16, 24, 32, SW_F32, SW_F32, true, false},
         {16, 24, 64, SW_F32, SW_F32, true, false},
         "m 16, n 24, k 32, float32"},
        {{-1, 24, 32, SW_F32, SW_F32, true, false}, {0}, "m -1, n 24, k 32, float32"},
        {{16, -5, 32, SW_BF16, SW_F32, true, false}, {0}, "m 16, n -5, k 32, bf16"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        swin_error err;
        sw_error_reset(&err);
        sw_dnn *dnn;
        must(sw_dnn_create(&dnn, &err), &err);
        const sw_product *like = NULL, *product = NULL, *same;
        if (cases[i].like.m > 0) {
            must(sw_dnn_linear(dnn, &cases[i].like, NULL, &like, &err), &err);
            /* one of this shape with weights of its own exists: it is not the one asked for */
            must(sw_dnn_linear(dnn, &cases[i].shape, NULL, &same, &err), &err);
        }
        const int32_t before = sw_dnn_product_count(dnn);
        assert_int_equal(sw_dnn_linear(dnn, &cases[i].shape, like, &product, &err), SWIN_ERR_BACKEND);
        assert_int_equal(err.status, SWIN_ERR_BACKEND);
        assert_true(err.backend != 0 || strstr(err.message, "reference") != NULL);
        assert_non_null(strstr(err.message, cases[i].named));
        assert_null(product);
        assert_int_equal(sw_dnn_product_count(dnn), before);
        /* and what is possible still works */
        sw_error_reset(&err);
        must(sw_dnn_linear(dnn, &SHAPE(16, 24, 32, SW_F32, SW_F32, true, false), NULL, &product, &err), &err);
        sw_dnn_destroy(dnn);
    }
    assert_int_equal(memory_live_blocks(), 0);
}

static void nothing_to_destroy_is_fine(void **state)
{
    (void)state;
    sw_dnn_destroy(NULL);
    sw_weights_destroy(NULL);
    sw_dnn_thread_destroy(NULL);
}

static void reference_code_is_refused(void **state)
{
    (void)state;
    swin_error err;
    sw_error_reset(&err);
    sw_dnn *dnn;
    must(sw_dnn_create(&dnn, &err), &err);
    const sw_product *product = NULL;
    const sw_linear_shape linear = SHAPE(16, 24, 32, SW_BF16, SW_F32, true, false);
    const sw_attention_shape attention = {.windows = 1, .heads = 2, .queries = 9, .tokens = 9, .head_channels = 8};
    backend_claim_reference(true);
    assert_int_equal(sw_dnn_linear(dnn, &linear, NULL, &product, &err), SWIN_ERR_BACKEND);
    assert_string_equal(err.message,
                        "oneDNN has only a reference implementation (ref:any) for a linear product of m 16, "
                        "n 24, k 32, bf16");
    sw_error_reset(&err);
    assert_int_equal(sw_dnn_scores(dnn, &attention, &product, &err), SWIN_ERR_BACKEND);
    assert_string_equal(err.message,
                        "oneDNN has only a reference implementation (ref:any) for an attention product of 1 "
                        "windows, 2 heads, 9 x 9 tokens, float32");
    assert_null(product);
    assert_int_equal(sw_dnn_product_count(dnn), 0);
    backend_claim_reference(false);
    must(sw_dnn_scores(dnn, &attention, &product, &err), &err);
    sw_dnn_destroy(dnn);
    assert_int_equal(memory_live_blocks(), 0);
}

/* Everything that allocates, in order. */
static swin_status build(sw_dnn **dnn, sw_weights **weights, sw_dnn_thread **thread, swin_error *err)
{
    SW_TRY(sw_dnn_create(dnn, err));
    const sw_product *product;
    for (int32_t m = 1; m <= 70; m++) /* the list grows */
        SW_TRY(sw_dnn_linear(*dnn, &SHAPE(m, 8, 8, SW_F32, SW_F32, true, false), NULL, &product, err));
    const sw_attention_shape attention = {.windows = 1, .heads = 2, .queries = 9, .tokens = 9, .head_channels = 8};
    SW_TRY(sw_dnn_scores(*dnn, &attention, &product, err));
    SW_TRY(sw_dnn_context(*dnn, &attention, &product, err));
    static const float w[64];
    SW_TRY(sw_dnn_linear(*dnn, &SHAPE(1, 8, 8, SW_BF16, SW_BF16, true, false), NULL, &product, err));
    SW_TRY(sw_weights_create(*dnn, product, w, weights, err));
    SW_TRY(sw_dnn_thread_create(*dnn, thread, err));
    static const uint16_t a[8];
    static const float bias[8];
    uint16_t c[8];
    return sw_product_linear(product, *thread, a, *weights, bias, c);
}

/* Builds again and again, with one call more that succeeds each time, until all do; returns how often that was. */
static long fail_everywhere(void (*fail_after)(long), bool (*fail_no_more)(void), swin_status expected, int32_t backend)
{
    swin_status status = expected;
    long failing = 0;
    for (; status != SWIN_OK; failing++) {
        assert_true(failing < 2000);
        sw_dnn *dnn = NULL;
        sw_weights *weights = NULL;
        sw_dnn_thread *thread = NULL;
        swin_error err;
        sw_error_reset(&err);
        fail_after(failing);
        status = build(&dnn, &weights, &thread, &err);
        assert_int_equal(fail_no_more(), status != SWIN_OK);
        if (status != SWIN_OK) {
            assert_int_equal(status, expected);
            if (thread == NULL) { /* execution alone has no message of its own */
                assert_int_equal(err.status, expected);
                assert_int_equal(err.backend, backend);
            }
        }
        sw_dnn_thread_destroy(thread);
        sw_weights_destroy(weights);
        sw_dnn_destroy(dnn);
        assert_int_equal(memory_live_blocks(), 0);
    }
    return failing;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(fail_everywhere(memory_fail_after, memory_fail_no_more, SWIN_ERR_NO_MEMORY, 0) > 70);
    backend_without_bf16(true);
    assert_true(fail_everywhere(memory_fail_after, memory_fail_no_more, SWIN_ERR_NO_MEMORY, 0) > 70);
    backend_without_bf16(false);
}

static void every_call_of_onednn_may_fail(void **state)
{
    (void)state;
    assert_true(fail_everywhere(backend_fail_after, backend_fail_no_more, SWIN_ERR_BACKEND, BACKEND_REFUSAL) > 500);
    backend_without_bf16(true);
    assert_true(fail_everywhere(backend_fail_after, backend_fail_no_more, SWIN_ERR_BACKEND, BACKEND_REFUSAL) > 500);
    backend_without_bf16(false);
}

static void a_context_is_as_large_as_it_says(void **state)
{
    (void)state;
    for (int without = 0; without < 2; without++) {
        swin_error err;
        sw_dnn *dnn;
        must(sw_dnn_create(&dnn, &err), &err);
        const sw_product *product;
        backend_without_bf16(without);
        must(sw_dnn_linear(dnn, &SHAPE(50, 96, 384, SW_BF16, SW_BF16, true, false), NULL, &product, &err), &err);
        must(sw_dnn_linear(dnn, &SHAPE(60, 60, 60, SW_F32, SW_F32, true, false), NULL, &product, &err), &err);
        const sw_attention_shape attention = {1, 2, 64, 64, 24, SW_BF16, true};
        must(sw_dnn_scores(dnn, &attention, &product, &err), &err);
        backend_without_bf16(false);
        const size_t before = memory_live_bytes();
        sw_dnn_thread *thread;
        must(sw_dnn_thread_create(dnn, &thread, &err), &err);
        assert_int_equal(sw_dnn_thread_bytes(dnn), memory_live_bytes() - before);
        /* a 50 x 384, k 2 x 64 x 24, scores 2 x 64 x 64, all float32 */
        assert_true(sw_dnn_thread_bytes(dnn) >= (without ? 4 * (50 * 384 + 2 * 64 * 24 + 2 * 64 * 64) : 1));
        sw_dnn_thread_destroy(thread);
        sw_dnn_destroy(dnn);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * One product, many threads
 */

enum { THREADS = 6, ROWS = 98, COLUMNS = 96, INNER = 384 };

typedef struct work {
    const sw_dnn *dnn;
    const sw_product *product;
    const sw_weights *weights;
    const float *a, *bias;
    float c[ROWS * COLUMNS];
    swin_status status;
} work;

static void *compute(void *argument)
{
    work *w = argument;
    sw_dnn_thread *thread;
    sw_dnn_single_thread();
    w->status = sw_dnn_thread_create(w->dnn, &thread, NULL);
    for (int i = 0; i < 50 && w->status == SWIN_OK; i++) {
        memset(w->c, 0xff, sizeof w->c);
        w->status = sw_product_linear(w->product, thread, w->a, w->weights, w->bias, w->c);
    }
    sw_dnn_thread_destroy(thread);
    return NULL;
}

static void threads_execute_a_product_at_once(void **state)
{
    (void)state;
    swin_error err;
    sw_dnn *dnn;
    must(sw_dnn_create(&dnn, &err), &err);
    const sw_product *product;
    must(sw_dnn_linear(dnn, &SHAPE(ROWS, COLUMNS, INNER, SW_F32, SW_F32, true, false), NULL, &product, &err), &err);
    trial_seed(3);
    const float *a = trial_normals(ROWS * INNER, SW_F32, 0, 1), *bias = trial_normals(COLUMNS, SW_F32, 0, 1);
    const float *w = trial_normals(COLUMNS * INNER, SW_F32, 0, 1);
    sw_weights *weights;
    must(sw_weights_create(dnn, product, w, &weights, &err), &err);

    work *works = calloc(THREADS, sizeof *works);
    assert_non_null(works);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        works[i] = (work){.dnn = dnn, .product = product, .weights = weights, .a = a, .bias = bias};
        assert_int_equal(pthread_create(&threads[i], NULL, compute, &works[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(works[i].status, SWIN_OK);
        assert_memory_equal(works[i].c, works[0].c, sizeof works[0].c);
    }
    const matrix c_matrix = dense(works[0].c, SW_F32, COLUMNS), a_matrix = dense(a, SW_F32, INNER);
    const matrix b_matrix = {w, SW_F32, 0, 1, INNER}, start = {bias, SW_F32, 0, 0, 1};
    product_check(&c_matrix, &a_matrix, &b_matrix, &start, ROWS, COLUMNS, INNER, INNER + 1, "in threads");
    free(works);
    sw_weights_destroy(weights);
    sw_dnn_destroy(dnn);
    guarded_free_all();
    assert_int_equal(memory_live_blocks(), 0);
}

static void the_loaded_library_is_named(void **state)
{
    (void)state;
    char text[32];
    memset(text, 'x', sizeof text);
    sw_dnn_version(text);
    int major, minor, patch;
    assert_int_equal(sscanf(text, "oneDNN %d.%d.%d", &major, &minor, &patch), 3);
    assert_true((major == 2 && minor >= 6) || major == 3);
    /* the caller's setting for OpenMP survives */
    const int32_t before = sw_dnn_single_thread();
    assert_true(before >= 1);
    assert_int_equal(sw_dnn_single_thread(), 1);
    sw_dnn_restore_threads(before);
    assert_int_equal(sw_dnn_single_thread(), before);
    sw_dnn_restore_threads(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_shapes_are_one_product),     cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(reference_code_is_refused),        cmocka_unit_test(nothing_to_destroy_is_fine),
        cmocka_unit_test(every_allocation_may_fail),        cmocka_unit_test(every_call_of_onednn_may_fail),
        cmocka_unit_test(a_context_is_as_large_as_it_says), cmocka_unit_test(threads_execute_a_product_at_once),
        cmocka_unit_test(the_loaded_library_is_named),
    };
    return cmocka_run_group_tests_name("products", tests, NULL, NULL);
}
