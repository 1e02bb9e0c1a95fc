/* SPDX-License-Identifier: MIT */
/*
 * Many sessions over one model in many threads at once: what each computes is what one alone computes. Built to be run
 * under ThreadSanitizer too.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "crowd.h"
#include "memory_counted.h"
#include "models.h"

enum { THREADS = 4 };

typedef struct visitor {
    const crowd *crowd;
    swin_session *session; /* where it brings one: to be destroyed by it */
    int number;
    bool good;
} visitor;

/* Starts THREADS visitors, waits for them and fails unless all are content. */
static void let_in(void *(*visit)(void *), visitor visitors[THREADS], const char *name)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, visit, &visitors[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (!visitors[i].good)
            fail_msg("%s: visitor %d has other results", name, i);
    }
}

/* Sessions of one, two and three threads that come and go. */
static void *visit(void *argument)
{
    visitor *v = argument;
    v->good = true;
    for (int i = 0; i < 3 && v->good; i++)
        v->good = crowd_visit(v->crowd, 1 + (v->number + i) % 3, v->number + i);
    return NULL;
}

static void sessions_share_a_model(void **state)
{
    (void)state;
    for (int which = 0; which < MODEL_COUNT; which++) {
        for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
            swin_model *model = models_make(which, precision);
            crowd c;
            crowd_make(&c, model, precision);
            visitor visitors[THREADS];
            for (int i = 0; i < THREADS; i++)
                visitors[i] = (visitor){.crowd = &c, .number = i};
            let_in(visit, visitors, models_name(which));
            crowd_release(&c);
            swin_model_destroy(model);
            assert_int_equal(memory_live_blocks(), 0);
        }
    }
}

/* All ask at once for a precision that is not packed yet, and for windows that are clamped to maps nobody has seen. */
static void a_model_is_completed_under_way(void **state)
{
    (void)state;
    static const int which[] = {MODEL_CLAMPED, MODEL_V2};
    for (size_t m = 0; m < sizeof which / sizeof which[0]; m++) {
        swin_model *known = models_make(which[m], SWIN_PRECISION_BF16);
        crowd peace;
        crowd_make(&peace, known, SWIN_PRECISION_BF16);
        for (int repeat = 0; repeat < 3; repeat++) {
            swin_model *model = models_make(which[m], SWIN_PRECISION_F32);
            crowd c = peace; /* of a model with the same weights */
            c.model = model;
            visitor visitors[THREADS];
            for (int i = 0; i < THREADS; i++)
                visitors[i] = (visitor){.crowd = &c, .number = i};
            let_in(visit, visitors, models_name(which[m]));
            swin_model_destroy(model);
        }
        crowd_release(&peace);
        swin_model_destroy(known);
        assert_int_equal(memory_live_blocks(), 0);
    }
}

/* A session made elsewhere, run and destroyed here. */
static void *inherit(void *argument)
{
    visitor *v = argument;
    v->good = crowd_runs(v->crowd, v->session, v->number);
    swin_session_destroy(v->session);
    return NULL;
}

static void sessions_outlive_their_model(void **state)
{
    (void)state;
    for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
        swin_model *model = models_make(MODEL_AMX, precision);
        crowd c;
        crowd_make(&c, model, precision);
        visitor visitors[THREADS];
        for (int i = 0; i < THREADS; i++)
            visitors[i] = (visitor){.crowd = &c, .session = models_session(model, precision, 1 + i % 2), .number = i};
        swin_model_destroy(model);
        assert_true(memory_live_blocks() > 0); /* it is not gone yet */
        let_in(inherit, visitors, "without a model");
        assert_int_equal(memory_live_blocks(), 0);
        crowd_release(&c);
    }
}

/* Models that come and go, each with a session. */
static void *open_and_close(void *argument)
{
    visitor *v = argument;
    const swin_config config = models_config(MODEL_PLAIN);
    const swin_model_params params = {.struct_size = sizeof params, .precision = SWIN_PRECISION_F32};
    v->good = true;
    for (int i = 0; i < 3 && v->good; i++) {
        crowd c = *v->crowd;
        swin_model *model;
        v->good = swin_model_create_random(&config, 7, &params, &model, NULL) == SWIN_OK;
        if (!v->good)
            break;
        c.model = model;
        v->good = crowd_visit(&c, 2, i);
        swin_model_destroy(model);
    }
    return NULL;
}

static void models_come_and_go(void **state)
{
    (void)state;
    swin_model *model = models_make(MODEL_PLAIN, SWIN_PRECISION_F32);
    crowd c;
    crowd_make(&c, model, SWIN_PRECISION_F32);
    visitor visitors[THREADS];
    for (int i = 0; i < THREADS; i++)
        visitors[i] = (visitor){.crowd = &c, .number = i};
    let_in(open_and_close, visitors, "models");
    crowd_release(&c);
    swin_model_destroy(model);
    assert_int_equal(memory_live_blocks(), 0);
}

/* The last reference is given up by whichever thread comes last. */
static void *give_up(void *argument)
{
    visitor *v = argument;
    swin_session_destroy(v->session);
    v->good = true;
    return NULL;
}

static void whoever_is_last_closes_the_door(void **state)
{
    (void)state;
    for (int repeat = 0; repeat < 20; repeat++) {
        swin_model *model = models_make(MODEL_PLAIN, SWIN_PRECISION_F32);
        visitor visitors[THREADS];
        for (int i = 0; i < THREADS; i++)
            visitors[i] = (visitor){.session = models_session(model, SWIN_PRECISION_F32, 1), .number = i};
        swin_model_destroy(model);
        let_in(give_up, visitors, "leaving");
        assert_int_equal(memory_live_blocks(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_share_a_model),          cmocka_unit_test(a_model_is_completed_under_way),
        cmocka_unit_test(sessions_outlive_their_model),    cmocka_unit_test(models_come_and_go),
        cmocka_unit_test(whoever_is_last_closes_the_door),
    };
    return cmocka_run_group_tests_name("concurrency", tests, NULL, NULL);
}
