/* SPDX-License-Identifier: MIT */
#include "trial.h"

static const float scale[3] = {0.017f, 0.0175f, 0.0174f}, shift[3] = {-2.1f, -2.03f, -1.8f};

enum source { RGB, BGR, BOTTOM_UP, PLANAR, SOURCES };

/* An image at the end of its block: the last row has no stride behind it. */
static sw_pixels make_image(enum source source, int32_t height, int32_t width)
{
    sw_pixels pixels = {.height = height, .width = width, .bgr = source == BGR, .planar_f32 = source == PLANAR};
    const size_t line = (size_t)width * (source == PLANAR ? 4 : 3);
    pixels.row_stride = (ptrdiff_t)line + (source == PLANAR ? 8 : 7);
    const size_t plane = (size_t)pixels.row_stride * (size_t)(height - 1) + line;
    unsigned char *data;
    if (source == PLANAR) {
        pixels.plane_stride = (ptrdiff_t)plane + 12;
        data = guarded_alloc((size_t)pixels.plane_stride * 2 + plane, 1);
        for (int c = 0; c < 3; c++) {
            for (int32_t y = 0; y < height; y++) {
                float *row = (float *)(void *)(data + c * pixels.plane_stride + y * pixels.row_stride);
                for (int32_t x = 0; x < width; x++)
                    row[x] = trial_normal(0, 1);
            }
        }
    } else {
        data = guarded_alloc(plane, 1);
        for (size_t i = 0; i < plane; i++)
            data[i] = (unsigned char)trial_bits();
    }
    guarded_seal(data);
    pixels.data = data;
    if (source == BOTTOM_UP) {
        pixels.data += (height - 1) * pixels.row_stride;
        pixels.row_stride = -pixels.row_stride;
    }
    memcpy(pixels.scale, scale, sizeof scale);
    memcpy(pixels.shift, shift, sizeof shift);
    return pixels;
}

static double exact_pixel(const sw_pixels *pixels, int channel, int64_t y, int64_t x, double *size)
{
    *size = 0;
    if (y >= pixels->height || x >= pixels->width)
        return 0;
    const uint8_t *row = pixels->data + y * pixels->row_stride;
    if (pixels->planar_f32)
        return ((const float *)(const void *)(row + channel * pixels->plane_stride))[x];
    const double value = (double)row[3 * x + (pixels->bgr ? 2 - channel : channel)] * scale[channel];
    *size = fabs(value) + fabs(value + shift[channel]);
    return value + shift[channel];
}

static void check_patches(const sw_kernels *kernels, enum source source, sw_type type, int32_t patch, int32_t height,
                          int32_t width, int32_t grid_width, int32_t first, int32_t rows)
{
    const sw_pixels pixels = make_image(source, height, width);
    const size_t length = 3 * (size_t)patch * (size_t)patch;
    void *dst = guarded_alloc((size_t)rows * length, sw_type_size(type));
    kernels->gather_patches(dst, type, &pixels, patch, grid_width, first, rows);
    for (int32_t r = 0; r < rows; r++) {
        const int64_t y = (int64_t)((first + r) / grid_width) * patch, x = (int64_t)((first + r) % grid_width) * patch;
        for (int32_t k = 0; k < (int32_t)length; k++) {
            double size;
            const double exact = exact_pixel(&pixels, k / (patch * patch), y + k / patch % patch, x + k % patch, &size);
            /* One rounding of the product, one of the sum. */
            trial_close(trial_get(dst, type, (size_t)r * length + (size_t)k), exact, UNIT * size, type,
                        "%s, source %d, patch size %d, %dx%d, patch %d, element %d", kernels->name, source, (int)patch,
                        (int)height, (int)width, (int)(first + r), (int)k);
        }
    }
    guarded_free_all();
}

static void shapes(const sw_kernels *kernels)
{
    static const struct {
        int32_t patch, height, width;
    } cases[] = {
        {4, 1, 1},   {4, 1, 9},   {4, 3, 2},    {4, 4, 4},    {4, 8, 8},    {4, 9, 37},  {4, 16, 64}, {4, 17, 129},
        {4, 5, 66},  {4, 7, 67},  {4, 12, 224}, {1, 1, 1},    {1, 5, 7},    {2, 5, 37},  {3, 10, 20}, {5, 11, 23},
        {7, 20, 15}, {8, 17, 40}, {8, 16, 64},  {14, 30, 45}, {16, 33, 70}, {32, 33, 31}, {63, 64, 70}, {64, 65, 130},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const int32_t patch = cases[i].patch, height = cases[i].height, width = cases[i].width;
        const int32_t columns = (width + patch - 1) / patch, lines = (height + patch - 1) / patch;
        for (int source = 0; source < SOURCES; source++) {
            for (int type = 0; type < 2; type++) {
                /* All patches; one column and one line of them more than the image has; a part. */
                check_patches(kernels, (enum source)source, (sw_type)type, patch, height, width, columns, 0,
                              columns * lines);
                check_patches(kernels, (enum source)source, (sw_type)type, patch, height, width, columns + 1, 0,
                              (columns + 1) * (lines + 1));
                check_patches(kernels, (enum source)source, (sw_type)type, patch, height, width, columns,
                              columns * lines / 2, columns * lines - columns * lines / 2);
            }
        }
    }
}

/* Pure red, as every user checks first: (255 - 123.675) / 58.395 and so on, in either byte order. */
static void red(const sw_kernels *kernels)
{
    static const double mean[3] = {123.675, 116.28, 103.53}, deviation[3] = {58.395, 57.12, 57.375};
    static const double expected[3] = {2.2489083, -2.0357143, -1.8044444};
    for (int bgr = 0; bgr < 2; bgr++) {
        const uint8_t pixel[3] = {bgr ? 0 : 255, 0, bgr ? 255 : 0};
        sw_pixels pixels = {.data = pixel, .height = 1, .width = 1, .row_stride = 3, .bgr = bgr};
        for (int c = 0; c < 3; c++) {
            pixels.scale[c] = (float)(1 / deviation[c]);
            pixels.shift[c] = (float)(-mean[c] / deviation[c]);
        }
        float patch[48];
        kernels->gather_patches(patch, SW_F32, &pixels, 4, 1, 0, 1);
        for (int k = 0; k < 48; k++)
            trial_close(patch[k], k % 16 == 0 ? expected[k / 16] : 0, 1e-6, SW_F32, "%s, element %d", kernels->name, k);
    }
}

#define TEST(name)                          \
    static void test_##name(void **context) \
    {                                       \
        (void)context;                      \
        trial_run(name);                    \
    }
TEST(shapes)
TEST(red)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_red),
    };
    return cmocka_run_group_tests_name("kernels-patches", tests, NULL, NULL);
}
