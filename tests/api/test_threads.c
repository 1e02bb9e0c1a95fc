/* SPDX-License-Identifier: MIT */
/*
 * Threads that a program sees come and go: none for sessions of one thread, one less than asked for otherwise, all gone
 * with the session; and what becomes of it where the system has none to give.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crowd.h"
#include "failure.h"
#include "memory_counted.h"
#include "models.h"
#include "sanitizer.h"

/* The linker puts this one in front (--wrap). */
static atomic_long created, allowed = -1;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    if (atomic_load(&allowed) == 0)
        return EAGAIN;
    if (atomic_load(&allowed) > 0)
        atomic_fetch_sub(&allowed, 1);
    atomic_fetch_add(&created, 1);
    return __real_pthread_create(thread, attributes, start, argument);
}

static swin_model *model;
static crowd c;

/* Sanitizers have threads of their own, from the first that a program starts on. */
static int threads_before;

static void *nothing(void *argument)
{
    return argument;
}

static int set_up(void **state)
{
    (void)state;
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return -1;
    threads_before = crowd_thread_count();
    model = models_make(MODEL_AMX, SWIN_PRECISION_F32);
    crowd_make(&c, model, SWIN_PRECISION_F32);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    crowd_release(&c);
    swin_model_destroy(model);
    return memory_live_blocks() == 0 ? 0 : -1;
}

static void opening_leaves_no_thread_behind(void **state)
{
    (void)state;
    for (int which = 0; which < MODEL_COUNT; which++) {
        for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
            swin_model *other = models_make(which, precision);
            assert_int_equal(crowd_thread_count(), threads_before);
            swin_model_destroy(other);
        }
    }
}

static void one_thread_starts_none(void **state)
{
    (void)state;
    for (int which = 0; which < MODEL_COUNT; which++) {
        for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
            swin_model *other = models_make(which, precision);
            crowd visitors;
            const long before = atomic_load(&created);
            crowd_make(&visitors, other, precision); /* in a session of one thread */
            swin_session *session = models_session(other, precision, 1);
            assert_true(crowd_runs(&visitors, session, 0));
            assert_int_equal(atomic_load(&created), before);
            /* nor has anything below the library: oneDNN's own runtime keeps what it starts */
            assert_int_equal(crowd_thread_count(), threads_before);
            swin_session_destroy(session);
            crowd_release(&visitors);
            swin_model_destroy(other);
        }
    }
}

static void a_session_has_the_threads_asked_for(void **state)
{
    (void)state;
    for (int32_t threads = 2; threads <= 9; threads++) {
        const long before = atomic_load(&created);
        swin_session *session = models_session(model, SWIN_PRECISION_F32, threads);
        assert_true(crowd_runs(&c, session, threads));
        assert_int_equal(atomic_load(&created) - before, threads - 1);
        assert_int_equal(crowd_thread_count() - threads_before, threads - 1);
        swin_session_destroy(session);
        assert_int_equal(crowd_thread_count(), threads_before);
    }
}

static void threads_that_cannot_be_had_are_a_status(void **state)
{
    (void)state;
    enum { WANTED = 5 };
    const size_t blocks = memory_live_blocks();
    const swin_session_params params = {
        .struct_size = sizeof params, .precision = SWIN_PRECISION_F32, .threads = WANTED};
    for (long had = 0; had < WANTED - 1; had++) {
        char expected[64];
        swin_error err = failure_stale();
        swin_session *session = NULL;
        snprintf(expected, sizeof expected, "start %ld of the %d threads", had + 1, WANTED);
        atomic_store(&allowed, had);
        const swin_status status = swin_session_create(model, &params, &session, &err);
        atomic_store(&allowed, -1);
        failure_check(status, SWIN_ERR_NO_MEMORY, &err, expected, "a session");
        assert_null(session);
        assert_int_equal(crowd_thread_count(), threads_before);
        assert_int_equal(memory_live_blocks(), blocks);
        assert_true(crowd_visit(&c, WANTED, 0));
    }
}

/* Its threads are the library's own choice: slower without, but no failure. */
static void a_model_is_made_without_threads(void **state)
{
    (void)state;
    swin_model *other = NULL;
    const swin_config config = models_config(MODEL_V2);
    for (long had = 0; had < 2; had++) {
        swin_error err;
        atomic_store(&allowed, had);
        const swin_status status = swin_model_create_random(&config, 1, NULL, &other, &err);
        atomic_store(&allowed, -1);
        if (status != SWIN_OK)
            fail_msg("%s", err.message);
        swin_model_destroy(other);
    }
}

/* A child's session starts threads of its own, or does without. */
static void a_child_does_without_threads(void **state)
{
    (void)state;
    if (THREAD_SANITIZER)
        skip();
    swin_session *session = models_session(model, SWIN_PRECISION_F32, 4);
    assert_true(crowd_runs(&c, session, 0));
    for (long had = 0; had <= 3; had++) {
        const pid_t pid = fork();
        if (pid == 0) {
            alarm(120);
            atomic_store(&allowed, had);
            const bool good = crowd_runs(&c, session, 1) && crowd_runs(&c, session, 2);
            _exit(good && atomic_load(&allowed) == 0 ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    assert_true(crowd_runs(&c, session, 0));
    swin_session_destroy(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_leaves_no_thread_behind),
        cmocka_unit_test(one_thread_starts_none),
        cmocka_unit_test(a_session_has_the_threads_asked_for),
        cmocka_unit_test(threads_that_cannot_be_had_are_a_status),
        cmocka_unit_test(a_model_is_made_without_threads),
        cmocka_unit_test(a_child_does_without_threads),
    };
    return cmocka_run_group_tests_name("threads", tests, set_up, tear_down);
}
