/* SPDX-License-Identifier: MIT */
/*
 * Every argument of a run that can be wrong: one status, one message that names it, the maps as they were, and the
 * session as good as before. And a session entered by a second thread.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exec/session.h"
#include "failure.h"
#include "memory_counted.h"
#include "models.h"
#include "picture.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { HEIGHT = 24, WIDTH = 20, IMAGES = 3 };

static swin_model *model; /* three stages */
static swin_session *session;

static int set_up(void **state)
{
    (void)state;
    model = models_make(MODEL_LARGE, SWIN_PRECISION_F32);
    session = models_session(model, SWIN_PRECISION_F32, 2);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    swin_session_destroy(session);
    swin_model_destroy(model);
    return memory_live_blocks() == 0 ? 0 : -1;
}

/* ------------------------------------------------------------------------------------------------------------------
 * A run
 */

/* Structs of a program that knows more than this library. */
typedef struct later_image {
    swin_image image;
    uint64_t more;
} later_image;

typedef struct later_maps {
    swin_maps maps;
    uint64_t more;
} later_maps;

typedef struct call {
    swin_session *session;
    later_image later[IMAGES]; /* used where `images` points there */
    swin_image image[IMAGES];
    const swin_image *images;
    size_t count;
    later_maps maps;
    const swin_maps *given_maps;
    float *planes;
} call;

static void no_session(call *c)
{
    c->session = NULL;
}
static void no_images(call *c)
{
    c->images = NULL;
}
static void no_maps(call *c)
{
    c->given_maps = NULL;
}
static void count_0(call *c)
{
    c->count = 0;
}
static void count_too_large(call *c)
{
    c->count = (1 << 20) + 1;
}
static void count_huge(call *c)
{
    c->count = SIZE_MAX;
}
static void no_data(call *c)
{
    c->image[1].data = NULL;
}
static void format_0(call *c)
{
    c->image[0].format = 0;
}
static void format_4(call *c)
{
    c->image[1].format = 4;
}
static void format_negative(call *c)
{
    c->image[0].format = -1;
}
static void height_0(call *c)
{
    c->image[0].height = 0;
}
static void height_negative(call *c)
{
    c->image[2].height = -HEIGHT;
}
static void width_0(call *c)
{
    c->image[0].width = 0;
}
static void width_smallest(call *c)
{
    c->image[0].width = INT32_MIN;
}
static void other_height(call *c)
{
    c->image[2].height = HEIGHT - 1;
}
static void other_width(call *c)
{
    c->image[1].width = WIDTH - 1;
}
static void other_canvas(call *c)
{
    c->image[2].canvas_height = HEIGHT + 1;
}
static void low_canvas(call *c)
{
    c->image[0].canvas_height = HEIGHT - 1;
}
static void narrow_canvas(call *c)
{
    c->image[0].canvas_width = WIDTH - 1;
}
static void negative_canvas(call *c)
{
    c->image[0].canvas_width = -1;
}
static void huge_canvas(call *c)
{
    c->count = 1;
    c->image[0].canvas_height = c->image[0].canvas_width = INT32_MAX;
}
static void short_rows(call *c)
{
    c->image[0].row_stride = 4 * WIDTH - 4;
}
static void short_rows_upwards(call *c)
{
    c->image[0].row_stride = -4 * WIDTH + 4;
}
static void smallest_stride(call *c)
{
    c->image[0].row_stride = PTRDIFF_MIN;
}
static void largest_stride(call *c)
{
    c->image[0].row_stride = PTRDIFF_MAX - 3;
}
static void odd_data(call *c)
{
    c->image[0].data = (const char *)c->planes + 1;
}
static void odd_rows(call *c)
{
    c->image[0].row_stride = 4 * WIDTH + 2;
}
static void odd_planes(call *c)
{
    c->image[0].plane_stride = 4 * WIDTH * HEIGHT + 1;
}
static void planes_beyond(call *c)
{
    c->image[0].plane_stride = PTRDIFF_MAX - 3;
}
static void bytes(call *c)
{
    c->image[0].format = SWIN_PIXEL_RGB8;
}
static void mean_nan(call *c)
{
    bytes(c);
    c->image[0].mean[0] = NAN;
}
static void mean_infinite(call *c)
{
    bytes(c);
    c->image[0].mean[2] = -INFINITY;
}
static void std_nan(call *c)
{
    bytes(c);
    c->image[0].std[0] = NAN;
}
static void std_0(call *c)
{
    bytes(c);
    c->image[0].std[1] = 0;
}
static void std_negative(call *c)
{
    bytes(c);
    c->image[0].std[2] = -1;
}
static void std_infinite(call *c)
{
    bytes(c);
    c->image[0].std[2] = INFINITY;
}
static void std_tiny(call *c)
{
    bytes(c);
    c->image[0].std[2] = 1e-45f; /* its inverse is no float */
}
static void image_uninitialised(call *c)
{
    c->image[0].struct_size = c->image[1].struct_size = c->image[2].struct_size = 0;
}
static void image_size_short(call *c)
{
    c->image[0].struct_size = 7;
}
static void image_size_absurd(call *c)
{
    c->image[0].struct_size = SIZE_MAX;
}
static void image_sizes_differ(call *c)
{
    c->image[1].struct_size -= 8;
}
static void image_cut(call *c) /* a struct that ends before mean and std: zeros */
{
    c->count = 1;
    bytes(c);
    c->image[0].struct_size = offsetof(swin_image, mean);
}
static void image_of_the_future(call *c)
{
    for (int i = 0; i < IMAGES; i++) {
        c->later[i] = (later_image){.image = c->image[i], .more = i == 1};
        c->later[i].image.struct_size = sizeof c->later[i];
    }
    c->images = &c->later[0].image;
}
static void layout_negative(call *c)
{
    c->maps.maps.layout = -1;
}
static void layout_2(call *c)
{
    c->maps.maps.layout = 2;
}
static void reserved(call *c)
{
    c->maps.maps.reserved = 1;
}
static void no_level(call *c)
{
    memset(c->maps.maps.data, 0, sizeof c->maps.maps.data);
}
static void level_beyond(call *c)
{
    c->maps.maps.data[3] = c->maps.maps.data[0];
    c->maps.maps.capacity[3] = SIZE_MAX;
}
static void capacity_short(call *c)
{
    c->maps.maps.capacity[1]--;
}
static void capacity_0(call *c)
{
    c->maps.maps.capacity[2] = 0;
}
static void same_map_twice(call *c)
{
    c->maps.maps.data[1] = c->maps.maps.data[0];
}
static void maps_overlap(call *c)
{
    c->maps.maps.data[2] = c->maps.maps.data[1] + 2591;
}
static void odd_map(call *c)
{
    c->maps.maps.data[0] = (float *)(void *)((char *)c->maps.maps.data[0] + 2);
}
static void maps_uninitialised(call *c)
{
    c->maps.maps.struct_size = 0;
}
static void maps_absurd(call *c)
{
    c->maps.maps.struct_size = SIZE_MAX / 2;
}
static void maps_cut(call *c)
{
    c->maps.maps.struct_size = offsetof(swin_maps, capacity);
}
static void maps_of_the_future(call *c)
{
    c->maps.maps.struct_size = sizeof c->maps;
    c->maps.more = 1;
}

static const struct {
    void (*spoil)(call *c);
    const char *name;
    swin_status status;
    const char *message; /* part of it */
} run_cases[] = {
#define CASE(spoil, status, message)                                                                                   \
    {                                                                                                                  \
        spoil, #spoil, SWIN_ERR_##status, message                                                                      \
    }
    CASE(no_session, ARGUMENT, "session is NULL"),
    CASE(no_images, ARGUMENT, "images is NULL"),
    CASE(no_maps, ARGUMENT, "maps is NULL"),
    CASE(count_0, ARGUMENT, "count is 0 images, expected 1 to 1048576"),
    CASE(count_too_large, ARGUMENT, "count is 1048577"),
    CASE(count_huge, ARGUMENT, "count is 18446744073709551615"),
    CASE(no_data, ARGUMENT, "image 1: data is NULL"),
    CASE(format_0, ARGUMENT, "image 0: format is 0"),
    CASE(format_4, ARGUMENT, "image 1: format is 4"),
    CASE(format_negative, ARGUMENT, "image 0: format is -1"),
    CASE(height_0, ARGUMENT, "image 0 is 0 x 20 pixels"),
    CASE(height_negative, ARGUMENT, "image 2 is -24 x 20 pixels"),
    CASE(width_0, ARGUMENT, "image 0 is 24 x 0 pixels"),
    CASE(width_smallest, ARGUMENT, "image 0 is 24 x -2147483648 pixels"),
    CASE(other_height, ARGUMENT, "image 2 is 23 x 20, expected 24 x 20"),
    CASE(other_width, ARGUMENT, "image 1 is 24 x 19, expected 24 x 20"),
    CASE(other_canvas, ARGUMENT, "image 2 is 25 x 20, expected 24 x 20"),
    CASE(low_canvas, ARGUMENT, "image 0: canvas of 23 x 20"),
    CASE(narrow_canvas, ARGUMENT, "image 0: canvas of 24 x 19"),
    CASE(negative_canvas, ARGUMENT, "image 0: canvas of 24 x -1"),
    CASE(huge_canvas, LIMIT, "image of 2147483647 x 2147483647 pixels"),
    CASE(short_rows, ARGUMENT, "image 0: row_stride is 76 bytes, a row has 80"),
    CASE(short_rows_upwards, ARGUMENT, "image 0: row_stride is -76 bytes"),
    CASE(smallest_stride, ARGUMENT, "image 0: row_stride is -9223372036854775808 bytes"),
    CASE(largest_stride, ARGUMENT, "image 0: 24 rows of row_stride 9223372036854775804"),
    CASE(odd_data, ARGUMENT, "multiples of 4 bytes"),
    CASE(odd_rows, ARGUMENT, "multiples of 4 bytes"),
    CASE(odd_planes, ARGUMENT, "multiples of 4 bytes"),
    CASE(planes_beyond, ARGUMENT, "image 0: three planes of plane_stride "),
    CASE(mean_nan, ARGUMENT, "image 0: mean[0] is"),
    CASE(mean_infinite, ARGUMENT, "image 0: mean[2] is"),
    CASE(std_nan, ARGUMENT, "image 0: std[0] is"),
    CASE(std_0, ARGUMENT, "image 0: std[1] is 0"),
    CASE(std_negative, ARGUMENT, "image 0: std[2] is -1"),
    CASE(std_infinite, ARGUMENT, "image 0: std[2] is inf"),
    CASE(std_tiny, ARGUMENT, "image 0: std[2] is 1"),
    CASE(image_uninitialised, ARGUMENT, "struct_size 0"),
    CASE(image_size_short, ARGUMENT, "struct_size 7"),
    CASE(image_size_absurd, ARGUMENT, "struct_size 18446744073709551615"),
    CASE(image_sizes_differ, ARGUMENT, "image 1 has struct_size"),
    CASE(image_cut, ARGUMENT, "image 0: std[0] is 0"),
    CASE(image_of_the_future, ARGUMENT, "image has a field set that this libswin"),
    CASE(layout_negative, ARGUMENT, "maps.layout is -1"),
    CASE(layout_2, ARGUMENT, "maps.layout is 2"),
    CASE(reserved, ARGUMENT, "maps.reserved is 1"),
    CASE(no_level, ARGUMENT, "no level is asked for"),
    CASE(level_beyond, ARGUMENT, "level 3 is asked for, the model has levels 0 to 2"),
    CASE(capacity_short, ARGUMENT, "maps.capacity[1] is 2591 floats, expected at least 2592"),
    CASE(capacity_0, ARGUMENT, "maps.capacity[2] is 0 floats"),
    CASE(same_map_twice, ARGUMENT, "maps.data[0] and maps.data[1] overlap: level 0 takes "),
    CASE(maps_overlap, ARGUMENT, "maps.data[1] and maps.data[2] overlap: level 1 takes 2592 floats, level 2 "),
    CASE(odd_map, ARGUMENT, "maps.data[0] is not aligned"),
    CASE(maps_uninitialised, ARGUMENT, "maps has struct_size 0"),
    CASE(maps_absurd, ARGUMENT, "maps has struct_size"),
    CASE(maps_cut, ARGUMENT, "maps.capacity[0] is 0 floats"),
    CASE(maps_of_the_future, ARGUMENT, "maps has a field set that this libswin"),
#undef CASE
};

static void begin_call(call *c)
{
    memset(c, 0, sizeof *c);
    c->session = session;
    c->planes = picture_planes(HEIGHT, WIDTH, 1, 1);
    for (int i = 0; i < IMAGES; i++)
        c->image[i] = picture_image(c->planes, HEIGHT, WIDTH);
    c->images = c->image;
    c->count = IMAGES;
    c->maps.maps = picture_maps(model, HEIGHT, WIDTH, IMAGES, 0xf, SWIN_LAYOUT_NCHW);
    c->given_maps = &c->maps.maps;
}

static void a_bad_run_does_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(run_cases); i++) {
        call c;
        begin_call(&c);
        swin_maps maps = c.maps.maps; /* as they were */
        run_cases[i].spoil(&c);
        swin_error err = failure_stale();
        failure_check(swin_session_run(c.session, c.images, c.count, c.given_maps, &err), run_cases[i].status, &err,
                      run_cases[i].message, run_cases[i].name);
        assert_int_equal(swin_session_run(c.session, c.images, c.count, c.given_maps, NULL), run_cases[i].status);
        for (int s = 0; s < SWIN_MAX_STAGES; s++) {
            for (size_t f = 0; f < maps.capacity[s]; f++)
                assert_true(isnan(maps.data[s][f]));
        }
        /* and the session still works */
        call good;
        begin_call(&good);
        err = failure_stale();
        assert_int_equal(swin_session_run(session, good.images, good.count, good.given_maps, &err), SWIN_OK);
        assert_int_equal(err.status, 0);
        assert_int_equal(err.backend, 0);
        assert_string_equal(err.message, "");
        picture_maps_release(&good.maps.maps);
        picture_maps_release(&maps);
        free(good.planes);
        free(c.planes);
    }
}

/* Longer structs whose unknown fields are zero, shorter ones whose missing fields may be zero, one row of any stride.
 */
static void what_is_unusual_but_right_works(void **state)
{
    (void)state;
    call plain, c;
    begin_call(&plain);
    assert_int_equal(swin_session_run(session, plain.images, IMAGES, plain.given_maps, NULL), SWIN_OK);

    begin_call(&c);
    for (int i = 0; i < IMAGES; i++) {
        c.later[i] = (later_image){.image = c.image[i]};
        c.later[i].image.struct_size = sizeof c.later[i];
    }
    c.maps.maps.struct_size = sizeof c.maps;
    assert_int_equal(swin_session_run(session, &c.later[0].image, IMAGES, c.given_maps, NULL), SWIN_OK);
    assert_true(picture_maps_equal(&plain.maps.maps, &c.maps.maps));

    for (int i = 0; i < IMAGES; i++) { /* of a program that knows nothing behind row_stride */
        char *cut = (char *)c.later + (size_t)i * offsetof(swin_image, plane_stride);
        memcpy(cut, &c.image[i], offsetof(swin_image, plane_stride));
        const size_t size = offsetof(swin_image, plane_stride);
        memcpy(cut, &size, sizeof size);
    }
    c.maps.maps.struct_size = sizeof c.maps.maps;
    assert_int_equal(swin_session_run(session, &c.later[0].image, IMAGES, c.given_maps, NULL), SWIN_OK);
    assert_true(picture_maps_equal(&plain.maps.maps, &c.maps.maps));

    swin_image row = c.image[0];
    row.height = 1;
    row.row_stride = 4; /* shorter than the row, and never used */
    row.plane_stride = 4 * WIDTH;
    assert_int_equal(swin_session_run(session, &row, 1, c.given_maps, NULL), SWIN_OK);

    picture_maps_release(&plain.maps.maps);
    picture_maps_release(&c.maps.maps);
    free(plain.planes);
    free(c.planes);
}

/* ------------------------------------------------------------------------------------------------------------------
 * A session entered twice
 */

static sem_t inside, leave;
static bool hold;

swin_status __real_sw_session_run(sw_session *s, const sw_pixels *pixels, size_t count, const int32_t canvas[2],
                                  const swin_maps *maps, swin_error *err);
swin_status __wrap_sw_session_run(sw_session *s, const sw_pixels *pixels, size_t count, const int32_t canvas[2],
                                  const swin_maps *maps, swin_error *err);
swin_status __wrap_sw_session_run(sw_session *s, const sw_pixels *pixels, size_t count, const int32_t canvas[2],
                                  const swin_maps *maps, swin_error *err)
{
    if (hold) {
        sem_post(&inside);
        sem_wait(&leave);
    }
    return __real_sw_session_run(s, pixels, count, canvas, maps, err);
}

static void *run_held(void *argument)
{
    call *c = argument;
    c->count = 1;
    const swin_status status = swin_session_run(c->session, c->images, 1, c->given_maps, NULL);
    return (void *)(uintptr_t)status;
}

static void a_session_takes_one_thread_at_a_time(void **state)
{
    (void)state;
    assert_int_equal(sem_init(&inside, 0, 0), 0);
    assert_int_equal(sem_init(&leave, 0, 0), 0);
    call first, second;
    begin_call(&first);
    begin_call(&second);
    hold = true;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_held, &first), 0);
    sem_wait(&inside);
    hold = false;
    swin_error err = failure_stale();
    failure_check(swin_session_run(session, second.images, 1, second.given_maps, &err), SWIN_ERR_STATE, &err,
                  "in use by another thread", "second thread");
    sem_post(&leave);
    void *status;
    pthread_join(thread, &status);
    assert_int_equal((uintptr_t)status, SWIN_OK); /* the first has noticed nothing */
    assert_int_equal(swin_session_run(session, second.images, 1, second.given_maps, &err), SWIN_OK);
    assert_memory_equal(first.maps.maps.data[0], second.maps.maps.data[0],
                        first.maps.maps.capacity[0] / IMAGES * sizeof(float));
    picture_maps_release(&first.maps.maps);
    picture_maps_release(&second.maps.maps);
    free(first.planes);
    free(second.planes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_run_does_nothing),
        cmocka_unit_test(what_is_unusual_but_right_works),
        cmocka_unit_test(a_session_takes_one_thread_at_a_time),
    };
    return cmocka_run_group_tests_name("arguments of a run", tests, set_up, tear_down);
}
