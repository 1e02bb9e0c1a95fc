/* SPDX-License-Identifier: MIT */
/*
 * Images as programs hold them: bytes in either order, rows with gaps, upside down or shared by two images, planes
 * anywhere, canvases larger than the picture; in memory that must not be written to, nor read beyond the last pixel.
 */
#include "../kernels/trial.h"

#include <stdlib.h>

#include "exec/shared.h"
#include "measure.h"
#include "models.h"
#include "picture.h"
#include "reference/from_model.h"

enum { HEIGHT = 37, WIDTH = 45 };

static swin_model *model;
static swin_session *session;
static reference_weights weights;

static int set_up(void **state)
{
    (void)state;
    model = models_make(MODEL_AMX, SWIN_PRECISION_F32);
    session = models_session(model, SWIN_PRECISION_F32, 2);
    weights = reference_weights_from_model(sw_shared_model(model));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    reference_weights_release(&weights);
    swin_session_destroy(session);
    swin_model_destroy(model);
    return 0;
}

static int32_t canvas_height(const swin_image *image)
{
    return image->canvas_height > 0 ? image->canvas_height : image->height;
}

static int32_t canvas_width(const swin_image *image)
{
    return image->canvas_width > 0 ? image->canvas_width : image->width;
}

static swin_maps run(const swin_image *image)
{
    swin_maps maps = picture_maps(model, canvas_height(image), canvas_width(image), 1, 0xf, SWIN_LAYOUT_NCHW);
    swin_error err;
    if (swin_session_run(session, image, 1, &maps, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    return maps;
}

/* The same bits. */
static void check_equal(const swin_image *a, const swin_image *b, const char *what)
{
    swin_maps a_maps = run(a), b_maps = run(b);
    if (!picture_maps_equal(&a_maps, &b_maps))
        fail_msg("%s: not the same maps", what);
    picture_maps_release(&a_maps);
    picture_maps_release(&b_maps);
}

/* And the right ones. */
static void check_reference(const swin_image *image, const char *what)
{
    int32_t height, width;
    double *pixels = reference_pixels(image, &height, &width);
    reference_maps expected;
    reference_forward(&weights, pixels, height, width, &expected, NULL);
    swin_maps maps = run(image);
    for (int32_t s = 0; s < weights.config.stages; s++) {
        const difference d = difference_of(maps.data[s], false, &expected.level[s]);
        if (!difference_is_small(&d, SWIN_PRECISION_F32, 0))
            fail_msg("%s, level %d: relative L2 %.3e, largest %.3e", what, s, d.relative_l2, d.relative_max);
    }
    picture_maps_release(&maps);
    reference_maps_release(&expected);
    free(pixels);
}

/* Runs `body` with blocks of memory that end, then begin, at a page that must not be touched. */
static void on_both_sides(void (*body)(void))
{
    for (int side = 0; side < GUARDED_SIDES; side++) {
        guarded_use_side((enum guarded_side)side);
        body();
        guarded_free_all();
    }
}

/* A sealed copy of `count` bytes. */
static void *sealed(const void *bytes, size_t count)
{
    void *copy = guarded_alloc(count, 1);
    memcpy(copy, bytes, count);
    return guarded_seal(copy);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Bytes
 */

static swin_image image_of_bytes(const void *data, int32_t height, int32_t width)
{
    swin_image image;
    swin_image_init(&image, sizeof image);
    image.data = data;
    image.height = height;
    image.width = width;
    return image;
}

/* A copy with rows `stride` bytes apart, 0xee in between; upside down in memory where it is negative. Nothing follows
 * the last row. *first is the first pixel of the top row. */
static void *with_stride(const uint8_t *dense, size_t row, int32_t rows, ptrdiff_t stride, const void **first)
{
    const size_t step = (size_t)(stride < 0 ? -stride : stride), count = step * (size_t)(rows - 1) + row;
    uint8_t *copy = guarded_alloc(count, 1);
    memset(copy, 0xee, count);
    for (int32_t r = 0; r < rows; r++)
        memcpy(copy + step * (size_t)(stride < 0 ? rows - 1 - r : r), dense + row * (size_t)r, row);
    *first = copy + (stride < 0 ? step * (size_t)(rows - 1) : 0);
    return guarded_seal(copy);
}

static void check_bytes(void)
{
    const size_t row = 3 * WIDTH, count = row * HEIGHT;
    uint8_t *bytes = picture_bytes(count, 1);
    const swin_image dense = image_of_bytes(sealed(bytes, count), HEIGHT, WIDTH);
    check_reference(&dense, "rgb");

    static const ptrdiff_t strides[] = {3 * WIDTH, 3 * WIDTH + 1, 3 * WIDTH + 57, -3 * WIDTH, -3 * WIDTH - 1, 4096};
    for (size_t i = 0; i < COUNT_OF(strides); i++) {
        swin_image strided = dense;
        strided.row_stride = strides[i];
        with_stride(bytes, row, HEIGHT, strides[i], &strided.data);
        check_equal(&strided, &dense, "rows with gaps");
    }

    uint8_t *swapped = malloc(count);
    assert_non_null(swapped);
    for (size_t i = 0; i < count; i++)
        swapped[i] = bytes[i / 3 * 3 + 2 - i % 3];
    swin_image bgr = image_of_bytes(sealed(swapped, count), HEIGHT, WIDTH);
    bgr.format = SWIN_PIXEL_BGR8;
    check_equal(&bgr, &dense, "bgr"); /* mean and std stay in the order R, G, B */

    swin_image tinted = dense;
    for (int i = 0; i < 3; i++) {
        tinted.mean[i] = (float)(10 + 100 * i);
        tinted.std[i] = (float)(20 + 30 * i);
    }
    check_reference(&tinted, "other mean and std");
    free(bytes);
    free(swapped);
}

static void bytes_in_any_arrangement(void **state)
{
    (void)state;
    on_both_sides(check_bytes);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Planes
 */

static void check_planes(void)
{
    const size_t row = WIDTH * sizeof(float), plane = row * HEIGHT;
    float *planes = picture_planes(HEIGHT, WIDTH, 1, 1);
    const swin_image dense = picture_image(sealed(planes, 3 * plane), HEIGHT, WIDTH);
    check_reference(&dense, "planes");

    static const ptrdiff_t gaps[] = {0, 4, 32};
    for (size_t i = 0; i < COUNT_OF(gaps); i++) {
        for (int upside_down = 0; upside_down < 2; upside_down++) {
            const ptrdiff_t step = (ptrdiff_t)row + gaps[i], stride = upside_down ? -step : step;
            /* all three planes one after the other, rows of the whole at equal distances */
            swin_image strided = dense;
            uint8_t *block = guarded_alloc((size_t)step * (3 * HEIGHT - 1) + row, 1);
            memset(block, 0xee, (size_t)step * (3 * HEIGHT - 1) + row);
            for (int32_t r = 0; r < 3 * HEIGHT; r++) {
                const int32_t at = upside_down ? r / HEIGHT * HEIGHT + HEIGHT - 1 - r % HEIGHT : r;
                memcpy(block + step * at, (const uint8_t *)planes + row * (size_t)r, row);
            }
            guarded_seal(block);
            strided.data = block + (upside_down ? step * (HEIGHT - 1) : 0);
            strided.row_stride = stride;
            check_equal(&strided, &dense, "planes with rows apart, one after the other");
            strided.plane_stride = step * HEIGHT;
            check_equal(&strided, &dense, "planes with rows apart, said to be one after the other");
        }
    }

    /* planes in the order B, G, R: the distance is negative */
    uint8_t *backwards = guarded_alloc(3 * plane, 1);
    for (size_t p = 0; p < 3; p++)
        memcpy(backwards + (2 - p) * plane, (const uint8_t *)planes + p * plane, plane);
    swin_image reversed = dense;
    reversed.data = (const uint8_t *)guarded_seal(backwards) + 2 * plane;
    reversed.plane_stride = -(ptrdiff_t)plane;
    check_equal(&reversed, &dense, "planes backwards");

    /* planes that overlap: the second begins a pixel after the first */
    swin_image shared = dense;
    shared.data = sealed(planes, plane);
    shared.width = WIDTH - 2;
    shared.row_stride = (ptrdiff_t)row;
    shared.plane_stride = sizeof(float);
    check_reference(&shared, "planes that overlap");
    free(planes);
}

static void planes_in_any_arrangement(void **state)
{
    (void)state;
    on_both_sides(check_planes);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Canvases
 */

static void check_canvas(void)
{
    const size_t plane = (size_t)HEIGHT * WIDTH;
    float *planes = picture_planes(HEIGHT, WIDTH, 1, 1);
    static const int32_t canvases[][2] = {
        {HEIGHT, WIDTH}, {HEIGHT + 1, 0}, {0, WIDTH + 3}, {64, 64}, {HEIGHT + 40, WIDTH + 90}};
    for (size_t i = 0; i < COUNT_OF(canvases); i++) {
        swin_image image = picture_image(sealed(planes, 3 * plane * sizeof(float)), HEIGHT, WIDTH);
        image.canvas_height = canvases[i][0];
        image.canvas_width = canvases[i][1];
        const int32_t height = canvas_height(&image), width = canvas_width(&image);
        float *padded = calloc(3 * (size_t)height * (size_t)width, sizeof *padded);
        assert_non_null(padded);
        for (int32_t r = 0; r < 3 * HEIGHT; r++)
            memcpy(padded + ((size_t)(r / HEIGHT) * (size_t)height + (size_t)(r % HEIGHT)) * (size_t)width,
                   planes + (size_t)r * WIDTH, WIDTH * sizeof *padded);
        const swin_image whole = picture_image(padded, height, width);
        check_equal(&image, &whole, "planes on a canvas");
        free(padded);
    }
    uint8_t *bytes = picture_bytes(3 * plane, 2);
    swin_image image = image_of_bytes(sealed(bytes, 3 * plane), HEIGHT, WIDTH);
    image.canvas_height = 64;
    image.canvas_width = 96;
    check_reference(&image, "bytes on a canvas: zeros after normalising");
    free(bytes);
    free(planes);
}

static void canvases_add_zeros(void **state)
{
    (void)state;
    on_both_sides(check_canvas);
}

/* Images of different sizes and formats on equal canvases make a batch. */
static void a_batch_may_be_mixed(void **state)
{
    (void)state;
    float *planes = picture_planes(60, 50, 1, 1);
    uint8_t *bytes = picture_bytes(3 * 64 * 64, 2);
    swin_image images[3] = {picture_image(planes, 60, 50), image_of_bytes(bytes, 64, 64), image_of_bytes(bytes, 1, 64)};
    images[2].format = SWIN_PIXEL_BGR8;
    for (int i = 0; i < 3; i++)
        images[i].canvas_height = images[i].canvas_width = 64;
    swin_maps batch = picture_maps(model, 64, 64, 3, 0xf, SWIN_LAYOUT_NCHW);
    swin_error err;
    if (swin_session_run(session, images, 3, &batch, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < 3; i++) {
        swin_maps single = run(&images[i]);
        for (int s = 0; s < SWIN_MAX_STAGES && single.data[s] != NULL; s++)
            assert_memory_equal(batch.data[s] + i * single.capacity[s], single.data[s],
                                single.capacity[s] * sizeof(float));
        picture_maps_release(&single);
    }
    picture_maps_release(&batch);
    free(planes);
    free(bytes);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Maps
 */

static void check_maps(void)
{
    static const int32_t sizes[][2] = {{1, 1}, {HEIGHT, WIDTH}, {64, 64}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        float *planes = picture_planes(sizes[i][0], sizes[i][1], 1, 1);
        const swin_image image = picture_image(planes, sizes[i][0], sizes[i][1]);
        swin_maps expected = run(&image), maps = expected;
        for (int s = 0; s < SWIN_MAX_STAGES && maps.data[s] != NULL; s++)
            maps.data[s] = guarded_alloc(maps.capacity[s], sizeof(float));
        swin_error err;
        if (swin_session_run(session, &image, 1, &maps, &err) != SWIN_OK)
            fail_msg("%s", err.message);
        assert_true(picture_maps_equal(&maps, &expected));
        picture_maps_release(&expected);
        guarded_free_all();
        free(planes);
    }
}

static void maps_are_written_to_their_last_float(void **state)
{
    (void)state;
    on_both_sides(check_maps);
}

/* Room for more than is needed: what is beyond stays. */
static void room_beyond_the_maps_stays(void **state)
{
    (void)state;
    float *planes = picture_planes(HEIGHT, WIDTH, 1, 1);
    const swin_image image = picture_image(planes, HEIGHT, WIDTH);
    swin_maps exact = run(&image), ample = picture_maps(model, HEIGHT, WIDTH, 3, 0xf, SWIN_LAYOUT_NCHW);
    swin_error err;
    assert_int_equal(swin_session_run(session, &image, 1, &ample, &err), SWIN_OK);
    for (int s = 0; s < SWIN_MAX_STAGES && ample.data[s] != NULL; s++) {
        assert_memory_equal(ample.data[s], exact.data[s], exact.capacity[s] * sizeof(float));
        for (size_t i = exact.capacity[s]; i < ample.capacity[s]; i++)
            assert_true(isnan(ample.data[s][i]));
    }
    picture_maps_release(&exact);
    picture_maps_release(&ample);
    free(planes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_in_any_arrangement),
        cmocka_unit_test(planes_in_any_arrangement),
        cmocka_unit_test(canvases_add_zeros),
        cmocka_unit_test(a_batch_may_be_mixed),
        cmocka_unit_test(maps_are_written_to_their_last_float),
        cmocka_unit_test(room_beyond_the_maps_stays),
    };
    return cmocka_run_group_tests_name("images", tests, set_up, tear_down);
}
