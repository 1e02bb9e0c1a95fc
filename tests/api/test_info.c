/* SPDX-License-Identifier: MIT */
/*
 * What a session says of itself: precision, kernels, sizes, and where its time went.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "exec/shared.h"
#include "models.h"
#include "picture.h"

static swin_session_info info_of(const swin_session *session)
{
    swin_session_info info;
    assert_int_equal(swin_session_get_info(session, &info, sizeof info, NULL), SWIN_OK);
    return info;
}

/* bf16 on a CPU with AMX, unless oneDNN is held to less: ONEDNN_MAX_CPU_ISA is set for some runs of this test. */
static void auto_is_what_is_fast_here(void **state)
{
    (void)state;
    const char *limit = getenv("ONEDNN_MAX_CPU_ISA");
    const bool held = limit != NULL && strstr(limit, "AMX") == NULL && strcmp(limit, "ALL") != 0 && limit[0] != '\0';
    const int32_t expected = sw_cpu_has_amx() && !held ? SWIN_PRECISION_BF16 : SWIN_PRECISION_F32;
    swin_model *model = models_make(MODEL_AMX, SWIN_PRECISION_AUTO);
    swin_session *session;
    assert_int_equal(swin_session_create(model, NULL, &session, NULL), SWIN_OK); /* all defaults */
    assert_int_equal(info_of(session).precision, expected);
    assert_int_equal(info_of(session).threads, sw_cpu_count());
    /* our own products keep to the limit too */
    assert_int_equal(strncmp(info_of(session).matmul, "swin:amx", 8) == 0, expected == SWIN_PRECISION_BF16);
    swin_session_destroy(session);
    for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
        session = models_session(model, precision, 1); /* as told, whatever is fast */
        assert_int_equal(info_of(session).precision, precision);
        assert_int_equal(info_of(session).threads, 1);
        swin_session_destroy(session);
    }
    swin_model_destroy(model);
}

static void auto_is_what_the_model_was_opened_with(void **state)
{
    (void)state;
    for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
        swin_model *model = models_make(MODEL_AMX, (swin_precision)precision);
        swin_session *session;
        assert_int_equal(swin_session_create(model, NULL, &session, NULL), SWIN_OK);
        assert_int_equal(info_of(session).precision, precision);
        swin_session_destroy(session);
        swin_model_destroy(model);
    }
}

static void a_session_names_what_it_uses(void **state)
{
    (void)state;
    swin_model *model = models_make(MODEL_PLAIN, SWIN_PRECISION_F32);
    swin_session *session = models_session(model, SWIN_PRECISION_F32, 1);
    const swin_session_info info = info_of(session);
    assert_string_equal(info.kernels, sw_kernels_for(sw_isa_best())->name);
    assert_int_equal(strncmp(info.backend, "oneDNN ", 7), 0);
    assert_true(strlen(info.matmul) > 2 && strncmp(info.matmul, "ref", 3) != 0);
    swin_session_destroy(session);
    swin_model_destroy(model);
}

/* Packed weights are shared: a second session adds none; a parameter takes two bytes in bf16, four in float32 or, with
 * AMX, three. */
static void weight_bytes_are_those_of_the_precision(void **state)
{
    (void)state;
    for (int which = 0; which < MODEL_COUNT; which++) {
        swin_model *model = models_make(which, SWIN_PRECISION_F32);
        swin_model_info model_info;
        assert_int_equal(swin_model_get_info(model, &model_info, sizeof model_info, NULL), SWIN_OK);
        for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
            swin_session *first = models_session(model, precision, 1), *second = models_session(model, precision, 1);
            const uint64_t bytes = info_of(first).weight_bytes, least = model_info.parameter_count;
            assert_int_equal(info_of(second).weight_bytes, bytes);
            assert_true(bytes > (precision == SWIN_PRECISION_F32 ? 3 : 2) * least);
            swin_session_destroy(first);
            swin_session_destroy(second);
        }
        swin_model_destroy(model);
    }
}

static double sum_of(const swin_profile *p)
{
    double sum = p->patch_embed_ms;
    for (int s = 0; s < SWIN_MAX_STAGES; s++)
        sum += p->blocks_ms[s] + p->patch_merge_ms[s] + p->output_ms[s];
    return sum;
}

static swin_profile profile_of(const swin_session *session)
{
    swin_profile profile;
    assert_int_equal(swin_session_get_profile(session, &profile, sizeof profile, NULL), SWIN_OK);
    return profile;
}

static void run(swin_session *session, const swin_model *model, size_t count, unsigned levels)
{
    float *planes = picture_planes(112, 112, 1, 1);
    swin_image images[3];
    for (int i = 0; i < 3; i++)
        images[i] = picture_image(planes, 112, 112);
    swin_maps maps = picture_maps(model, 112, 112, count, levels, SWIN_LAYOUT_NCHW);
    assert_int_equal(swin_session_run(session, images, count, &maps, NULL), SWIN_OK);
    picture_maps_release(&maps);
    free(planes);
}

static void a_profile_tells_the_parts_of_a_run(void **state)
{
    (void)state;
    swin_model *model = models_make(MODEL_AMX, SWIN_PRECISION_F32); /* 64 channels, windows of 7, two blocks */
    const swin_session_params params = {
        .struct_size = sizeof params, .precision = SWIN_PRECISION_F32, .threads = 1, .profile = 1};
    swin_session *session, *silent = models_session(model, SWIN_PRECISION_F32, 1);
    assert_int_equal(swin_session_create(model, &params, &session, NULL), SWIN_OK);
    static const swin_profile nothing = {.struct_size = sizeof nothing};
    swin_profile p = profile_of(session);
    assert_memory_equal(&p, &nothing, sizeof p);

    run(session, model, 1, 0xf);
    p = profile_of(session);
    assert_true(p.total_ms > 0 && p.patch_embed_ms > 0);
    for (int s = 0; s < 4; s++) {
        assert_true(p.blocks_ms[s] > 0 && p.output_ms[s] > 0);
        assert_int_equal(p.patch_merge_ms[s] > 0, s < 3);
    }
    assert_true(sum_of(&p) <= p.total_ms && sum_of(&p) > p.total_ms / 2);

    /* patches: 784 of 48 values to 64 channels; a block of the first stage, with whole windows: per token 12 C^2 of
     * layers and 2 * 49 C of attention, and the merge 4C * 2C per token of the next stage */
    const double tokens = 784, c = 64;
    assert_true(fabs(p.gflop[0] / (2e-9 * tokens * 48 * c) - 1) < 1e-12);
    assert_true(fabs(p.gflop[1] / (2e-9 * (tokens * 2 * (12 * c * c + 2 * 49 * c) + tokens / 4 * 8 * c * c)) - 1) <
                1e-12);

    /* of the levels asked for alone, and of all images */
    const double first = p.gflop[1];
    run(session, model, 3, 0x3);
    p = profile_of(session);
    assert_true(fabs(p.gflop[1] / (3 * first) - 1) < 1e-12);
    assert_true(p.blocks_ms[1] > 0 && p.blocks_ms[2] == 0 && p.patch_merge_ms[1] == 0 && p.output_ms[2] == 0);
    assert_true(p.gflop[2] > 0 && p.gflop[3] == 0);

    run(silent, model, 1, 0xf);
    p = profile_of(silent);
    assert_memory_equal(&p, &nothing, sizeof p);
    swin_session_destroy(session);
    swin_session_destroy(silent);
    swin_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_is_what_is_fast_here),
        cmocka_unit_test(auto_is_what_the_model_was_opened_with),
        cmocka_unit_test(a_session_names_what_it_uses),
        cmocka_unit_test(weight_bytes_are_those_of_the_precision),
        cmocka_unit_test(a_profile_tells_the_parts_of_a_run),
    };
    return cmocka_run_group_tests_name("info", tests, NULL, NULL);
}
