/* SPDX-License-Identifier: MIT */
/*
 * Attention on request beside everything else: whatever the threads and the runs in between, nothing kept, and every
 * argument that can be wrong has one status and one message that names it, nothing is written, and the session is as
 * good as before.
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

#include "attention.h"
#include "exec/session.h"
#include "failure.h"
#include "memory_counted.h"
#include "models.h"
#include "picture.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ------------------------------------------------------------------------------------------------------------------
 * Beside runs
 */

static swin_maps run(swin_session *session, const swin_model *model, const swin_image *image, unsigned levels)
{
    swin_error err;
    swin_maps maps = picture_maps(model, image->height, image->width, 1, levels, SWIN_LAYOUT_NCHW);
    if (swin_session_run(session, image, 1, &maps, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    return maps;
}

/* The weights of every block's windows and of a query are the same bits with any number of threads, and runs in between
 * give the maps that they give alone. */
static void neither_threads_nor_runs_matter(void **state)
{
    (void)state;
    static const int32_t threads[] = {1, 2, 3, 7}, sizes[][2] = {{97, 131}, {33, 17}, {200, 150}};
    for (int which = 0; which < MODEL_COUNT; which++) {
        const int32_t precision = which % 2 == 0 ? SWIN_PRECISION_F32 : SWIN_PRECISION_BF16;
        swin_model *model = models_make(which, precision);
        const swin_config config = models_config(which);
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            float *planes = picture_planes(sizes[i][0], sizes[i][1], i, 1);
            const swin_image image = picture_image(planes, sizes[i][0], sizes[i][1]);
            swin_session *bystander = models_session(model, precision, 2);
            swin_maps expected = run(bystander, model, &image, 0xf);
            swin_session_destroy(bystander);
            swin_attention first[SWIN_MAX_STAGES][2];
            for (size_t t = 0; t < COUNT_OF(threads); t++) {
                swin_session *session = models_session(model, precision, threads[t]);
                for (int32_t request_number = 0; request_number < 2 * config.stages; request_number++) {
                    swin_attention_request request;
                    swin_attention_request_init(&request, sizeof request);
                    request.stage = request_number / 2;
                    request.block = request_number % 2;
                    request.view = request_number % 3 == 0 ? SWIN_ATTENTION_ON_MAP : SWIN_ATTENTION_IN_WINDOW;
                    request.window = SWIN_WINDOW_EACH;
                    swin_attention_info info;
                    swin_attention got = attention_of(session, model, &image, &request, &info);
                    if (t == 0) {
                        first[request.stage][request.block] = got;
                    } else {
                        const swin_attention *one = &first[request.stage][request.block];
                        assert_memory_equal(got.weights, one->weights, info.weight_count * sizeof *got.weights);
                        assert_memory_equal(got.tokens, one->tokens, info.token_count * sizeof *got.tokens);
                        attention_release(&got);
                    }
                    if (request_number % 2 == 0)
                        continue;
                    swin_maps maps = run(session, model, &image, 0xf);
                    assert_true(picture_maps_equal(&maps, &expected));
                    picture_maps_release(&maps);
                }
                swin_session_destroy(session);
            }
            for (int32_t s = 0; s < config.stages; s++) {
                attention_release(&first[s][0]);
                attention_release(&first[s][1]);
            }
            picture_maps_release(&expected);
            free(planes);
        }
        swin_model_destroy(model);
        assert_int_equal(memory_live_blocks(), 0);
    }
}

/* A request gives its memory back: a session that was asked holds what a session holds that only ran, a run of a known
 * size allocates nothing afterwards, and asking again and again holds no more. */
static void nothing_is_kept(void **state)
{
    (void)state;
    swin_model *model = models_make(MODEL_PLAIN, SWIN_PRECISION_F32);
    float *planes = picture_planes(97, 131, 1, 1);
    const swin_image image = picture_image(planes, 97, 131);
    swin_session *session = models_session(model, SWIN_PRECISION_F32, 2);
    swin_maps maps = run(session, model, &image, 0xf);
    picture_maps_release(&maps);
    const size_t blocks = memory_live_blocks(), bytes = memory_live_bytes();
    for (int32_t again = 0; again < 5; again++) {
        swin_attention_request request;
        swin_attention_request_init(&request, sizeof request);
        request.stage = again % 4;
        request.view = again % 2;
        swin_attention_info info;
        swin_attention got = attention_of(session, model, &image, &request, &info);
        attention_release(&got);
        assert_int_equal(memory_live_blocks(), blocks);
        assert_int_equal(memory_live_bytes(), bytes);
    }
    const size_t allocations = memory_allocations();
    maps = run(session, model, &image, 0xf);
    picture_maps_release(&maps);
    assert_int_equal(memory_allocations(), allocations);
    swin_session_destroy(session);
    swin_model_destroy(model);
    free(planes);
    assert_int_equal(memory_live_blocks(), 0);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Arguments
 */

enum { HEIGHT = 61, WIDTH = 90 }; /* maps of 16 x 23, 8 x 12, 4 x 6; windows of 12 */

typedef struct later_request {
    swin_attention_request request;
    uint64_t more;
} later_request;

typedef struct later_attention {
    swin_attention attention;
    uint64_t more;
} later_attention;

typedef struct call {
    swin_session *session;
    swin_image image;
    const swin_image *given_image;
    later_request request;
    const swin_attention_request *given_request;
    later_attention attention;
    const swin_attention *given_attention;
} call;

/* One line each: what is spoilt. */
#define SPOIL(name, statement)                                                                                         \
    static void name(call *c)                                                                                          \
    {                                                                                                                  \
        statement;                                                                                                     \
    }
#define IN_WINDOW c->request.request.view = SWIN_ATTENTION_IN_WINDOW
SPOIL(no_session, c->session = NULL)
SPOIL(no_image, c->given_image = NULL)
SPOIL(no_request, c->given_request = NULL)
SPOIL(no_attention, c->given_attention = NULL)
SPOIL(no_data, c->image.data = NULL)
SPOIL(format_9, c->image.format = 9)
SPOIL(height_0, c->image.height = 0)
SPOIL(image_uninitialised, c->image.struct_size = 0)
SPOIL(huge_canvas, c->image.canvas_height = c->image.canvas_width = INT32_MAX)
SPOIL(request_uninitialised, c->request.request.struct_size = 0)
SPOIL(request_absurd, c->request.request.struct_size = SIZE_MAX)
SPOIL(request_of_the_future, c->request.request.struct_size = sizeof c->request; c->request.more = 1)
SPOIL(stage_negative, c->request.request.stage = -1)
SPOIL(stage_beyond, c->request.request.stage = 3)
SPOIL(block_negative, c->request.request.block = -1)
SPOIL(block_beyond, c->request.request.block = 2)
SPOIL(head_beyond, c->request.request.head = 4)
SPOIL(head_unknown, c->request.request.head = -3)
SPOIL(view_negative, c->request.request.view = -1)
SPOIL(view_2, c->request.request.view = 2)
SPOIL(reserved, c->request.request.reserved = 1)
SPOIL(query_above, c->request.request.query[0] = -1)
SPOIL(query_below, c->request.request.query[0] = HEIGHT)
SPOIL(query_left, c->request.request.query[1] = INT32_MIN)
SPOIL(query_right, c->request.request.query[1] = WIDTH)
SPOIL(window_unknown, IN_WINDOW; c->request.request.window = -2)
SPOIL(window_beyond, IN_WINDOW; c->request.request.window = 1)
SPOIL(attention_uninitialised, c->attention.attention.struct_size = 0)
SPOIL(attention_of_the_future, c->attention.attention.struct_size = sizeof c->attention; c->attention.more = 1)
SPOIL(no_weights, c->attention.attention.weights = NULL)
SPOIL(few_weights, c->attention.attention.weight_capacity--)
SPOIL(few_weights_of_windows, IN_WINDOW)
SPOIL(few_tokens, c->attention.attention.token_capacity--)
SPOIL(tokens_cut, c->attention.attention.struct_size = offsetof(swin_attention, token_capacity))
SPOIL(odd_weights, c->attention.attention.weights = (float *)(void *)((char *)c->attention.attention.weights + 2))
SPOIL(odd_tokens, c->attention.attention.tokens = (int32_t *)(void *)((char *)c->attention.attention.tokens + 1))

static const struct {
    void (*spoil)(call *c);
    const char *name;
    swin_status status;
    const char *message; /* part of it */
} call_cases[] = {
#define CASE(spoil, status, message)                                                                                   \
    {                                                                                                                  \
        spoil, #spoil, SWIN_ERR_##status, message                                                                      \
    }
    CASE(no_session, ARGUMENT, "session is NULL"),
    CASE(no_image, ARGUMENT, "image is NULL"),
    CASE(no_request, ARGUMENT, "request is NULL"),
    CASE(no_attention, ARGUMENT, "attention is NULL"),
    CASE(no_data, ARGUMENT, "data is NULL"),
    CASE(format_9, ARGUMENT, "format is 9"),
    CASE(height_0, ARGUMENT, "0 x 90 pixels"),
    CASE(image_uninitialised, ARGUMENT, "image has struct_size 0"),
    CASE(huge_canvas, LIMIT, "image of 2147483647 x 2147483647 pixels"),
    CASE(request_uninitialised, ARGUMENT, "request has struct_size 0"),
    CASE(request_absurd, ARGUMENT, "request has struct_size"),
    CASE(request_of_the_future, ARGUMENT, "request has a field set that this libswin"),
    CASE(stage_negative, ARGUMENT, "request.stage is -1, expected 0 to 2"),
    CASE(stage_beyond, ARGUMENT, "request.stage is 3, expected 0 to 2"),
    CASE(block_negative, ARGUMENT, "request.block is -1, expected 0 to 1"),
    CASE(block_beyond, ARGUMENT, "request.block is 2, expected 0 to 1"),
    CASE(head_beyond, ARGUMENT, "request.head is 4, expected -2 to 3"),
    CASE(head_unknown, ARGUMENT, "request.head is -3"),
    CASE(view_negative, ARGUMENT, "request.view is -1, expected 0 to 1"),
    CASE(view_2, ARGUMENT, "request.view is 2"),
    CASE(reserved, ARGUMENT, "request.reserved is 1"),
    CASE(query_above, ARGUMENT, "request.query is row -1, column 0, outside of 61 x 90 pixels"),
    CASE(query_below, ARGUMENT, "request.query is row 61, column 0"),
    CASE(query_left, ARGUMENT, "request.query is row 0, column -2147483648"),
    CASE(query_right, ARGUMENT, "request.query is row 0, column 90"),
    CASE(window_unknown, ARGUMENT, "request.window is -2, expected -1 to 0"),
    CASE(window_beyond, ARGUMENT, "request.window is 1, expected -1 to 0"),
    CASE(attention_uninitialised, ARGUMENT, "attention has struct_size 0"),
    CASE(attention_of_the_future, ARGUMENT, "attention has a field set that this libswin"),
    CASE(no_weights, ARGUMENT, "attention.weights is NULL"),
    CASE(few_weights, ARGUMENT, "attention.weight_capacity is 95 floats, expected at least 96"),
    CASE(few_weights_of_windows, ARGUMENT, "attention.weight_capacity is 96 floats, expected at least 20736"),
    CASE(few_tokens, ARGUMENT, "attention.token_capacity is 143 entries, expected at least 144"),
    CASE(tokens_cut, ARGUMENT, "attention.token_capacity is 0 entries"),
    CASE(odd_weights, ARGUMENT, "not aligned to 4 bytes"),
    CASE(odd_tokens, ARGUMENT, "not aligned to 4 bytes"),
#undef CASE
};

/* Stage 1, block 0, the mean over the heads, of pixel (0, 0). */
static void begin_call(call *c, swin_session *session, const swin_model *model, const float *planes)
{
    memset(c, 0, sizeof *c);
    c->session = session;
    c->image = picture_image(planes, HEIGHT, WIDTH);
    swin_attention_request_init(&c->request.request, sizeof c->request.request);
    c->request.request.stage = 1;
    swin_attention_info info;
    c->attention.attention = attention_room(model, &c->image, &c->request.request, &info);
    c->given_image = &c->image;
    c->given_request = &c->request.request;
    c->given_attention = &c->attention.attention;
}

static swin_status make_call(const call *c, swin_error *err)
{
    return swin_session_attention(c->session, c->given_image, c->given_request, c->given_attention, err);
}

static void a_bad_request_does_nothing(void **state)
{
    (void)state;
    swin_model *model = models_make(MODEL_LARGE, SWIN_PRECISION_F32);
    swin_session *session = models_session(model, SWIN_PRECISION_F32, 2);
    float *planes = picture_planes(HEIGHT, WIDTH, 1, 1);
    call good;
    begin_call(&good, session, model, planes);
    assert_int_equal(make_call(&good, NULL), SWIN_OK);
    for (size_t i = 0; i < COUNT_OF(call_cases); i++) {
        call c;
        begin_call(&c, session, model, planes);
        swin_attention room = c.attention.attention; /* as it was */
        call_cases[i].spoil(&c);
        swin_error err = failure_stale();
        failure_check(make_call(&c, &err), call_cases[i].status, &err, call_cases[i].message, call_cases[i].name);
        assert_int_equal(make_call(&c, NULL), call_cases[i].status);
        for (size_t f = 0; f < room.weight_capacity; f++)
            assert_true(isnan(room.weights[f]));
        for (size_t f = 0; f < room.token_capacity; f++)
            assert_int_equal(room.tokens[f], 0x7f7f7f7f);
        /* and the session still works */
        call again = good;
        again.attention.attention = room;
        again.given_attention = &again.attention.attention;
        err = failure_stale();
        assert_int_equal(make_call(&again, &err), SWIN_OK);
        assert_int_equal(err.status, 0);
        assert_string_equal(err.message, "");
        assert_memory_equal(room.weights, good.attention.attention.weights, room.weight_capacity * sizeof(float));
        attention_release(&room);
    }
    attention_release(&good.attention.attention);
    free(planes);
    swin_session_destroy(session);
    swin_model_destroy(model);
    assert_int_equal(memory_live_blocks(), 0);
}

/* What can be asked before anything is computed; and structs of other versions of the header. */
static void a_request_is_checked_beforehand(void **state)
{
    (void)state;
    swin_model *model = models_make(MODEL_LARGE, SWIN_PRECISION_F32);
    swin_attention_request request;
    swin_attention_request_init(&request, sizeof request);
    assert_int_equal(request.head, SWIN_HEAD_MEAN);
    request.stage = 1;
    swin_attention_info info;
    swin_error err = failure_stale();
    const size_t size = sizeof info;
#define INFO(model, height, width, request, info)                                                                      \
    swin_model_attention_info(model, height, width, request, info, size, &err)
    failure_check(INFO(NULL, 9, 9, &request, &info), SWIN_ERR_ARGUMENT, &err, "model is NULL", "");
    failure_check(INFO(model, 9, 9, NULL, &info), SWIN_ERR_ARGUMENT, &err, "request is NULL", "");
    failure_check(INFO(model, 9, 9, &request, NULL), SWIN_ERR_ARGUMENT, &err, "info is NULL", "");
    failure_check(INFO(model, 0, 9, &request, &info), SWIN_ERR_ARGUMENT, &err, "height is 0", "");
    failure_check(INFO(model, 9, -1, &request, &info), SWIN_ERR_ARGUMENT, &err, "width is -1", "");
    failure_check(INFO(model, INT32_MAX, INT32_MAX, &request, &info), SWIN_ERR_LIMIT, &err, "too many", "");
    request.query[1] = 9;
    failure_check(INFO(model, 9, 9, &request, &info), SWIN_ERR_ARGUMENT, &err, "row 0, column 9", "");
    assert_int_equal(INFO(model, 9, 10, &request, &info), SWIN_OK);
    assert_string_equal(err.message, "");
    assert_int_equal(info.stride, 8);
    assert_int_equal(info.heads, 4);
    assert_int_equal(info.weight_count, 2 * 2);
    assert_int_equal(info.token_count, 12 * 12);
    assert_int_equal(info.cell[1], 1);

    /* of an earlier program, whose request ends behind the query: zeros */
    request.window = 77;
    request.struct_size = offsetof(swin_attention_request, window);
    swin_attention_info less;
    memset(&less, 0x55, sizeof less);
    const size_t cut = offsetof(swin_attention_info, cell);
    assert_int_equal(swin_model_attention_info(model, 9, 10, &request, &less, cut, &err), SWIN_OK);
    assert_int_equal(less.windows[1], 1);
    assert_int_equal(less.cell[0], 0x55555555);
    failure_check(swin_model_attention_info(model, 9, 10, &request, &less, 3, &err), SWIN_ERR_ARGUMENT, &err,
                  "struct_size of info is 3", "");
#undef INFO
    swin_attention_request_init(NULL, sizeof request);
    swin_attention_request_init(&request, 3);
    assert_int_equal(request.window, 77);
    swin_attention_init(NULL, sizeof(swin_attention));
    swin_model_destroy(model);
}

/* Torchvision drops what is no whole patch: there is nothing to ask about there. */
static void a_pixel_without_a_patch_is_refused(void **state)
{
    (void)state;
    swin_config config = models_config(MODEL_PLAIN);
    config.lineage = SWIN_LINEAGE_TORCHVISION;
    swin_model *model;
    assert_int_equal(swin_model_create_random(&config, 1, NULL, &model, NULL), SWIN_OK);
    swin_attention_request request;
    swin_attention_request_init(&request, sizeof request);
    request.query[0] = 31;
    request.query[1] = 12;
    swin_attention_info info;
    swin_error err = failure_stale();
    failure_check(swin_model_attention_info(model, 33, 15, &request, &info, sizeof info, &err), SWIN_ERR_ARGUMENT, &err,
                  "row 31, column 12, beyond the last whole patch of 33 x 15 pixels", "");
    request.query[1] = 11;
    assert_int_equal(swin_model_attention_info(model, 33, 15, &request, &info, sizeof info, &err), SWIN_OK);
    assert_int_equal(info.cell[0], 7);
    assert_int_equal(info.cell[1], 2);
    swin_model_destroy(model);
}

/* ------------------------------------------------------------------------------------------------------------------
 * A session entered twice
 */

static sem_t inside, leave;
static bool hold;

swin_status __real_sw_session_attention(sw_session *s, const sw_pixels *pixels, const int32_t canvas[2],
                                        const swin_attention_request *request, const swin_attention_info *info,
                                        const swin_attention *out, swin_error *err);
swin_status __wrap_sw_session_attention(sw_session *s, const sw_pixels *pixels, const int32_t canvas[2],
                                        const swin_attention_request *request, const swin_attention_info *info,
                                        const swin_attention *out, swin_error *err);
swin_status __wrap_sw_session_attention(sw_session *s, const sw_pixels *pixels, const int32_t canvas[2],
                                        const swin_attention_request *request, const swin_attention_info *info,
                                        const swin_attention *out, swin_error *err)
{
    if (hold) {
        sem_post(&inside);
        sem_wait(&leave);
    }
    return __real_sw_session_attention(s, pixels, canvas, request, info, out, err);
}

static void *call_held(void *argument)
{
    return (void *)(uintptr_t)make_call(argument, NULL);
}

static void a_session_takes_one_thread_at_a_time(void **state)
{
    (void)state;
    swin_model *model = models_make(MODEL_LARGE, SWIN_PRECISION_F32);
    swin_session *session = models_session(model, SWIN_PRECISION_F32, 2);
    float *planes = picture_planes(HEIGHT, WIDTH, 1, 1);
    assert_int_equal(sem_init(&inside, 0, 0), 0);
    assert_int_equal(sem_init(&leave, 0, 0), 0);
    call first, second;
    begin_call(&first, session, model, planes);
    begin_call(&second, session, model, planes);
    swin_maps maps = picture_maps(model, HEIGHT, WIDTH, 1, 0xf, SWIN_LAYOUT_NCHW);
    hold = true;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, call_held, &first), 0);
    sem_wait(&inside);
    hold = false;
    swin_error err = failure_stale();
    failure_check(make_call(&second, &err), SWIN_ERR_STATE, &err, "in use by another thread", "second thread");
    failure_check(swin_session_run(session, &second.image, 1, &maps, &err), SWIN_ERR_STATE, &err,
                  "in use by another thread", "a run");
    sem_post(&leave);
    void *status;
    pthread_join(thread, &status);
    assert_int_equal((uintptr_t)status, SWIN_OK);
    assert_int_equal(make_call(&second, &err), SWIN_OK);
    assert_memory_equal(first.attention.attention.weights, second.attention.attention.weights,
                        first.attention.attention.weight_capacity * sizeof(float));
    attention_release(&first.attention.attention);
    attention_release(&second.attention.attention);
    picture_maps_release(&maps);
    free(planes);
    swin_session_destroy(session);
    swin_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neither_threads_nor_runs_matter),
        cmocka_unit_test(nothing_is_kept),
        cmocka_unit_test(a_bad_request_does_nothing),
        cmocka_unit_test(a_request_is_checked_beforehand),
        cmocka_unit_test(a_pixel_without_a_patch_is_refused),
        cmocka_unit_test(a_session_takes_one_thread_at_a_time),
    };
    return cmocka_run_group_tests_name("attention on request", tests, NULL, NULL);
}
