/* SPDX-License-Identifier: MIT */
/*
 * Every argument that can be wrong outside of a run: one status, one message that names it, nothing half-made.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "failure.h"
#include "memory_counted.h"
#include "models.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

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
 * Making models and sessions
 */

typedef struct later_params {
    swin_model_params params;
    uint64_t more;
} later_params;

#define PARAMS(...)                                                                                                    \
    {                                                                                                                  \
        .params = {.struct_size = sizeof(swin_model_params), __VA_ARGS__ }                                             \
    }

static const struct {
    later_params given;
    const char *message;
} params_cases[] = {
    {{.params = {.struct_size = 0}}, "params has struct_size 0"},
    {{.params = {.struct_size = 7}}, "params has struct_size 7"},
    {{.params = {.struct_size = SIZE_MAX}}, "params has struct_size"},
    {{.params = {.struct_size = sizeof(later_params)}, .more = 1}, "params has a field set that this libswin"},
    {PARAMS(.version = 3), "params.version is 3"},
    {PARAMS(.version = -1), "params.version is -1"},
    {PARAMS(.lineage = 7), "params.lineage is 7"},
    {PARAMS(.lineage = -1), "params.lineage is -1"},
    {PARAMS(.out_norm = 3), "params.out_norm is 3"},
    {PARAMS(.precision = 3), "params.precision is 3"},
    {PARAMS(.precision = INT32_MIN), "params.precision is -2147483648"},
    {PARAMS(.window = {{7, 7}, {7, 0}}), "params.window of stage 1 is 7 x 0"},
    {PARAMS(.window = {{-7, 7}}), "params.window of stage 0 is -7 x 7"},
    {PARAMS(.pretrained_window = {{0, 0}, {0, 0}, {0, 12}}), "params.pretrained_window of stage 2 is 0 x 12"},
    {PARAMS(.image_size = {224, 0}), "params.image_size is 224 x 0"},
    {PARAMS(.image_size = {-1, -1}), "params.image_size is -1 x -1"},
};

static void bad_parameters_make_no_model(void **state)
{
    (void)state;
    const swin_config config = models_config(MODEL_AMX);
    for (size_t i = 0; i < COUNT_OF(params_cases); i++) {
        const swin_model_params *params = &params_cases[i].given.params;
        swin_model *made = model;
        swin_error err = failure_stale();
        failure_check(swin_model_create_random(&config, 1, params, &made, &err), SWIN_ERR_ARGUMENT, &err,
                      params_cases[i].message, "create_random");
        assert_null(made);
        made = model;
        err = failure_stale();
        failure_check(swin_model_open("no such file", params, &made, &err), SWIN_ERR_ARGUMENT, &err,
                      params_cases[i].message, "open");
        assert_null(made);
    }
}

static void what_a_model_needs_is_asked_for(void **state)
{
    (void)state;
    swin_config config = models_config(MODEL_AMX);
    swin_model *made = model;
    swin_error err = failure_stale();
    failure_check(swin_model_create_random(NULL, 1, NULL, &made, &err), SWIN_ERR_ARGUMENT, &err, "config is NULL", "");
    assert_null(made);
    failure_check(swin_model_create_random(&config, 1, NULL, NULL, &err), SWIN_ERR_ARGUMENT, &err, "model is NULL", "");
    failure_check(swin_model_open(NULL, NULL, &made, &err), SWIN_ERR_ARGUMENT, &err, "path is NULL", "");
    failure_check(swin_model_open("x", NULL, NULL, &err), SWIN_ERR_ARGUMENT, &err, "model is NULL", "");
    made = model;
    failure_check(swin_model_open("no such file", NULL, &made, &err), SWIN_ERR_IO, &err, "no such file", "");
    assert_null(made);
    config.struct_size = 0;
    failure_check(swin_model_create_random(&config, 1, NULL, &made, &err), SWIN_ERR_ARGUMENT, &err,
                  "config has struct_size 0", "");
    config = models_config(MODEL_AMX);
    config.heads[2] = 5;
    failure_check(swin_model_create_random(&config, 1, NULL, &made, &err), SWIN_ERR_ARGUMENT, &err, "heads of stage 2",
                  "");
    assert_null(made);
    swin_model_destroy(NULL);
}

static void bad_parameters_make_no_session(void **state)
{
    (void)state;
    typedef struct later_session {
        swin_session_params params;
        uint64_t more;
    } later_session;
    static const struct {
        later_session given;
        const char *message;
    } cases[] = {
        {{.params = {.struct_size = 0}}, "params has struct_size 0"},
        {{.params = {.struct_size = SIZE_MAX / 3}}, "params has struct_size"},
        {{.params = {.struct_size = sizeof(later_session)}, .more = 9}, "params has a field set that this libswin"},
        {{.params = {.struct_size = sizeof(swin_session_params), .precision = 3}}, "params.precision is 3"},
        {{.params = {.struct_size = sizeof(swin_session_params), .precision = -1}}, "params.precision is -1"},
        {{.params = {.struct_size = sizeof(swin_session_params), .threads = -1}}, "params.threads is -1"},
        {{.params = {.struct_size = sizeof(swin_session_params), .threads = 4097}}, "params.threads is 4097"},
    };
    swin_error err;
    swin_session *made;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        made = session;
        err = failure_stale();
        failure_check(swin_session_create(model, &cases[i].given.params, &made, &err), SWIN_ERR_ARGUMENT, &err,
                      cases[i].message, "session");
        assert_null(made);
    }
    made = session;
    failure_check(swin_session_create(NULL, NULL, &made, &err), SWIN_ERR_ARGUMENT, &err, "model is NULL", "");
    assert_null(made);
    failure_check(swin_session_create(model, NULL, NULL, &err), SWIN_ERR_ARGUMENT, &err, "session is NULL", "");
    swin_session_destroy(NULL);

    /* later and earlier programs */
    later_session later = {.params = {.struct_size = sizeof later, .precision = SWIN_PRECISION_F32, .threads = 1}};
    assert_int_equal(swin_session_create(model, &later.params, &made, &err), SWIN_OK);
    swin_session_destroy(made);
    swin_session_params early = {
        .struct_size = offsetof(swin_session_params, threads), .precision = SWIN_PRECISION_F32, .threads = -5};
    assert_int_equal(swin_session_create(model, &early, &made, &err), SWIN_OK);
    swin_session_destroy(made);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Asking
 */

static swin_status ask_config(void *p, size_t size, swin_error *err)
{
    return swin_model_config(model, p, size, err);
}
static swin_status ask_preset(void *p, size_t size, swin_error *err)
{
    return swin_config_preset(p, size, "swin_tiny_patch4_window7_224", err);
}
static swin_status ask_model(void *p, size_t size, swin_error *err)
{
    return swin_model_get_info(model, p, size, err);
}
static swin_status ask_session(void *p, size_t size, swin_error *err)
{
    return swin_session_get_info(session, p, size, err);
}
static swin_status ask_profile(void *p, size_t size, swin_error *err)
{
    return swin_session_get_profile(session, p, size, err);
}

static void answers_fit_the_struct_that_is_given(void **state)
{
    (void)state;
    static const struct {
        swin_status (*ask)(void *p, size_t size, swin_error *err);
        size_t size;
    } questions[] = {
        {ask_config, sizeof(swin_config)},    {ask_preset, sizeof(swin_config)},
        {ask_model, sizeof(swin_model_info)}, {ask_session, sizeof(swin_session_info)},
        {ask_profile, sizeof(swin_profile)},
    };
    for (size_t i = 0; i < COUNT_OF(questions); i++) {
        const size_t size = questions[i].size;
        unsigned char whole[600], part[600];
        swin_error err = failure_stale();
        assert_true(size + 64 <= sizeof whole);
        memset(whole, 0xcd, sizeof whole);
        assert_int_equal(questions[i].ask(whole, size, &err), SWIN_OK);
        assert_string_equal(err.message, "");
        assert_memory_equal(whole, &size, sizeof size);
        assert_int_equal(whole[size], 0xcd);
        /* an earlier program's struct: its part and no more; a later one's: the rest zero */
        for (size_t given = sizeof(size_t); given <= size + 16; given += 8) {
            memset(part, 0xcd, sizeof part);
            assert_int_equal(questions[i].ask(part, given, &err), SWIN_OK);
            assert_memory_equal(part, &given, sizeof given);
            const size_t common = given < size ? given : size;
            assert_memory_equal(part + sizeof(size_t), whole + sizeof(size_t), common - sizeof(size_t));
            for (size_t b = common; b < given; b++)
                assert_int_equal(part[b], 0);
            assert_int_equal(part[given], 0xcd);
        }
        failure_check(questions[i].ask(NULL, size, &err), SWIN_ERR_ARGUMENT, &err, "is NULL", "");
        failure_check(questions[i].ask(whole, 7, &err), SWIN_ERR_ARGUMENT, &err, "is 7, expected", "");
        failure_check(questions[i].ask(whole, 0, &err), SWIN_ERR_ARGUMENT, &err, "is 0, expected", "");
        failure_check(questions[i].ask(whole, SIZE_MAX, &err), SWIN_ERR_ARGUMENT, &err, "struct_size of", "");
    }
    swin_error err;
    unsigned char room[600];
    failure_check(swin_model_config(NULL, (void *)room, sizeof(swin_config), &err), SWIN_ERR_ARGUMENT, &err,
                  "model is NULL", "");
    failure_check(swin_model_get_info(NULL, (void *)room, sizeof(swin_model_info), &err), SWIN_ERR_ARGUMENT, &err,
                  "model is NULL", "");
    failure_check(swin_session_get_info(NULL, (void *)room, sizeof(swin_session_info), &err), SWIN_ERR_ARGUMENT, &err,
                  "session is NULL", "");
    failure_check(swin_session_get_profile(NULL, (void *)room, sizeof(swin_profile), &err), SWIN_ERR_ARGUMENT, &err,
                  "session is NULL", "");
    failure_check(swin_config_preset((void *)room, sizeof(swin_config), NULL, &err), SWIN_ERR_ARGUMENT, &err,
                  "name is NULL", "");
    failure_check(swin_config_preset((void *)room, sizeof(swin_config), "swin_gigantic", &err), SWIN_ERR_ARGUMENT, &err,
                  "swin_gigantic", "");
    assert_null(swin_model_tensor_name(NULL, SWIN_TENSOR_USED, 0));
    assert_null(swin_model_tensor_name(model, SWIN_TENSOR_USED, SIZE_MAX));
    assert_null(swin_model_tensor_name(model, (swin_tensor_use)99, 0));
}

static void sizes_of_maps_are_asked_for_with_care(void **state)
{
    (void)state;
    swin_output_info infos[SWIN_MAX_STAGES + 1];
    memset(infos, 0xcd, sizeof infos);
    swin_error err = failure_stale();
    failure_check(swin_model_output_info(NULL, 1, 1, infos, &err), SWIN_ERR_ARGUMENT, &err, "model is NULL", "");
    failure_check(swin_model_output_info(model, 1, 1, NULL, &err), SWIN_ERR_ARGUMENT, &err, "infos is NULL", "");
    failure_check(swin_model_output_info(model, 0, 1, infos, &err), SWIN_ERR_ARGUMENT, &err, "height is 0", "");
    failure_check(swin_model_output_info(model, 1, -1, infos, &err), SWIN_ERR_ARGUMENT, &err, "width is -1", "");
    failure_check(swin_model_output_info(model, INT32_MAX, INT32_MAX, infos, &err), SWIN_ERR_LIMIT, &err, "too many",
                  "");
    assert_int_equal(infos[0].level, (int32_t)0xcdcdcdcd);
    assert_int_equal(swin_model_output_info(model, 97, 131, infos, &err), SWIN_OK);
    static const swin_output_info expected[SWIN_MAX_STAGES] = {
        {0, 4, 48, 25, 33, 1}, {1, 8, 96, 13, 17, 1}, {2, 16, 192, 7, 9, 1}, {0}}; /* three stages */
    assert_memory_equal(infos, expected, sizeof expected);
    assert_int_equal(infos[SWIN_MAX_STAGES].level, (int32_t)0xcdcdcdcd);
}

static void init_model_params(void *p, size_t size)
{
    swin_model_params_init(p, size);
}

static void init_session_params(void *p, size_t size)
{
    swin_session_params_init(p, size);
}

static void init_image(void *p, size_t size)
{
    swin_image_init(p, size);
}

static void init_maps(void *p, size_t size)
{
    swin_maps_init(p, size);
}

static void initialising_is_harmless(void **state)
{
    (void)state;
    swin_model_params_init(NULL, 100);
    swin_session_params_init(NULL, 100);
    swin_image_init(NULL, 100);
    swin_maps_init(NULL, 100);
    /* too small for struct_size: left alone; larger than known: zeroed to its end, and not beyond */
    unsigned char room[300];
    static void (*const init[])(void *, size_t) = {init_model_params, init_session_params, init_image, init_maps};
    for (size_t i = 0; i < COUNT_OF(init); i++) {
        for (size_t size = 0; size < 250; size++) {
            memset(room, 0xcd, sizeof room);
            init[i](room, size);
            assert_int_equal(room[size], 0xcd);
            if (size < sizeof size)
                assert_int_equal(room[0], 0xcd);
            else
                assert_memory_equal(room, &size, sizeof size);
            if (size > 220)
                assert_int_equal(room[size - 1], 0);
        }
    }
    swin_image image;
    swin_image_init(&image, sizeof image);
    assert_int_equal(image.format, SWIN_PIXEL_RGB8);
    assert_true(image.mean[0] == 123.675f && image.std[2] == 57.375f && image.row_stride == 0);
}

static void versions_and_statuses_have_names(void **state)
{
    (void)state;
    for (int status = SWIN_OK; status <= SWIN_ERR_INTERNAL; status++)
        assert_true(strlen(swin_status_string((swin_status)status)) > 1);
    assert_string_equal(swin_status_string(SWIN_ERR_ARGUMENT), "argument");
    assert_string_equal(swin_status_string(SWIN_ERR_INTERNAL), "internal fault");
    assert_string_equal(swin_status_string((swin_status)11), "unknown status");
    assert_string_equal(swin_status_string((swin_status)-1), "unknown status");
    unsigned major, minor, patch;
    assert_int_equal(sscanf(swin_version_string(), "%u.%u.%u", &major, &minor, &patch), 3);
    assert_int_equal(swin_version(), major * 10000 + minor * 100 + patch);
    assert_int_equal(swin_abi_version(), SWIN_ABI_VERSION);
    assert_true(swin_struct_size("swin_image") == sizeof(swin_image));
    assert_true(swin_struct_size("swin_attention") == sizeof(swin_attention));
    assert_true(swin_struct_size("swin_session") == 0 && swin_struct_size("") == 0 && swin_struct_size(NULL) == 0);
    assert_non_null(swin_config_preset_name(0));
    assert_null(swin_config_preset_name(SIZE_MAX));
}

static void the_self_test_ends(void **state)
{
    (void)state;
    size_t count = 0;
    swin_selftest_result result;
    swin_error err;
    for (;; count++) {
        assert_int_equal(swin_selftest(count, &result, sizeof result, &err), SWIN_OK);
        if (result.kernel == NULL)
            break;
        assert_true(result.struct_size == sizeof result && result.isa != NULL && result.error <= 1);
    }
    assert_true(count >= 19);
    assert_int_equal(swin_selftest(SIZE_MAX, &result, sizeof result, NULL), SWIN_OK);
    assert_null(result.kernel);
    err = failure_stale();
    failure_check(swin_selftest(0, NULL, sizeof result, &err), SWIN_ERR_ARGUMENT, &err, "result is NULL", "result");
    err = failure_stale();
    failure_check(swin_selftest(0, &result, 3, &err), SWIN_ERR_ARGUMENT, &err, "struct_size of result is 3", "size");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_self_test_ends),
        cmocka_unit_test(bad_parameters_make_no_model),          cmocka_unit_test(what_a_model_needs_is_asked_for),
        cmocka_unit_test(bad_parameters_make_no_session),        cmocka_unit_test(answers_fit_the_struct_that_is_given),
        cmocka_unit_test(sizes_of_maps_are_asked_for_with_care), cmocka_unit_test(initialising_is_harmless),
        cmocka_unit_test(versions_and_statuses_have_names),
    };
    return cmocka_run_group_tests_name("arguments", tests, set_up, tear_down);
}
