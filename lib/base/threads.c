/* SPDX-License-Identifier: MIT */
/*
 * A job is published in one word, `ticket`: its generation in the upper half, the next item in the lower one. A
 * thread takes an item by advancing the ticket it has read, which fails when the job has changed meanwhile; so a
 * thread that wakes late finds either items to do or nothing, and nobody waits for it.
 */
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "memory.h"

/* Rounds that a thread looks for work before it goes to sleep: some tens of microseconds, longer than the gaps within a
 * run, shorter than anything that a person or another process would notice. */
#define SPIN_ROUNDS 4000

/* No item: the lower half of a ticket while a job is being changed. */
#define CLOSED UINT32_MAX

typedef struct worker {
    sw_pool *pool;
    int32_t index;
    pthread_t handle;
} worker;

struct sw_pool {
    int32_t threads; /* that work, the caller included */
    int32_t started; /* workers running                */
    pid_t owner;     /* the process whose threads they are */
    void (*enter)(void);
    worker *workers;

    _Atomic uint64_t ticket;
    _Atomic int32_t items;
    _Atomic(sw_task *) task;
    _Atomic(void *) context;
    _Atomic int32_t done;

    _Atomic bool stop;
    _Atomic int32_t sleepers;
    pthread_mutex_t lock;
    pthread_cond_t wake;
};

static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static inline uint32_t generation_of(uint64_t ticket)
{
    return (uint32_t)(ticket >> 32);
}

static void do_items(sw_pool *pool, int32_t thread)
{
    uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    for (;;) {
        const uint32_t item = (uint32_t)ticket;
        if (item == CLOSED)
            return;
        sw_task *const task = atomic_load_explicit(&pool->task, memory_order_relaxed);
        void *const context = atomic_load_explicit(&pool->context, memory_order_relaxed);
        const int32_t items = atomic_load_explicit(&pool->items, memory_order_relaxed);
        if (item >= (uint32_t)items)
            return;
        /* On success the job was not changed since the ticket was read: before its fields change it is closed. */
        if (!atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket, ticket + 1, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        task(context, (int32_t)item, thread);
        atomic_fetch_add_explicit(&pool->done, 1, memory_order_release);
        ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    }
}

/* Returns when the job is another one than `seen`, or the pool stops. */
static void wait_for_job(sw_pool *pool, uint32_t seen)
{
    for (int32_t i = 0; i < SPIN_ROUNDS; i++) {
        const uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
        if ((generation_of(ticket) != seen && (uint32_t)ticket != CLOSED) ||
            atomic_load_explicit(&pool->stop, memory_order_relaxed))
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while (generation_of(atomic_load(&pool->ticket)) == seen && !atomic_load(&pool->stop))
        pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
}

static void *work(void *argument)
{
    const worker *const self = argument;
    sw_pool *const pool = self->pool;
    if (pool->enter != NULL)
        pool->enter();
    while (!atomic_load_explicit(&pool->stop, memory_order_acquire)) {
        const uint32_t generation = generation_of(atomic_load_explicit(&pool->ticket, memory_order_acquire));
        do_items(pool, self->index);
        wait_for_job(pool, generation);
    }
    return NULL;
}

/* Starts the workers of this process; fewer than asked for is no failure of the pool, only slower. */
static int start_workers(sw_pool *pool)
{
    int result = 0;
    pool->owner = getpid();
    pool->started = 0;
    for (int32_t i = 1; i < pool->threads && result == 0; i++) {
        pool->workers[i] = (worker){.pool = pool, .index = i};
        result = pthread_create(&pool->workers[i].handle, NULL, work, &pool->workers[i]);
        pool->started += result == 0;
    }
    return result;
}

static swin_status create(int32_t threads, bool all, void (*enter)(void), sw_pool **pool, swin_error *err)
{
    sw_pool *p = sw_alloc_zeroed(1, sizeof *p);
    worker *workers = sw_alloc_zeroed((size_t)threads, sizeof *workers);
    if (p == NULL || workers == NULL) {
        sw_free(workers);
        sw_free(p);
        return sw_fail_memory(err, sizeof *p + (size_t)threads * sizeof *workers, "the thread pool");
    }
    p->threads = threads;
    p->enter = enter;
    p->workers = workers;
    atomic_init(&p->ticket, CLOSED);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    if (start_workers(p) != 0 && all) {
        const int32_t started = p->started + 1;
        sw_pool_destroy(p);
        return sw_fail(err, SWIN_ERR_NO_MEMORY, "the system lets a session start %d of the %d threads asked for",
                       started, threads);
    }
    *pool = p;
    return SWIN_OK;
}

swin_status sw_pool_create(int32_t threads, void (*enter)(void), sw_pool **pool, swin_error *err)
{
    return create(threads, true, enter, pool, err);
}

swin_status sw_pool_create_up_to(int32_t threads, void (*enter)(void), sw_pool **pool, swin_error *err)
{
    return create(threads, false, enter, pool, err);
}

void sw_pool_destroy(sw_pool *pool)
{
    if (pool == NULL)
        return;
    if (pool->owner == getpid()) {
        pthread_mutex_lock(&pool->lock);
        atomic_store(&pool->stop, true);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
        for (int32_t i = 1; i <= pool->started; i++)
            pthread_join(pool->workers[i].handle, NULL);
        pthread_cond_destroy(&pool->wake);
        pthread_mutex_destroy(&pool->lock);
    }
    sw_free(pool->workers);
    sw_free(pool);
}

int32_t sw_pool_threads(const sw_pool *pool)
{
    return pool->threads;
}

/* In a child after fork() only the calling thread exists, and the lock may have been held by one that does not. */
static void adopt_after_fork(sw_pool *pool)
{
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    atomic_store(&pool->sleepers, 0);
    start_workers(pool);
}

void sw_pool_run(sw_pool *pool, int32_t items, sw_task *task, void *context)
{
    if (pool->threads == 1 || items <= 1) {
        for (int32_t i = 0; i < items; i++)
            task(context, i, 0);
        return;
    }
    if (pool->owner != getpid())
        adopt_after_fork(pool);

    const uint32_t generation = generation_of(atomic_load_explicit(&pool->ticket, memory_order_relaxed)) + 1;
    atomic_store_explicit(&pool->ticket, (uint64_t)generation << 32 | CLOSED, memory_order_release);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&pool->items, items, memory_order_relaxed);
    atomic_store_explicit(&pool->task, task, memory_order_relaxed);
    atomic_store_explicit(&pool->context, context, memory_order_relaxed);
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    atomic_store(&pool->ticket, (uint64_t)generation << 32);
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->lock);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
    }

    do_items(pool, 0);
    for (int32_t i = 0; atomic_load_explicit(&pool->done, memory_order_acquire) < items; i++) {
        if (i < SPIN_ROUNDS)
            pause_briefly();
        else
            sched_yield(); /* the thread that has the last item may be waiting for this CPU */
    }
}

int32_t sw_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int32_t)online : 1;
}
