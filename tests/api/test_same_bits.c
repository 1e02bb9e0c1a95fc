/* SPDX-License-Identifier: MIT */
/*
 * An image's maps are the same bits whatever else happens: how many threads compute them, in which batch, after which
 * images, for which other levels, in which layout, and in which session.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory_counted.h"
#include "models.h"
#include "picture.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { ALL_LEVELS = 0xf };

/* Of one row or pixel, in wide form, of several tiles, padded and not. */
static const int32_t sizes[][2] = {{1, 1}, {224, 224}, {200, 150}, {33, 17}, {97, 131}, {2, 300}, {224, 224}};

static swin_maps run(swin_session *session, const swin_model *model, const swin_image *images, size_t count,
                     unsigned levels, int32_t layout)
{
    swin_maps maps = picture_maps(model, images->height, images->width, count, levels, layout);
    swin_error err;
    if (swin_session_run(session, images, count, &maps, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    return maps;
}

/* Calls `check` with every network in both precisions. */
static void with_every_model(void (*check)(const swin_model *model, int32_t precision, const char *name))
{
    for (int which = 0; which < MODEL_COUNT; which++) {
        for (int32_t precision = SWIN_PRECISION_F32; precision <= SWIN_PRECISION_BF16; precision++) {
            swin_model *model = models_make(which, precision);
            char name[60];
            snprintf(name, sizeof name, "%s in %s", models_name(which),
                     precision == SWIN_PRECISION_F32 ? "f32" : "bf16");
            check(model, precision, name);
            swin_model_destroy(model);
            assert_int_equal(memory_live_blocks(), 0);
        }
    }
}

static void check_threads(const swin_model *model, int32_t precision, const char *name)
{
    static const int32_t threads[] = {1, 2, 3, 7};
    swin_maps first[COUNT_OF(sizes)];
    for (size_t t = 0; t < COUNT_OF(threads); t++) {
        swin_session *session = models_session(model, precision, threads[t]);
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            float *planes = picture_planes(sizes[i][0], sizes[i][1], 3, 1);
            const swin_image image = picture_image(planes, sizes[i][0], sizes[i][1]);
            for (int again = 0; again < (threads[t] == 2 ? 2 : 1); again++) {
                swin_maps maps = run(session, model, &image, 1, ALL_LEVELS, SWIN_LAYOUT_NCHW);
                if (t == 0 && again == 0) {
                    first[i] = maps;
                    continue;
                }
                if (!picture_maps_equal(&maps, &first[i]))
                    fail_msg("%s, %d x %d: %d threads, run %d differ from the first", name, sizes[i][0], sizes[i][1],
                             threads[t], again);
                picture_maps_release(&maps);
            }
            free(planes);
        }
        swin_session_destroy(session);
    }
    /* the first and the last size are 224 x 224 in between others */
    assert_true(picture_maps_equal(&first[1], &first[COUNT_OF(sizes) - 1]));
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        picture_maps_release(&first[i]);
}

static void threads_and_repeats_change_nothing(void **state)
{
    (void)state;
    with_every_model(check_threads);
}

/* Every image of a batch against a run of it alone. */
static void check_batch(const swin_model *model, swin_session *session, const int32_t size[2], size_t count,
                        int32_t layout, const char *name)
{
    swin_image images[32];
    float *planes[32];
    memset(images, 0, sizeof images);
    for (size_t i = 0; i < count; i++) {
        planes[i] = picture_planes(size[0], size[1], i, 1);
        images[i] = picture_image(planes[i], size[0], size[1]);
    }
    swin_maps batch = run(session, model, images, count, ALL_LEVELS, layout);
    for (size_t i = 0; i < count; i++) {
        swin_maps single = run(session, model, &images[i], 1, ALL_LEVELS, layout);
        for (int s = 0; s < SWIN_MAX_STAGES; s++) {
            const size_t floats = single.capacity[s];
            if (floats > 0 && memcmp(batch.data[s] + i * floats, single.data[s], floats * sizeof(float)) != 0)
                fail_msg("%s, %d x %d: image %zu of %zu differs at level %d", name, size[0], size[1], i, count, s);
        }
        picture_maps_release(&single);
    }
    picture_maps_release(&batch);
    for (size_t i = 0; i < count; i++)
        free(planes[i]);
}

static void check_batches(const swin_model *model, int32_t precision, const char *name)
{
    swin_session *session = models_session(model, precision, 2);
    static const size_t counts[] = {1, 2, 3, 7, 15, 16, 17, 20}; /* up to more than are in work at once */
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        const int32_t size[2] = {25 + (int32_t)(i % 3), 40 + (int32_t)i};
        check_batch(model, session, size, counts[i], (int32_t)(i % 2), name);
    }
    check_batch(model, session, (int32_t[]){1, 1}, 17, SWIN_LAYOUT_NCHW, name);
    check_batch(model, session, (int32_t[]){97, 131}, 3, SWIN_LAYOUT_NHWC, name);
    swin_session_destroy(session);
}

static void a_batch_is_its_images(void **state)
{
    (void)state;
    with_every_model(check_batches);
}

/* Images whose buffers are larger than what is worked on side by side, in groups of a few. */
static void a_batch_of_large_images_is_its_images(void **state)
{
    (void)state;
    swin_model *model = models_make(MODEL_AMX, SWIN_PRECISION_BF16);
    swin_session *session = models_session(model, SWIN_PRECISION_BF16, 2);
    check_batch(model, session, (int32_t[]){500, 700}, 7, SWIN_LAYOUT_NCHW, "large images");
    swin_session_destroy(session);
    swin_model_destroy(model);
}

/* Any choice of levels, and the other layout. */
static void check_levels(const swin_model *model, int32_t precision, const char *name)
{
    swin_session *session = models_session(model, precision, 2);
    const int32_t height = 101, width = 77;
    float *planes = picture_planes(height, width, 5, 1);
    const swin_image image = picture_image(planes, height, width);
    swin_maps all = run(session, model, &image, 1, ALL_LEVELS, SWIN_LAYOUT_NCHW);
    swin_session_destroy(session);
    session = models_session(model, precision, 2); /* which sees the first level first */
    swin_output_info infos[SWIN_MAX_STAGES];
    assert_int_equal(swin_model_output_info(model, height, width, infos, NULL), SWIN_OK);
    for (unsigned levels = 1; levels <= ALL_LEVELS; levels++) {
        for (int32_t layout = SWIN_LAYOUT_NCHW; layout <= SWIN_LAYOUT_NHWC; layout++) {
            unsigned present = levels;
            for (int s = 0; s < SWIN_MAX_STAGES; s++)
                present &= infos[s].channels > 0 ? ~0u : ~(1u << s);
            if (present == 0)
                continue;
            swin_maps maps = run(session, model, &image, 1, present, layout);
            for (int s = 0; s < SWIN_MAX_STAGES; s++) {
                if (maps.data[s] == NULL)
                    continue;
                const size_t channels = (size_t)infos[s].channels, plane = maps.capacity[s] / channels;
                for (size_t i = 0; i < maps.capacity[s]; i++) {
                    const size_t at = layout == SWIN_LAYOUT_NCHW ? i : i % channels * plane + i / channels;
                    if (memcmp(&maps.data[s][i], &all.data[s][at], sizeof(float)) != 0)
                        fail_msg("%s: level %d of levels %#x in layout %d differs", name, s, levels, layout);
                }
            }
            picture_maps_release(&maps);
        }
    }
    picture_maps_release(&all);
    free(planes);
    swin_session_destroy(session);
}

static void levels_and_layouts_hold_the_same_numbers(void **state)
{
    (void)state;
    with_every_model(check_levels);
}

/* NaN and infinities in an image stay in its maps: neither its neighbours in the batch nor later images see them. */
static void check_nan(const swin_model *model, int32_t precision, const char *name)
{
    swin_session *session = models_session(model, precision, 2);
    static const int32_t some_sizes[][2] = {{33, 17}, {97, 131}, {1, 1}};
    for (size_t i = 0; i < COUNT_OF(some_sizes); i++) {
        const int32_t height = some_sizes[i][0], width = some_sizes[i][1];
        const size_t count = 3 * (size_t)height * (size_t)width;
        float *planes = picture_planes(height, width, 1, 1), *bad = picture_planes(height, width, 2, 1);
        for (size_t p = 0; p < count; p++)
            bad[p] = p % 3 == 0 ? NAN : p % 3 == 1 ? INFINITY : 3e38f;
        const swin_image image = picture_image(planes, height, width), poison = picture_image(bad, height, width);
        const swin_image batch[3] = {image, poison, image};
        swin_maps clean = run(session, model, &image, 1, ALL_LEVELS, SWIN_LAYOUT_NCHW);
        swin_maps mixed = run(session, model, batch, 3, ALL_LEVELS, SWIN_LAYOUT_NCHW);
        swin_maps after = run(session, model, &image, 1, ALL_LEVELS, SWIN_LAYOUT_NCHW);
        if (!picture_maps_equal(&clean, &after))
            fail_msg("%s, %d x %d: a later image differs", name, height, width);
        for (int s = 0; s < SWIN_MAX_STAGES; s++) {
            const size_t floats = clean.capacity[s], bytes = floats * sizeof(float);
            if (floats == 0)
                continue;
            if (memcmp(mixed.data[s], clean.data[s], bytes) != 0 ||
                memcmp(mixed.data[s] + 2 * floats, clean.data[s], bytes) != 0)
                fail_msg("%s, %d x %d, level %d: a neighbour differs", name, height, width, s);
            assert_true(isfinite(clean.data[s][0]));
            assert_true(isnan(mixed.data[s][floats]));
        }
        picture_maps_release(&clean);
        picture_maps_release(&mixed);
        picture_maps_release(&after);
        free(planes);
        free(bad);
    }
    swin_session_destroy(session);
}

static void nan_stays_in_its_image(void **state)
{
    (void)state;
    with_every_model(check_nan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_and_repeats_change_nothing),
        cmocka_unit_test(a_batch_is_its_images),
        cmocka_unit_test(a_batch_of_large_images_is_its_images),
        cmocka_unit_test(levels_and_layouts_hold_the_same_numbers),
        cmocka_unit_test(nan_stays_in_its_image),
    };
    return cmocka_run_group_tests_name("the same bits", tests, NULL, NULL);
}
