/* SPDX-License-Identifier: MIT */
#include "trial.h"

static const int32_t row_counts[] = {1, 2, 9, 16, 25, 49, 64, 144, 256, 576};
static const int32_t head_sizes[] = {1, 3, 4, 15, 16, 17, 24, 31, 32, 33, 48, 64, 100};

struct form {
    sw_type dst_type, src_type;
    bool indexed, padded, normalise;
};

static void check_gather(const sw_kernels *kernels, int32_t rows, int32_t d, struct form form)
{
    const size_t stride = 3 * (size_t)d + 5;
    const int32_t tokens = rows + 4;
    const void *src = trial_normals((size_t)(tokens - 1) * stride + (size_t)d, form.src_type, 0.2f, 1);
    int32_t *index = guarded_alloc((size_t)rows, sizeof *index);
    for (int32_t t = 0; t < rows; t++)
        index[t] = t % 5 == 2 ? -1 : (int32_t)(trial_bits() % (uint32_t)tokens);
    guarded_seal(index);
    const float *pad = trial_normals((size_t)d, SW_F32, 1, 2);
    void *dst = guarded_alloc((size_t)rows * (size_t)d, sw_type_size(form.dst_type));
    kernels->gather_head(dst, form.dst_type, src, form.src_type, stride, form.indexed ? index : NULL,
                         form.padded ? pad : NULL, rows, d, form.normalise, 12.5f);
    for (int32_t t = 0; t < rows; t++) {
        const int32_t from = form.indexed ? index[t] : t;
        double row[128], squares = 0;
        for (int32_t c = 0; c < d; c++) {
            row[c] = from >= 0 ? (double)trial_get(src, form.src_type, (size_t)from * stride + (size_t)c)
                     : form.padded ? (double)pad[c] : 0;
            squares += row[c] * row[c];
        }
        for (int32_t c = 0; c < d; c++) {
            const double exact = form.normalise ? row[c] / fmax(sqrt(squares), 1e-12) * 12.5 : row[c];
            /* Half the error of the sum of at most 25 dependent additions, then root, division and product. */
            const double tolerance = form.normalise ? 16 * UNIT * fabs(exact) : 0;
            trial_close(trial_get(dst, form.dst_type, (size_t)t * (size_t)d + (size_t)c), exact, tolerance,
                        form.dst_type, "%s gather, d = %d, row %d, channel %d", kernels->name, (int)d, (int)t, (int)c);
        }
    }
    guarded_free_all();
}

static void gather_shapes(const sw_kernels *kernels)
{
    int turn = 0;
    for (size_t i = 0; i < COUNT_OF(row_counts); i++) {
        for (size_t j = 0; j < COUNT_OF(head_sizes); j++) {
            for (int k = turn++ % 5; k < 32; k += row_counts[i] > 64 ? 15 : 5)
                check_gather(kernels, row_counts[i], head_sizes[j],
                             (struct form){k & 1 ? SW_BF16 : SW_F32, k & 2 ? SW_BF16 : SW_F32, (k & 4) != 0,
                                           (k & 8) != 0, (k & 16) != 0});
        }
    }
}

/* Lengths at the ends of the range of numbers. */
static void gather_lengths(const sw_kernels *kernels)
{
    static const struct {
        const char *name;
        float value; /* of all d elements but the first */
        float first;
    } cases[] = {
        {"zero", 0, 0},
        {"denormal", 1e-40f, 0},
        {"tiny", 1e-25f, 1e-25f},
        {"at the limit", 1e-13f, 2e-13f},
        {"small", 3e-12f, 1e-12f},
        {"squares overflow", 1e25f, -3e25f},
        {"large", 3e38f, 1},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (size_t j = 0; j < COUNT_OF(head_sizes); j++) {
            const int32_t d = head_sizes[j];
            float *src = guarded_alloc((size_t)d, sizeof *src), *dst = guarded_alloc((size_t)d, sizeof *dst);
            double squares = 0;
            for (int32_t c = 0; c < d; c++) {
                src[c] = c == 0 ? cases[i].first : cases[i].value;
                squares += (double)src[c] * src[c];
            }
            kernels->gather_head(dst, SW_F32, src, SW_F32, (size_t)d, NULL, NULL, 1, d, true, 10);
            for (int32_t c = 0; c < d; c++) {
                const double exact = src[c] / fmax(sqrt(squares), (double)1e-12f) * 10;
                trial_close(dst[c], exact, 16 * UNIT * fabs(exact) + 1e-44, SW_F32, "%s %s, d = %d", kernels->name,
                            cases[i].name, (int)d);
            }
            guarded_free_all();
        }
    }
    const float bad[] = {1, NAN, 2}, endless[] = {1, INFINITY, 2};
    float dst[3];
    kernels->gather_head(dst, SW_F32, bad, SW_F32, 3, NULL, NULL, 1, 3, true, 10);
    assert_true(isnan(dst[0]) && isnan(dst[1]) && isnan(dst[2]));
    kernels->gather_head(dst, SW_F32, endless, SW_F32, 3, NULL, NULL, 1, 3, true, 10);
    assert_true(dst[0] == 0 && isnan(dst[1]) && dst[2] == 0);
}

static void check_scatter(const sw_kernels *kernels, int32_t rows, int32_t d, sw_type type, bool indexed)
{
    const size_t stride = 2 * (size_t)d + 3, size = sw_type_size(type);
    const void *src = trial_normals((size_t)rows * (size_t)d, type, 0, 1);
    int32_t *index = guarded_alloc((size_t)rows, sizeof *index);
    for (int32_t t = 0; t < rows; t++)
        index[t] = t % 5 == 2 ? -1 : rows - 1 - t;
    guarded_seal(index);
    char *dst = guarded_alloc((size_t)(rows - 1) * stride + (size_t)d, size);
    kernels->scatter_head(dst, type, stride, src, indexed ? index : NULL, rows, d);
    for (int32_t t = 0; t < rows; t++) {
        /* The inverse of both lists above is the list itself. */
        const int32_t from = indexed ? index[rows - 1 - t] < 0 ? -1 : rows - 1 - t : t;
        char *row = dst + (size_t)t * stride * size;
        if (from < 0)
            trial_untouched(row, (size_t)d * size, "dropped row");
        else
            assert_memory_equal(row, (const char *)src + (size_t)from * (size_t)d * size, (size_t)d * size);
        if (t + 1 < rows)
            trial_untouched(row + (size_t)d * size, (stride - (size_t)d) * size, "other heads");
    }
    guarded_free_all();
}

static void scatter_shapes(const sw_kernels *kernels)
{
    for (size_t i = 0; i < COUNT_OF(row_counts); i++) {
        for (size_t j = 0; j < COUNT_OF(head_sizes); j++) {
            for (int k = 0; k < 4; k++)
                check_scatter(kernels, row_counts[i], head_sizes[j], k & 1 ? SW_BF16 : SW_F32, (k & 2) != 0);
        }
    }
}

#define TEST(name)                          \
    static void test_##name(void **context) \
    {                                       \
        (void)context;                      \
        trial_run(name);                    \
    }
TEST(gather_shapes)
TEST(gather_lengths)
TEST(scatter_shapes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather_shapes),
        cmocka_unit_test(test_gather_lengths),
        cmocka_unit_test(test_scatter_shapes),
    };
    return cmocka_run_group_tests_name("kernels-move", tests, NULL, NULL);
}
