/* SPDX-License-Identifier: MIT */
/*
 * Programs that use threads and processes in ways of their own: a session inside an OpenMP region, in a thread that is
 * not the first, and on both sides of fork().
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fenv.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crowd.h"
#include "memory_counted.h"
#include "models.h"
#include "sanitizer.h"

/* Seconds after which a child that hangs is killed: far more than it needs. */
enum { PATIENCE = 120 };

static crowd c;
static swin_model *model;

/* A compiler may bring a runtime of its own beside the one that oneDNN uses. omp_set_num_threads() then speaks to one,
 * a region asks the other, and neither can be tested. */
static bool one_runtime(void)
{
    int team = 0;
    omp_set_num_threads(3);
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    return team > 1;
}

static bool regions_work;

/* ThreadSanitizer does not see what libgomp does at the ends of a region: written before one and read in it, and the
 * other way round. */
static atomic_int region;

static int set_up(void **state)
{
    (void)state;
    regions_work = one_runtime();
    model = models_make(MODEL_PLAIN, SWIN_PRECISION_F32);
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

static void each_thread_of_an_openmp_region_has_a_session(void **state)
{
    (void)state;
    if (!regions_work)
        skip();
    omp_set_num_threads(3);
    int good = 0, others = 0, team = 0;
    atomic_store(&region, 1);
#pragma omp parallel reduction(+ : good, others)
    {
        (void)atomic_load(&region);
        const int before = omp_get_max_threads();
        good += crowd_visit(&c, 2, omp_get_thread_num());
        others += omp_get_max_threads() != before; /* the program's own setting */
#pragma omp single
        team = omp_get_num_threads();
        atomic_fetch_add(&region, 1);
    }
    (void)atomic_load(&region);
    assert_true(team > 1);
    assert_int_equal(good, team);
    assert_int_equal(others, 0);
    assert_int_equal(omp_get_max_threads(), 3);
}

static void the_program_s_own_regions_keep_their_threads(void **state)
{
    (void)state;
    if (!regions_work)
        skip();
    omp_set_num_threads(3);
    swin_session *session = models_session(model, SWIN_PRECISION_F32, 2);
    assert_true(crowd_runs(&c, session, 0));
    int team = 0;
#pragma omp parallel
#pragma omp single
    team = omp_get_num_threads();
    assert_int_equal(team, 3);
    swin_session_destroy(session);
}

static void *visit(void *argument)
{
    *(bool *)argument = crowd_visit(&c, 2, 0);
    return NULL;
}

static void a_thread_that_is_not_the_first_has_one(void **state)
{
    (void)state;
    bool good = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, visit, &good), 0);
    pthread_join(thread, NULL);
    assert_true(good);
}

/* What a child answers: 0 where everything is as it should be. */
static int child(swin_session *session, int32_t threads)
{
    alarm(PATIENCE);
    if (crowd_thread_count() != 1) /* fork() copies the calling thread alone */
        return 5;
    if (!crowd_runs(&c, session, 0) || !crowd_runs(&c, session, 3))
        return 1;
    if (crowd_thread_count() != threads) /* the session has started others */
        return 6;
    if (!crowd_visit(&c, 3, 1))
        return 2;
    swin_session_destroy(session);
    return 0;
}

static int answer_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("the child was killed by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static void a_child_goes_on_with_its_parent_s_session(void **state)
{
    (void)state;
    if (THREAD_SANITIZER)
        skip();
    for (int32_t threads = 1; threads <= 3; threads++) {
        swin_session *session = models_session(model, SWIN_PRECISION_F32, threads);
        for (int round = 0; round < 3; round++) { /* before any run, after some, with children of children */
            const pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid == 0) {
                int answer = 0;
                if (round == 2) {
                    alarm(PATIENCE);
                    answer = crowd_runs(&c, session, 1) ? 0 : 3;
                    const pid_t grandchild = fork();
                    if (grandchild == 0)
                        _exit(child(session, threads));
                    int status = -1;
                    waitpid(grandchild, &status, 0);
                    answer = answer != 0 ? answer : WIFEXITED(status) ? WEXITSTATUS(status) : 4;
                } else {
                    answer = child(session, threads);
                }
                _exit(answer);
            }
            assert_int_equal(answer_of(pid), 0);
            assert_true(crowd_runs(&c, session, round)); /* and the parent too */
        }
        swin_session_destroy(session);
    }
}

/* Rounding and denormals of the caller's thread, which the pool's threads do not have. */
static void the_caller_s_floating_point_changes_nothing(void **state)
{
    (void)state;
    static const int modes[] = {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        for (int32_t threads = 1; threads <= 2; threads++) {
            assert_int_equal(fesetround(modes[i]), 0);
            const int good = crowd_visit(&c, threads, 0);
            const int mode = fegetround();
            fesetround(FE_TONEAREST);
            assert_int_equal(good, 1);
            assert_int_equal(mode, modes[i]);
        }
    }
}

static void *create_while_cancelled(void *context)
{
    swin_session **made = context;
    const swin_session_params params = {.struct_size = sizeof params, .precision = SWIN_PRECISION_BF16, .threads = 2};
    pthread_cancel(pthread_self());
    if (swin_session_create(model, &params, made, NULL) != SWIN_OK)
        *made = NULL;
    pthread_testcancel();
    return NULL;
}

static void a_cancelled_thread_leaves_no_lock_behind(void **state)
{
    (void)state;
    swin_session *made = NULL, *another = NULL;
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_create(&thread, NULL, create_while_cancelled, &made), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_non_null(made);
    const swin_session_params params = {.struct_size = sizeof params, .precision = SWIN_PRECISION_BF16, .threads = 1};
    assert_int_equal(swin_session_create(model, &params, &another, NULL), SWIN_OK);
    swin_session_destroy(another);
    swin_session_destroy(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_of_an_openmp_region_has_a_session),
        cmocka_unit_test(the_program_s_own_regions_keep_their_threads),
        cmocka_unit_test(a_thread_that_is_not_the_first_has_one),
        cmocka_unit_test(a_child_goes_on_with_its_parent_s_session),
        cmocka_unit_test(the_caller_s_floating_point_changes_nothing),
        cmocka_unit_test(a_cancelled_thread_leaves_no_lock_behind),
    };
    return cmocka_run_group_tests_name("surroundings", tests, set_up, tear_down);
}
