/* SPDX-License-Identifier: MIT */
#include "trial.h"

#include <stdlib.h>

static const int32_t channel_counts[] = {1, 3, 24, 96, 128, 192, 384, 768, 1536, 3072};
static const int32_t row_counts[] = {1, 2, 9, 16, 25, 49, 64, 144, 256, 576};

/* Every pair of a count above is too much for a test; each count occurs with the others' small values. */
enum { MOST_ELEMENTS = 30000, MOST_CHANNELS = 4 * 3072 };

/* An index list of a tile: rows of the map in some order, none twice, every seventh -1. */
static int32_t *make_index(int32_t rows, int32_t tokens)
{
    int32_t *order = guarded_alloc((size_t)tokens, sizeof *order);
    for (int32_t i = 0; i < tokens; i++)
        order[i] = i;
    for (int32_t i = tokens - 1; i > 0; i--) {
        const int32_t j = (int32_t)(trial_bits() % (uint32_t)(i + 1)), other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    int32_t *index = guarded_alloc((size_t)rows, sizeof *index);
    for (int32_t i = 0; i < rows; i++)
        index[i] = i % 7 == 3 ? -1 : order[i];
    guarded_free(order);
    return guarded_seal(index);
}

static sw_norm make_norm(int32_t channels)
{
    return (sw_norm){trial_normals((size_t)channels, SW_F32, 1, 0.3f), trial_normals((size_t)channels, SW_F32, 0, 0.5f),
                     1e-5f};
}

/* Panels with a gap of 5 elements between them. */
static sw_panels make_panels(sw_type type, int32_t rows, int32_t channels, int32_t count)
{
    const int32_t width = channels / count;
    const size_t stride = (size_t)rows * (size_t)width + (count > 1 ? 5 : 0);
    return (sw_panels){guarded_alloc(stride * (size_t)(count - 1) + (size_t)rows * (size_t)width, sw_type_size(type)),
                       type, width, stride};
}

static size_t panels_offset(const sw_panels *panels, int32_t row, int32_t column)
{
    return (size_t)(column / panels->width) * panels->stride + (size_t)row * (size_t)panels->width +
           (size_t)(column % panels->width);
}

static void check_gaps(const sw_panels *panels, int32_t rows, int32_t channels)
{
    const size_t dense = (size_t)rows * (size_t)panels->width, size = sw_type_size(panels->type);
    for (int32_t p = 0; p + 1 < channels / panels->width; p++)
        trial_untouched((const char *)panels->data + ((size_t)p * panels->stride + dense) * size,
                        (panels->stride - dense) * size, "gap between panels");
}

static void exact_norm(double *row, int32_t channels, const sw_norm *norm)
{
    double mean = 0, variance = 0;
    for (int32_t c = 0; c < channels; c++)
        mean += row[c];
    mean /= channels;
    for (int32_t c = 0; c < channels; c++)
        variance += (row[c] - mean) * (row[c] - mean);
    variance /= channels;
    for (int32_t c = 0; c < channels; c++)
        row[c] = (row[c] - mean) / sqrt(variance + norm->eps) * norm->weight[c] + norm->bias[c];
}

/* What a normalised value z * w + b may be off by. The two factors of z, deviation and 1/sqrt(variance + eps), and
 * the operations after them contribute one rounding each. The sums behind them run over up to 3072/16 dependent
 * additions and are as good as some ten roundings of their total: errors of many additions of like size grow as a
 * square root. The centre's error shifts z by as much again, whatever z is. 16 units in all. */
static double norm_tolerance(double exact, float weight, float bias)
{
    return 16 * UNIT * (fabs(exact - bias) + fabs((double)weight) + fabs((double)bias));
}

static void check_row(const sw_kernels *kernels, const char *what, const sw_panels *dst, int32_t r, int32_t channels,
                      const double *exact, const sw_norm *norm, double extra)
{
    for (int32_t c = 0; c < channels; c++) {
        const double tolerance = norm == NULL ? 0 : norm_tolerance(exact[c], norm->weight[c], norm->bias[c]);
        trial_close(trial_get(dst->data, dst->type, panels_offset(dst, r, c)), exact[c], tolerance + extra, dst->type,
                    "%s %s, C = %d, row %d, channel %d", kernels->name, what, (int)channels, (int)r, (int)c);
    }
}

static double exact[MOST_CHANNELS];

static void check_gather(const sw_kernels *kernels, int32_t rows, int32_t channels, sw_type type, int32_t panels,
                         bool indexed, bool normed, float mean)
{
    const int32_t tokens = rows + 3;
    const float *x = trial_normals((size_t)tokens * (size_t)channels, SW_F32, mean, 1);
    const int32_t *index = indexed ? make_index(rows, tokens) : NULL;
    const sw_norm norm = make_norm(channels);
    const sw_panels dst = make_panels(type, rows, channels, panels);
    kernels->gather(&dst, x, index, rows, channels, normed ? &norm : NULL);
    for (int32_t r = 0; r < rows; r++) {
        const int32_t token = index == NULL ? r : index[r];
        for (int32_t c = 0; c < channels; c++)
            exact[c] = token < 0 ? 0 : (double)x[(size_t)token * (size_t)channels + (size_t)c];
        if (normed && token >= 0)
            exact_norm(exact, channels, &norm);
        check_row(kernels, "gather", &dst, r, channels, exact, normed && token >= 0 ? &norm : NULL, 0);
    }
    check_gaps(&dst, rows, channels);
    guarded_free_all();
}

static void gather_shapes(const sw_kernels *kernels)
{
    int turn = 0;
    for (size_t i = 0; i < COUNT_OF(channel_counts); i++) {
        for (size_t j = 0; j < COUNT_OF(row_counts); j++) {
            const int32_t channels = channel_counts[i], rows = row_counts[j];
            if (rows * channels > MOST_ELEMENTS)
                continue;
            for (int k = 0; k < 3; k++, turn += 3)
                check_gather(kernels, rows, channels, turn & 1 ? SW_BF16 : SW_F32,
                             channels % 3 == 0 && turn & 4 ? 3 : 1, (turn & 2) != 0, (turn & 6) != 4,
                             turn & 1 ? 0.2f : -3);
        }
    }
    for (int32_t channels = 1; channels < 140; channels++)
        check_gather(kernels, 3, channels, channels & 1 ? SW_F32 : SW_BF16, 1, true, true, 1);
}

/* The mean far from zero, as rows of late stages come close to, and further. */
static void gather_far_mean(const sw_kernels *kernels)
{
    for (size_t i = 2; i < COUNT_OF(channel_counts); i++) {
        check_gather(kernels, 4, channel_counts[i], SW_F32, 1, true, true, 1000);
        check_gather(kernels, 4, channel_counts[i], SW_F32, 1, true, true, -1e5f);
    }
}

static void gather_in_place(const sw_kernels *kernels)
{
    enum { ROWS = 5, CHANNELS = 75 };
    const float *x = trial_normals(ROWS * CHANNELS, SW_F32, 1, 2);
    float *place = guarded_alloc(ROWS * CHANNELS, sizeof *place);
    memcpy(place, x, ROWS * CHANNELS * sizeof *x);
    const sw_norm norm = make_norm(CHANNELS);
    const sw_panels dst = make_panels(SW_F32, ROWS, CHANNELS, 1), same = {place, SW_F32, CHANNELS, ROWS * CHANNELS};
    kernels->gather(&dst, x, NULL, ROWS, CHANNELS, &norm);
    kernels->gather(&same, place, NULL, ROWS, CHANNELS, &norm);
    assert_memory_equal(dst.data, place, ROWS * CHANNELS * sizeof *x);
}

/* Rows whose values decide alone what comes out. */
static void gather_special(const sw_kernels *kernels)
{
    static const struct {
        const char *name;
        float values[5]; /* repeated over the row */
        float eps;
        float expected[5]; /* with weight 2 and bias 3 */
    } cases[] = {
        {"zeros", {0, 0, 0, 0, 0}, 1e-5f, {3, 3, 3, 3, 3}},
        {"constant", {7, 7, 7, 7, 7}, 1e-5f, {3, 3, 3, 3, 3}},
        {"odd constant", {1000.1f, 1000.1f, 1000.1f, 1000.1f, 1000.1f}, 1e-5f, {3, 3, 3, 3, 3}},
        {"denormals", {1e-40f, -1e-40f, 0, 0, 0}, 1e-5f, {3, 3, 3, 3, 3}},
        {"constant without eps", {0, 0, 0, 0, 0}, 0, {NAN, NAN, NAN, NAN, NAN}},
        {"not a number", {1, 2, NAN, 4, 5}, 1e-5f, {NAN, NAN, NAN, NAN, NAN}},
        {"infinity", {1, 2, INFINITY, 4, 5}, 1e-5f, {NAN, NAN, NAN, NAN, NAN}},
        {"large", {-2e17f, -1e17f, 0, 1e17f, 2e17f}, 1e-5f,
         {0.17157288f, 1.5857864f, 3, 4.4142137f, 5.8284273f}},
        {"small", {-2e-17f, -1e-17f, 0, 1e-17f, 2e-17f}, 2e-34f, {1, 2, 3, 4, 5}},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int32_t channels = 5; channels <= 185; channels += 45) {
            float *x = guarded_alloc((size_t)channels, 4), *weight = guarded_alloc((size_t)channels, 4),
                  *bias = guarded_alloc((size_t)channels, 4);
            for (int32_t c = 0; c < channels; c++) {
                x[c] = cases[i].values[c % 5];
                weight[c] = 2;
                bias[c] = 3;
            }
            const sw_norm norm = {weight, bias, cases[i].eps};
            const sw_panels dst = make_panels(SW_F32, 1, channels, 1);
            kernels->gather(&dst, x, NULL, 1, channels, &norm);
            for (int32_t c = 0; c < channels; c++)
                trial_close(((float *)dst.data)[c], cases[i].expected[c % 5], 2e-6, SW_F32, "%s %s of %d, channel %d",
                            kernels->name, cases[i].name, (int)channels, (int)c);
            guarded_free_all();
        }
    }
}

/* A row's result depends on the row alone: not on the rows beside it, on panels, or on where it lies. */
static void gather_split(const sw_kernels *kernels)
{
    enum { ROWS = 11, CHANNELS = 198 };
    const float *x = trial_normals(ROWS * CHANNELS, SW_F32, 5, 1);
    const sw_norm norm = make_norm(CHANNELS);
    const sw_panels whole = make_panels(SW_F32, ROWS, CHANNELS, 1), split = make_panels(SW_F32, ROWS, CHANNELS, 3);
    kernels->gather(&whole, x, NULL, ROWS, CHANNELS, &norm);
    kernels->gather(&split, x, NULL, ROWS, CHANNELS, &norm);
    for (int32_t r = 0; r < ROWS; r++) {
        for (int32_t offset = 0; offset < 4; offset++) {
            float *moved = guarded_alloc(CHANNELS + (size_t)offset, 4);
            memcpy(moved, x + r * CHANNELS, CHANNELS * sizeof *x);
            const sw_panels one = make_panels(SW_F32, 1, CHANNELS, 1);
            kernels->gather(&one, moved, NULL, 1, CHANNELS, &norm);
            for (int32_t c = 0; c < CHANNELS; c++) {
                const float expected = ((float *)whole.data)[r * CHANNELS + c];
                assert_true(((float *)one.data)[c] == expected);
                assert_true(((float *)split.data)[panels_offset(&split, r, c)] == expected);
            }
            guarded_free(moved);
            guarded_free(one.data);
        }
    }
}

struct residual_form {
    sw_type y_type, dst_type;
    int32_t y_panels, dst_panels;
    bool indexed, post, dst, pre;
};

static void check_residual(const sw_kernels *kernels, int32_t rows, int32_t channels, struct residual_form form)
{
    const int32_t tokens = rows + 2;
    const size_t count = (size_t)tokens * (size_t)channels;
    const float *before = trial_normals(count, SW_F32, 0.5f, 2);
    float *x = guarded_alloc(count, sizeof *x);
    memcpy(x, before, count * sizeof *x);
    const int32_t *index = form.indexed ? make_index(rows, tokens) : NULL;
    const sw_panels y = make_panels(form.y_type, rows, channels, form.y_panels);
    for (int32_t r = 0; r < rows; r++) {
        for (int32_t c = 0; c < channels; c++)
            trial_put(y.data, y.type, panels_offset(&y, r, c), trial_normal(-0.3f, 1));
    }
    guarded_seal(y.data);
    const sw_norm post = make_norm(channels), pre = make_norm(channels);
    const sw_panels dst = make_panels(form.dst_type, rows, channels, form.dst_panels);
    kernels->residual(x, index, &y, form.post ? &post : NULL, rows, channels, form.dst ? &dst : NULL,
                      form.pre ? &pre : NULL);
    bool *touched = calloc((size_t)tokens, sizeof *touched);
    for (int32_t r = 0; r < rows; r++) {
        const int32_t token = index == NULL ? r : index[r];
        if (token < 0) {
            memset(exact, 0, (size_t)channels * sizeof *exact);
            if (form.dst)
                check_row(kernels, "residual padding", &dst, r, channels, exact, NULL, 0);
            continue;
        }
        touched[token] = true;
        float *row = x + (size_t)token * (size_t)channels;
        for (int32_t c = 0; c < channels; c++)
            exact[c] = trial_get(y.data, y.type, panels_offset(&y, r, c));
        if (form.post)
            exact_norm(exact, channels, &post);
        for (int32_t c = 0; c < channels; c++) {
            const double old = before[(size_t)token * (size_t)channels + (size_t)c], added = exact[c];
            const double tolerance = (form.post ? norm_tolerance(added, post.weight[c], post.bias[c]) : 0) +
                                     UNIT * fabs(old + added);
            trial_close(row[c], old + added, tolerance, SW_F32, "%s residual, C = %d, row %d, channel %d",
                        kernels->name, (int)channels, (int)r, (int)c);
        }
        if (!form.dst)
            continue;
        /* The second norm works on x as it was rounded. */
        for (int32_t c = 0; c < channels; c++)
            exact[c] = row[c];
        if (form.pre)
            exact_norm(exact, channels, &pre);
        check_row(kernels, "residual norm", &dst, r, channels, exact, form.pre ? &pre : NULL, 0);
    }
    for (int32_t t = 0; t < tokens; t++) {
        if (!touched[t])
            assert_memory_equal(x + (size_t)t * (size_t)channels, before + (size_t)t * (size_t)channels,
                                (size_t)channels * sizeof *x);
    }
    if (form.dst)
        check_gaps(&dst, rows, channels);
    else
        trial_untouched(dst.data, (size_t)rows * (size_t)channels * sw_type_size(dst.type), "absent dst");
    free(touched);
    guarded_free_all();
}

static void residual_shapes(const sw_kernels *kernels)
{
    int turn = 0;
    for (size_t i = 0; i < COUNT_OF(channel_counts); i++) {
        for (size_t j = 0; j < COUNT_OF(row_counts); j++) {
            const int32_t channels = channel_counts[i], rows = row_counts[j];
            if (rows * channels > MOST_ELEMENTS)
                continue;
            const int32_t three = channels % 3 == 0 ? 3 : 1;
            for (int k = 0; k < 6; k += 1 + turn % 3, turn++)
                check_residual(kernels, rows, channels,
                               (struct residual_form){turn & 1 ? SW_BF16 : SW_F32, turn & 2 ? SW_BF16 : SW_F32,
                                                      turn & 4 ? three : 1, turn & 8 ? three : 1, k != 1,
                                                      k == 0 || k == 3 || k == 5, k != 2 && k != 5,
                                                      k == 0 || k == 1 || k == 4});
        }
    }
    /* Widths of panels that are no multiple of anything, and more than one piece of a row. */
    for (int32_t panels = 1; panels <= 1210; panels *= 11)
        check_residual(kernels, 3, 1210, (struct residual_form){SW_BF16, SW_F32, panels, 10, true, true, true, true});
    check_residual(kernels, 3, 1210, (struct residual_form){SW_F32, SW_F32, 1210, 1210, true, true, true, true});
}

/* The order of a sum depends on C alone: neither on the panels of y nor on its type. */
static void residual_panels(const sw_kernels *kernels)
{
    enum { ROWS = 2, CHANNELS = 1560 };
    static const int32_t counts[] = {1, 2, 3, 5, 13, 120, CHANNELS};
    const sw_norm post = make_norm(CHANNELS);
    const float *start = trial_normals(ROWS * CHANNELS, SW_F32, 0, 1);
    const uint16_t *values = trial_normals(ROWS * CHANNELS, SW_BF16, 30, 1);
    float first[ROWS * CHANNELS];
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        for (int type = 0; type < 2; type++) {
            const sw_panels y = make_panels((sw_type)type, ROWS, CHANNELS, counts[i]);
            for (int32_t k = 0; k < ROWS * CHANNELS; k++)
                trial_put(y.data, y.type, panels_offset(&y, k / CHANNELS, k % CHANNELS),
                          trial_get(values, SW_BF16, (size_t)k));
            float *x = guarded_alloc(ROWS * CHANNELS, sizeof *x);
            memcpy(x, start, ROWS * CHANNELS * sizeof *x);
            kernels->residual(x, NULL, &y, &post, ROWS, CHANNELS, NULL, NULL);
            if (i == 0 && type == 0)
                memcpy(first, x, sizeof first);
            assert_memory_equal(first, x, sizeof first);
            guarded_free(x);
            guarded_free(y.data);
        }
    }
}

static void check_merge(const sw_kernels *kernels, int32_t rows, int32_t channels, sw_type type, int32_t panels,
                        bool normed, float mean)
{
    const int32_t tokens = 4 * rows + 1;
    const float *x = trial_normals((size_t)tokens * (size_t)channels, SW_F32, mean, 1);
    const int32_t *index = make_index(4 * rows, tokens);
    const sw_norm norm = make_norm(4 * channels);
    const sw_panels dst = make_panels(type, rows, 4 * channels, panels);
    kernels->gather_merge(&dst, x, index, rows, channels, normed ? &norm : NULL);
    for (int32_t r = 0; r < rows; r++) {
        for (int32_t c = 0; c < 4 * channels; c++) {
            const int32_t token = index[4 * r + c / channels];
            exact[c] = token < 0 ? 0 : (double)x[(size_t)token * (size_t)channels + (size_t)(c % channels)];
        }
        if (normed)
            exact_norm(exact, 4 * channels, &norm);
        check_row(kernels, "merge", &dst, r, 4 * channels, exact, normed ? &norm : NULL, 0);
    }
    check_gaps(&dst, rows, 4 * channels);
    guarded_free_all();
}

static void merge_shapes(const sw_kernels *kernels)
{
    for (size_t i = 0; i < COUNT_OF(channel_counts); i++) {
        for (size_t j = 0; j < COUNT_OF(row_counts); j++) {
            const int32_t channels = channel_counts[i], rows = row_counts[j];
            if (4 * rows * channels > MOST_ELEMENTS)
                continue;
            for (int form = (int)(i + j) % 3; form < 8; form += 3)
                check_merge(kernels, rows, channels, form & 1 ? SW_BF16 : SW_F32,
                            form & 4 ? (channels % 3 == 0 ? 6 : 2) : 1, (form & 2) == 0, form & 4 ? 0 : 2);
        }
    }
}

#define TEST(name)                         \
    static void test_##name(void **context) \
    {                                      \
        (void)context;                     \
        trial_run(name);                   \
    }
TEST(gather_shapes)
TEST(gather_far_mean)
TEST(gather_in_place)
TEST(gather_special)
TEST(gather_split)
TEST(residual_shapes)
TEST(residual_panels)
TEST(merge_shapes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather_shapes),    cmocka_unit_test(test_gather_far_mean),
        cmocka_unit_test(test_gather_in_place),  cmocka_unit_test(test_gather_special),
        cmocka_unit_test(test_gather_split),     cmocka_unit_test(test_residual_shapes),
        cmocka_unit_test(test_residual_panels),  cmocka_unit_test(test_merge_shapes),
    };
    return cmocka_run_group_tests_name("kernels-norm", tests, NULL, NULL);
}
