/* SPDX-License-Identifier: MIT */
/*
 * What a session takes: no product, and for a known image size no memory, in a run; the scratch memory it says, within
 * the bounds of the project; the threads it was told, and no others.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crowd.h"
#include "exec/session.h"
#include "exec/shared.h"
#include "memory_counted.h"
#include "models.h"
#include "picture.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define MIB ((size_t)1 << 20)

static void run(swin_session *session, const swin_model *model, int32_t height, int32_t width, size_t count,
                unsigned levels)
{
    float *planes = picture_planes(height, width, 1, 1);
    swin_image images[20];
    assert_true(count >= 1 && count <= COUNT_OF(images));
    for (size_t i = 0; i < COUNT_OF(images); i++)
        images[i] = picture_image(planes, height, width);
    swin_maps maps = picture_maps(model, height, width, count, levels, SWIN_LAYOUT_NCHW);
    swin_error err;
    if (swin_session_run(session, images, count, &maps, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    picture_maps_release(&maps);
    free(planes);
}

static size_t scratch_bytes(const swin_session *session)
{
    swin_session_info info;
    assert_int_equal(swin_session_get_info(session, &info, sizeof info, NULL), SWIN_OK);
    return info.scratch_bytes;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Runs
 */

static const struct {
    int32_t height, width;
    size_t count;
    unsigned levels;
} runs[] = {
    {224, 224, 1, 0xf}, {1, 1, 1, 0xf},  {33, 17, 5, 0xf}, {97, 131, 2, 0x3}, {97, 131, 1, 0xf},
    {5, 300, 1, 0x4},   {1, 1, 20, 0xf}, {224, 224, 1, 1}, {28, 28, 17, 0xf}, {200, 150, 1, 0xf},
};

static void a_known_size_allocates_nothing(void **state)
{
    (void)state;
    for (int which = 0; which < MODEL_COUNT; which++) {
        for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
            swin_model *model = models_make(which, precision);
            swin_session *session = models_session(model, precision, 2);
            sw_network *network;
            assert_int_equal(sw_shared_network(model, (swin_precision)precision, &network, NULL), SWIN_OK);
            const int32_t products = sw_dnn_product_count(network->dnn);
            assert_true(products > 0);
            for (size_t i = 0; i < COUNT_OF(runs); i++)
                run(session, model, runs[i].height, runs[i].width, runs[i].count, runs[i].levels);
            const size_t allocations = memory_allocations(), bytes = memory_live_bytes();
            for (size_t i = COUNT_OF(runs); i-- > 0;) { /* in another order */
                run(session, model, runs[i].height, runs[i].width, runs[i].count, runs[i].levels);
                if (memory_allocations() != allocations)
                    fail_msg("%s, precision %d: %zu allocations for a known image of %d x %d", models_name(which),
                             precision, memory_allocations() - allocations, runs[i].height, runs[i].width);
            }
            assert_int_equal(memory_live_bytes(), bytes);
            assert_int_equal(sw_dnn_product_count(network->dnn), products);
            swin_session_destroy(session);
            swin_model_destroy(model);
            assert_int_equal(memory_live_blocks(), 0);
        }
    }
}

/* The figure that a program sees is what is allocated, but for the handles themselves. */
static void scratch_bytes_are_what_is_allocated(void **state)
{
    (void)state;
    for (int which = 0; which < MODEL_COUNT; which++) {
        for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
            swin_model *model = models_make(which, precision);
            for (int32_t threads = 1; threads <= 3; threads += 2) {
                const size_t before = memory_live_bytes();
                swin_session *session = models_session(model, precision, threads);
                for (size_t i = 0; i <= COUNT_OF(runs); i++) {
                    /* what a window of a clamped map needs stays with the model */
                    if (i > 0 && which != MODEL_CLAMPED)
                        run(session, model, runs[i - 1].height, runs[i - 1].width, runs[i - 1].count,
                            runs[i - 1].levels);
                    const size_t real = memory_live_bytes() - before, said = scratch_bytes(session);
                    if (said > real || real - said > 4096)
                        fail_msg("%s, precision %d, %d threads, after %zu runs: %zu bytes, said to be %zu",
                                 models_name(which), precision, threads, i, real, said);
                }
                swin_session_destroy(session);
            }
            swin_model_destroy(model);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Bounds
 */

static swin_config swin_tiny(void)
{
    swin_config config;
    assert_int_equal(swin_config_preset(&config, sizeof config, "swin_tiny_patch4_window7_224", NULL), SWIN_OK);
    return config;
}

/* Swin-T at 800 x 1344, two threads: 64 MB beyond weights, input and maps, at any moment. */
static void a_detector_s_image_stays_below_64_mb(void **state)
{
    (void)state;
    const swin_config config = swin_tiny();
    for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
        const swin_model_params params = {.struct_size = sizeof params, .precision = precision};
        swin_model *model;
        assert_int_equal(swin_model_create_random(&config, 1, &params, &model, NULL), SWIN_OK);
        const size_t before = memory_live_bytes();
        swin_session *session = models_session(model, precision, 2);
        memory_reset_peak();
        run(session, model, 800, 1344, 1, 0xf);
        assert_in_range(scratch_bytes(session), 1, 64 * MIB);
        assert_in_range(memory_peak_bytes() - before, 1, 64 * MIB);
        swin_session_destroy(session);
        swin_model_destroy(model);
    }
}

/* 3840 x 2160: 1.2 times the first stage's residual stream, and 16 MB for each thread; with and without our own
 * products. */
static void an_image_of_4k_stays_within_its_bound(void **state)
{
    (void)state;
    const swin_config config = swin_tiny();
    sw_model *model;
    assert_int_equal(sw_model_create_random(&config, 1, &model, NULL), SWIN_OK);
    const size_t stream = (size_t)540 * 960 * 96 * sizeof(float), threads = 2;
    for (int which = 0; which < 4; which++) {
        sw_network *network = NULL;
        sw_session *session = NULL;
        sw_plan plan = {0};
        swin_error err;
        if (sw_network_create(model, which / 2 == 0 ? SW_F32 : SW_BF16, which % 2 == 0, 2, &network, &err) != SWIN_OK ||
            sw_session_create(network, sw_kernels_for(sw_isa_best()), (int32_t)threads, false, &session, &err) !=
                SWIN_OK ||
            sw_plan_make(&plan, network, (int32_t)threads, 2160, 3840, 4, &err) != SWIN_OK)
            fail_msg("%s", err.message);
        const size_t image = plan.image_floats * sizeof(float) + plan.memory_count * sizeof(int32_t);
        const size_t fixed = sw_session_scratch_bytes(session); /* of its threads: nothing has been run */
        assert_in_range(plan.image_floats * sizeof(float), stream, stream * 6 / 5);
        assert_in_range(image + fixed, stream, stream * 6 / 5 + threads * 16 * MIB);
        sw_plan_release(&plan);
        sw_session_destroy(session);
        sw_network_destroy(network);
    }
    sw_model_destroy(model);
    assert_int_equal(memory_live_blocks(), 0);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Threads
 */

static void a_session_has_the_threads_it_was_told(void **state)
{
    (void)state;
    const int before = crowd_thread_count();
    swin_model *model = models_make(MODEL_PLAIN, SWIN_PRECISION_F32);
    assert_int_equal(crowd_thread_count(), before); /* those that packed are gone */
    for (int32_t threads = 1; threads <= 5; threads++) {
        swin_session *session = models_session(model, SWIN_PRECISION_F32, threads);
        assert_int_equal(crowd_thread_count(), before + threads - 1);
        for (size_t i = 0; i < COUNT_OF(runs); i++)
            run(session, model, runs[i].height, runs[i].width, runs[i].count, runs[i].levels);
        assert_int_equal(crowd_thread_count(), before + threads - 1); /* oneDNN has started none of its own */
        swin_session_info info;
        assert_int_equal(swin_session_get_info(session, &info, sizeof info, NULL), SWIN_OK);
        assert_int_equal(info.threads, threads);
        swin_session_destroy(session);
        assert_int_equal(crowd_thread_count(), before);
    }
    swin_session *session = models_session(model, SWIN_PRECISION_F32, 0); /* one per CPU */
    assert_int_equal(crowd_thread_count(), before + sw_cpu_count() - 1);
    swin_session_destroy(session);
    swin_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_size_allocates_nothing),
        cmocka_unit_test(scratch_bytes_are_what_is_allocated),
        cmocka_unit_test(a_detector_s_image_stays_below_64_mb),
        cmocka_unit_test(an_image_of_4k_stays_within_its_bound),
        cmocka_unit_test(a_session_has_the_threads_it_was_told),
    };
    return cmocka_run_group_tests_name("memory and threads", tests, NULL, NULL);
}
