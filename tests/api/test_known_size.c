/* SPDX-License-Identifier: MIT */
/*
 * A run of an image size that was seen before takes no lock and touches no file, oneDNN included: the functions that do
 * are this program's, and count. Threads of a pool that sleep are woken behind a lock: that is all that more threads
 * than one take.
 */
#undef _FILE_OFFSET_BITS /* open() and open64() shall be two functions */
#undef _FORTIFY_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "models.h"
#include "picture.h"
#include "sanitizer.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static atomic_long locks, files;

#if !THREAD_SANITIZER
/* Counts and calls what would have been called without this program. */
#define INTERPOSE(counter, type, name, parameters, arguments)                      \
    type name parameters;                                                          \
    type name parameters                                                           \
    {                                                                              \
        static type(*_Atomic next) parameters;                                     \
        type(*function) parameters = atomic_load(&next);                           \
        if (function == NULL) {                                                    \
            *(void **)&function = dlsym(RTLD_NEXT, #name);                         \
            atomic_store(&next, function);                                         \
        }                                                                          \
        atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);              \
        return function arguments;                                                 \
    }
INTERPOSE(locks, int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
INTERPOSE(locks, int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
INTERPOSE(locks, int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
INTERPOSE(files, int, open, (const char *path, int flags, ...), (path, flags, 0666))
INTERPOSE(files, int, open64, (const char *path, int flags, ...), (path, flags, 0666))
INTERPOSE(files, int, openat, (int directory, const char *path, int flags, ...), (directory, path, flags, 0666))
INTERPOSE(files, FILE *, fopen, (const char *path, const char *mode), (path, mode))
INTERPOSE(files, FILE *, fopen64, (const char *path, const char *mode), (path, mode))
INTERPOSE(files, ssize_t, read, (int descriptor, void *bytes, size_t count), (descriptor, bytes, count))
INTERPOSE(files, ssize_t, pread, (int descriptor, void *bytes, size_t count, off_t offset),
          (descriptor, bytes, count, offset))
INTERPOSE(files, ssize_t, pread64, (int descriptor, void *bytes, size_t count, off64_t offset),
          (descriptor, bytes, count, offset))
INTERPOSE(files, int, fstat, (int descriptor, struct stat *status), (descriptor, status))
INTERPOSE(files, int, stat, (const char *path, struct stat *status), (path, status))
#endif

static const struct {
    int32_t height, width;
    size_t count;
} sizes[] = {{224, 224, 1}, {1, 1, 1}, {33, 17, 5}, {97, 131, 1}, {28, 28, 3}, {200, 150, 1}};

static void run(swin_session *session, const swin_model *model, size_t which, long *locked, long *touched)
{
    float *planes = picture_planes(sizes[which].height, sizes[which].width, 1, 1);
    swin_image images[5];
    for (size_t i = 0; i < COUNT_OF(images); i++)
        images[i] = picture_image(planes, sizes[which].height, sizes[which].width);
    swin_maps maps =
        picture_maps(model, sizes[which].height, sizes[which].width, sizes[which].count, 0xf, SWIN_LAYOUT_NCHW);
    swin_error err;
    const long locks_before = atomic_load(&locks), files_before = atomic_load(&files);
    const swin_status status = swin_session_run(session, images, sizes[which].count, &maps, &err);
    *locked = atomic_load(&locks) - locks_before;
    *touched = atomic_load(&files) - files_before;
    if (status != SWIN_OK)
        fail_msg("%s", err.message);
    picture_maps_release(&maps);
    free(planes);
}

static void check(const swin_model *model, int32_t precision, int32_t threads, const char *name)
{
    swin_session *session = models_session(model, precision, threads);
    long locked, touched;
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        run(session, model, i, &locked, &touched);
    for (size_t i = 0; i < 2 * COUNT_OF(sizes); i++) { /* in another order, each once more in a row */
        const size_t which = COUNT_OF(sizes) - 1 - i / 2;
        run(session, model, which, &locked, &touched);
        if (touched != 0 || (threads == 1 && locked != 0))
            fail_msg("%s, precision %d, %d threads, %d x %d: %ld locks and %ld files", name, precision, threads,
                     sizes[which].height, sizes[which].width, locked, touched);
    }
    swin_session_destroy(session);
}

static void a_known_size_takes_no_lock_and_touches_no_file(void **state)
{
    (void)state;
    if (THREAD_SANITIZER)
        skip();
    for (int which = 0; which < MODEL_COUNT; which++) {
        for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
            swin_model *model = models_make(which, precision);
            check(model, precision, 1, models_name(which));
            check(model, precision, 3, models_name(which));
            swin_model_destroy(model);
        }
    }
}

/* What is counted above is there to be counted: a session's making takes a lock, an opening touches files. */
static void locks_and_files_are_counted(void **state)
{
    (void)state;
    if (THREAD_SANITIZER)
        skip();
    const long locks_before = atomic_load(&locks), files_before = atomic_load(&files);
    swin_model *model = models_make(MODEL_PLAIN, SWIN_PRECISION_F32), *opened;
    swin_session_destroy(models_session(model, SWIN_PRECISION_F32, 1));
    assert_true(atomic_load(&locks) > locks_before);
    assert_int_not_equal(swin_model_open("/dev/null", NULL, &opened, NULL), SWIN_OK);
    assert_true(atomic_load(&files) > files_before);
    swin_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_and_files_are_counted),
        cmocka_unit_test(a_known_size_takes_no_lock_and_touches_no_file),
    };
    return cmocka_run_group_tests_name("known sizes", tests, NULL, NULL);
}
