/* SPDX-License-Identifier: MIT */
/*
 * Every allocation and every call of oneDNN fails once, in opening, creating, running: a status, nothing left behind,
 * and everything that exists goes on working with the same results.
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

#include "attention.h"
#include "backend_refusing.h"
#include "failure.h"
#include "memory_counted.h"
#include "models.h"
#include "picture.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* A way to fail, and what a failure looks like. */
typedef struct way {
    void (*fail_after)(long count);
    bool (*fail_no_more)(void);
    swin_status status;
    int32_t backend;
    const char *name;
    long stride; /* of the calls that are tried: oneDNN's are many and much alike */
} way;

/* How many calls have failed, by the status that came of them. */
static long failures[SWIN_ERR_INTERNAL + 1];

static const way ways[] = {
    {memory_fail_after, memory_fail_no_more, SWIN_ERR_NO_MEMORY, 0, "memory", 1},
    {backend_fail_after, backend_fail_no_more, SWIN_ERR_BACKEND, BACKEND_REFUSAL, "oneDNN", 7},
};

static void check(const way *w, swin_status status, const swin_error *err, const char *what, long call)
{
    if (status != w->status || err->status != (int32_t)w->status || strlen(err->message) < 10)
        fail_msg("%s, call %ld to %s: status %d, stored %d, \"%s\"", what, call, w->name, (int)status, err->status,
                 err->message);
    failures[status]++;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Models
 */

static swin_status open_file(swin_model **model, swin_error *err)
{
    return swin_model_open(GOLDEN_DIRECTORY "/v1-detection.safetensors", NULL, model, err);
}

static swin_status create_v1(swin_model **model, swin_error *err)
{
    const swin_config config = models_config(MODEL_PLAIN);
    const swin_model_params params = {.struct_size = sizeof params, .precision = SWIN_PRECISION_F32};
    return swin_model_create_random(&config, 1, &params, model, err);
}

static swin_status create_v2(swin_model **model, swin_error *err)
{
    const swin_config config = models_config(MODEL_V2);
    const swin_model_params params = {.struct_size = sizeof params, .precision = SWIN_PRECISION_BF16};
    return swin_model_create_random(&config, 1, &params, model, err);
}

static void a_model_is_made_whole_or_not_at_all(void **state)
{
    (void)state;
    static swin_status (*const make[])(swin_model * *model, swin_error * err) = {open_file, create_v1, create_v2};
    for (size_t m = 0; m < COUNT_OF(make); m++) {
        for (size_t i = 0; i < COUNT_OF(ways); i++) {
            swin_status status = SWIN_ERR_INTERNAL;
            long call = 0;
            for (; status != SWIN_OK; call += ways[i].stride) {
                swin_model *model = (swin_model *)&status;
                swin_error err;
                ways[i].fail_after(call);
                status = make[m](&model, &err);
                assert_int_equal(ways[i].fail_no_more(), status != SWIN_OK);
                if (status == SWIN_OK) {
                    swin_model_destroy(model);
                } else {
                    assert_null(model);
                    check(&ways[i], status, &err, "making a model", call);
                    assert_int_equal(err.backend, ways[i].backend);
                }
                assert_int_equal(memory_live_blocks(), 0);
            }
            assert_true(call > 5);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Sessions and runs
 */

static const struct {
    int which;
    int32_t precision;
    bool session; /* is made with every failure too */
} models[] = {
    {MODEL_AMX, SWIN_PRECISION_F32, false},     {MODEL_PLAIN, SWIN_PRECISION_F32, true},
    {MODEL_PLAIN, SWIN_PRECISION_BF16, false},  {MODEL_V2, SWIN_PRECISION_BF16, true},
    {MODEL_CLAMPED, SWIN_PRECISION_F32, false},
};

/* Returns how many calls there were. */
static long fail_sessions(const way *w, const swin_model *model, const swin_session_params *params)
{
    swin_session *session = NULL;
    swin_status status = SWIN_ERR_INTERNAL;
    long call = 0;
    for (; status != SWIN_OK; call += w->stride) {
        swin_error err;
        session = (swin_session *)&status;
        w->fail_after(call);
        status = swin_session_create(model, params, &session, &err);
        assert_int_equal(w->fail_no_more(), status != SWIN_OK);
        if (status != SWIN_OK) {
            assert_null(session);
            check(w, status, &err, "making a session", call);
            assert_int_equal(err.backend, w->backend);
        }
    }
    swin_session_destroy(session);
    return call;
}

/* A first precision is packed with the model, the other one when a session asks for it; that stays, although the
 * session fails, so that what comes after it fails with the next sessions. */
static void a_session_is_made_whole_or_not_at_all(void **state)
{
    (void)state;
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        for (size_t i = 0; i < COUNT_OF(ways) && models[m].session; i++) {
            const int32_t precision = models[m].precision;
            const int32_t other = precision == SWIN_PRECISION_F32 ? SWIN_PRECISION_BF16 : SWIN_PRECISION_F32;
            swin_model *model = models_make(models[m].which, other);
            const swin_session_params params = {.struct_size = sizeof params, .precision = precision, .threads = 3};
            assert_true(fail_sessions(&ways[i], model, &params) > 10);
            assert_true(fail_sessions(&ways[i], model, &params) > 10);
            swin_model_destroy(model);
            assert_int_equal(memory_live_blocks(), 0);
        }
    }
}

static swin_maps try_run(swin_session *session, const swin_model *model, const swin_image *image, size_t count,
                         swin_status *status, swin_error *err)
{
    swin_image images[3] = {*image, *image, *image};
    assert_true(count <= COUNT_OF(images));
    swin_maps maps = picture_maps(model, image->height, image->width, count, 0xf, SWIN_LAYOUT_NCHW);
    *status = swin_session_run(session, images, count, &maps, err);
    return maps;
}

/* What another session of the model, made before, computes all the while. */
static void check_unharmed(swin_session *session, const swin_model *model, const swin_image *image,
                           const swin_maps *expected, const char *what)
{
    swin_status status;
    swin_error err;
    swin_maps maps = try_run(session, model, image, 1, &status, &err);
    if (status != SWIN_OK)
        fail_msg("%s: %s", what, err.message);
    if (!picture_maps_equal(&maps, expected))
        fail_msg("%s: other results", what);
    picture_maps_release(&maps);
}

/* Runs that need more and more room: their maps are those of the first image. */
typedef struct trial {
    int32_t height, width;
    size_t count;
    float *planes;
    swin_image image;
    swin_maps expected; /* of one image */
} trial;

static void make_trials(trial trials[3], swin_session *session, const swin_model *model)
{
    static const int32_t sizes[3][2] = {{9, 13}, {12, 20}, {60, 70}};
    for (int t = 0; t < 3; t++) {
        trial *x = &trials[t];
        *x = (trial){.height = sizes[t][0], .width = sizes[t][1], .count = t == 1 ? 3 : 1};
        x->planes = picture_planes(x->height, x->width, 1, 1);
        x->image = picture_image(x->planes, x->height, x->width);
        swin_status status;
        swin_error err;
        x->expected = try_run(session, model, &x->image, 1, &status, &err);
        assert_int_equal(status, SWIN_OK);
    }
}

/* Whether a run in which one call failed succeeds all the same: then its maps must be right. */
static bool survives(const way *w, swin_session *session, const swin_model *model, const trial *x, long call)
{
    swin_status status;
    swin_error err;
    w->fail_after(call);
    swin_maps maps = try_run(session, model, &x->image, x->count, &status, &err);
    assert_int_equal(w->fail_no_more(), status != SWIN_OK);
    if (status != SWIN_OK)
        check(w, status, &err, "a run", call);
    for (int s = 0; s < SWIN_MAX_STAGES && status == SWIN_OK; s++) {
        for (size_t i = 0; i < x->count && maps.data[s] != NULL; i++)
            assert_memory_equal(maps.data[s] + i * x->expected.capacity[s], x->expected.data[s],
                                x->expected.capacity[s] * sizeof(float));
    }
    picture_maps_release(&maps);
    return status == SWIN_OK;
}

static void check_runs(const way *w, swin_model *model, int32_t precision, long stride)
{
    swin_session *bystander = models_session(model, precision, 2);
    trial trials[3];
    make_trials(trials, bystander, model);
    for (int t = 0; t < 3; t++) {
        bool done = false;
        for (long call = 0; !done; call += stride) {
            swin_session *session = models_session(model, precision, 2);
            for (int earlier = 0; earlier < t; earlier++) /* so that buffers exist, and are too small */
                check_unharmed(session, model, &trials[earlier].image, &trials[earlier].expected, "before");
            done = survives(w, session, model, &trials[t], call);
            assert_true(call > 0 || !done);
            for (int later = 0; later < 3 && t > 0; later++)
                check_unharmed(session, model, &trials[later].image, &trials[later].expected, "the session itself");
            check_unharmed(session, model, &trials[t].image, &trials[t].expected, "the session itself");
            check_unharmed(bystander, model, &trials[t].image, &trials[t].expected, "another session");
            swin_session_destroy(session);
        }
    }
    for (int t = 0; t < 3; t++) {
        picture_maps_release(&trials[t].expected);
        free(trials[t].planes);
    }
    swin_session_destroy(bystander);
}

static void a_run_that_fails_spoils_nothing(void **state)
{
    (void)state;
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        swin_model *model = models_make(models[m].which, models[m].precision);
        check_runs(&ways[0], model, models[m].precision, 1);
        check_runs(&ways[1], model, models[m].precision, 211); /* there are thousands */
        swin_model_destroy(model);
        assert_int_equal(memory_live_blocks(), 0);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Attention on request
 */

/* Of a session that has seen nothing, and of one that has run. */
static void check_attention(const way *w, const swin_model *model, int32_t precision, long stride)
{
    float *planes = picture_planes(60, 70, 1, 1);
    const swin_image image = picture_image(planes, 60, 70);
    swin_attention_request request;
    swin_attention_request_init(&request, sizeof request);
    request.stage = 1;
    request.block = 1;
    request.view = SWIN_ATTENTION_IN_WINDOW;
    request.window = SWIN_WINDOW_EACH;
    swin_session *bystander = models_session(model, precision, 2);
    swin_attention_info info;
    swin_attention expected = attention_of(bystander, model, &image, &request, &info);
    swin_status status;
    swin_error err;
    swin_maps maps = try_run(bystander, model, &image, 1, &status, &err);
    assert_int_equal(status, SWIN_OK);
    for (int ran = 0; ran < 2; ran++) {
        status = SWIN_ERR_INTERNAL;
        long call = 0;
        for (; status != SWIN_OK; call += stride) {
            swin_session *session = models_session(model, precision, 2);
            if (ran)
                check_unharmed(session, model, &image, &maps, "before");
            const size_t blocks = memory_live_blocks();
            swin_attention got = attention_room(model, &image, &request, &info);
            w->fail_after(call);
            status = swin_session_attention(session, &image, &request, &got, &err);
            assert_int_equal(w->fail_no_more(), status != SWIN_OK);
            if (status != SWIN_OK)
                check(w, status, &err, "attention", call);
            if (ran)
                assert_int_equal(memory_live_blocks(), blocks);
            attention_release(&got);
            got = attention_of(session, model, &image, &request, &info);
            assert_memory_equal(got.weights, expected.weights, info.weight_count * sizeof *got.weights);
            attention_release(&got);
            check_unharmed(session, model, &image, &maps, "the session itself");
            swin_session_destroy(session);
        }
        assert_true(call > 5);
    }
    picture_maps_release(&maps);
    attention_release(&expected);
    swin_session_destroy(bystander);
    free(planes);
}

static void attention_that_fails_spoils_nothing(void **state)
{
    (void)state;
    for (size_t m = 0; m < COUNT_OF(models); m++) {
        swin_model *model = models_make(models[m].which, models[m].precision);
        check_attention(&ways[0], model, models[m].precision, 1);
        check_attention(&ways[1], model, models[m].precision, 97);
        swin_model_destroy(model);
        assert_int_equal(memory_live_blocks(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_made_whole_or_not_at_all),
        cmocka_unit_test(a_session_is_made_whole_or_not_at_all),
        cmocka_unit_test(a_run_that_fails_spoils_nothing),
        cmocka_unit_test(attention_that_fails_spoils_nothing),
    };
    const int failed = cmocka_run_group_tests_name("failures", tests, NULL, NULL);
    print_message("%ld allocations failed, %ld calls of oneDNN refused\n", failures[SWIN_ERR_NO_MEMORY],
                  failures[SWIN_ERR_BACKEND]);
    return failed;
}
