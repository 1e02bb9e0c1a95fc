/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/threads.h"
#include "memory_counted.h"
#include "sanitizer.h"

#define ITEMS_MAX 1000

typedef struct work {
    _Atomic int32_t times[ITEMS_MAX]; /* how often each item was done */
    _Atomic int32_t worst_thread;
} work;

static void count_item(void *context, int32_t item, int32_t thread)
{
    work *w = context;
    atomic_fetch_add(&w->times[item], 1);
    int32_t worst = atomic_load(&w->worst_thread);
    while (thread > worst && !atomic_compare_exchange_weak(&w->worst_thread, &worst, thread))
        ;
}

static bool each_once(const work *w, int32_t items)
{
    for (int32_t i = 0; i < ITEMS_MAX; i++) {
        if (atomic_load(&((work *)w)->times[i]) != (i < items))
            return false;
    }
    return true;
}

static void run_once(sw_pool *pool, int32_t items)
{
    work w = {0};
    sw_pool_run(pool, items, count_item, &w);
    assert_true(each_once(&w, items));
    assert_true(atomic_load(&w.worst_thread) < sw_pool_threads(pool));
}

static void every_item_is_done_once(void **state)
{
    (void)state;
    static const int32_t threads[] = {1, 2, 3, 8, 33};
    static const int32_t items[] = {0, 1, 2, 7, 64, ITEMS_MAX};
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        sw_pool *pool;
        assert_int_equal(sw_pool_create(threads[t], NULL, &pool, NULL), SWIN_OK);
        assert_int_equal(sw_pool_threads(pool), threads[t]);
        for (int repeat = 0; repeat < 20; repeat++) {
            for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
                run_once(pool, items[i]);
        }
        sw_pool_destroy(pool);
    }
}

/* Jobs that follow one another closely, and jobs that find the threads asleep. */
static void jobs_follow_one_another(void **state)
{
    (void)state;
    sw_pool *pool;
    assert_int_equal(sw_pool_create(4, NULL, &pool, NULL), SWIN_OK);
    for (int i = 0; i < 20000; i++)
        run_once(pool, 3);
    for (int i = 0; i < 20; i++) {
        usleep(2000);
        run_once(pool, 50);
    }
    sw_pool_destroy(pool);
}

static _Atomic int32_t entered;

static void enter(void)
{
    atomic_fetch_add(&entered, 1);
}

static void each_started_thread_enters_once(void **state)
{
    (void)state;
    atomic_store(&entered, 0);
    sw_pool *pool;
    assert_int_equal(sw_pool_create(5, enter, &pool, NULL), SWIN_OK);
    run_once(pool, 100);
    sw_pool_destroy(pool);
    assert_int_equal(atomic_load(&entered), 4);

    atomic_store(&entered, 0);
    assert_int_equal(sw_pool_create(1, enter, &pool, NULL), SWIN_OK);
    run_once(pool, 100);
    sw_pool_destroy(pool);
    assert_int_equal(atomic_load(&entered), 0);
}

static void note_thread(void *context, int32_t item, int32_t thread)
{
    (void)item;
    (void)thread;
    *(pthread_t *)context = pthread_self();
}

static void a_single_item_stays_with_the_caller(void **state)
{
    (void)state;
    sw_pool *pool;
    assert_int_equal(sw_pool_create(4, NULL, &pool, NULL), SWIN_OK);
    pthread_t thread;
    sw_pool_run(pool, 1, note_thread, &thread);
    assert_true(pthread_equal(thread, pthread_self()));
    sw_pool_destroy(pool);
}

static void a_forked_child_goes_on(void **state)
{
    (void)state;
    if (THREAD_SANITIZER)
        skip();
    sw_pool *pool;
    assert_int_equal(sw_pool_create(3, NULL, &pool, NULL), SWIN_OK);
    run_once(pool, 100);
    for (int i = 0; i < 5; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(20); /* a hang is a failure */
            work w = {0};
            sw_pool_run(pool, 100, count_item, &w);
            const bool good = each_once(&w, 100);
            sw_pool_destroy(pool);
            _exit(good ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        run_once(pool, 100);
    }
    sw_pool_destroy(pool);
}

static void refused_memory_is_a_status(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        memory_fail_after(n);
        sw_pool *pool;
        swin_error err = {0};
        const swin_status status = sw_pool_create(4, NULL, &pool, &err);
        assert_int_equal(memory_fail_no_more(), status != SWIN_OK);
        if (status == SWIN_OK) {
            sw_pool_destroy(pool);
            assert_true(n > 0);
            break;
        }
        assert_int_equal(status, SWIN_ERR_NO_MEMORY);
        assert_int_equal(err.status, SWIN_ERR_NO_MEMORY);
        assert_int_equal(memory_live_blocks(), 0);
    }
}

static void there_is_a_cpu(void **state)
{
    (void)state;
    assert_true(sw_cpu_count() >= 1);
}

static int nothing_is_left(void **state)
{
    (void)state;
    return memory_live_blocks() == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_item_is_done_once, nothing_is_left),
        cmocka_unit_test_teardown(jobs_follow_one_another, nothing_is_left),
        cmocka_unit_test_teardown(each_started_thread_enters_once, nothing_is_left),
        cmocka_unit_test_teardown(a_single_item_stays_with_the_caller, nothing_is_left),
        cmocka_unit_test_teardown(a_forked_child_goes_on, nothing_is_left),
        cmocka_unit_test_teardown(refused_memory_is_a_status, nothing_is_left),
        cmocka_unit_test_teardown(there_is_a_cpu, nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
