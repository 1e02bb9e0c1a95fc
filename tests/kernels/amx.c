/* SPDX-License-Identifier: MIT */
/*
 * The AMX kernels against double precision on the numbers that they are given, bf16 or float32.
 */
#include "trial.h"

#include <stdlib.h>

#include "kernels/amx.h"

enum { PANEL = SW_AMX_WIDTH };

static bool usable(void)
{
    return sw_amx_built() && sw_cpu_has_amx();
}

static size_t round_rows(int32_t rows)
{
    return (size_t)(rows + SW_AMX_ROWS - 1) / SW_AMX_ROWS * SW_AMX_ROWS;
}

static const char *const finishes[] = {"store", "add", "narrow", "gelu", "normalise"};

/* A number of C in double precision, and what bounds its error. */
typedef struct sum {
    double value, magnitude;           /* sum and sum of absolute values of the products */
    double x_square, w_square;         /* of the row of A and the column of W           */
    double x_largest, w_largest;
    int32_t k;
} sum;

static void sum_add(sum *s, double x, double w)
{
    s->value += x * w;
    s->magnitude += fabs(x * w);
    s->x_square += x * x;
    s->w_square += w * w;
    s->x_largest = fmax(s->x_largest, fabs(x));
    s->w_largest = fmax(s->w_largest, fabs(w));
    s->k++;
}

  /* bf16: products are exact in float32, each addition rounds; the roundings of a long sum are independent, and eight
   * standard deviations of them are allowed for. Tiles flush denormals, which the numbers here never are.
   * Float32: both operands are rounded to multiples of u = largest / 8355000, independent errors with a standard
   * deviation of u / sqrt(12), again eight times that; the product of the lowest digits, at most 2^14 units of both, is
   * left out, as independent; sums are exact, and a few roundings make them float32. */
static double sum_tolerance(sw_type type, const sum *s)
{
    if (type == SW_BF16)
        return UNIT * 8 * sqrt((double)s->k) / 2 * s->magnitude;
    const double x_unit = s->x_largest / 8355000, w_unit = s->w_largest / 8355000;
    const double variance = (x_unit * x_unit * s->w_square + w_unit * w_unit * s->x_square) / 12;
    return 8 * sqrt(variance) + 16384 * x_unit * w_unit * sqrt((double)s->k) + 8 * UNIT * s->magnitude;
}

static void check_linear(sw_type operands, int32_t rows, int32_t n, int32_t k, bool with_bias, sw_amx_finish finish)
{
    const size_t a_rows = round_rows(rows), stride = a_rows * PANEL, count = stride * (size_t)(n / PANEL);
    const bool wide = finish == SW_AMX_STORE || finish == SW_AMX_ADD;
    const sw_type type = wide ? SW_F32 : operands;
    const size_t strip_bytes = sw_amx_strip_bytes(operands, k, 1), scratch_bytes = sw_amx_linear_scratch(rows, k);
    const void *a = trial_normals(stride * (size_t)(k / PANEL), operands, 0, 1);
    const float *w = trial_normals((size_t)n * (size_t)k, SW_F32, 0, 1.0f / sqrtf((float)k));
    const float *bias = trial_normals((size_t)n, SW_F32, 0, 1),
                *scale = trial_normals((size_t)(n / PANEL), SW_F32, 10, 3);
    char *packed = guarded_alloc((size_t)(n / PANEL) * strip_bytes, 1);
    sw_amx_pack(packed, operands, w, n, k, 1);
    guarded_seal(packed);
    void *scratch = aligned_alloc(64, (scratch_bytes + 63) / 64 * 64);
    memset(scratch, 0xff, scratch_bytes);
    void *c = guarded_alloc(count, sw_type_size(type));
    float *before = malloc(count * sizeof *before);
    for (size_t i = 0; i < count && finish == SW_AMX_ADD; i++)
        ((float *)c)[i] = before[i] = trial_normal(0, 1);
    const sw_amx_linear linear = {.type = operands,
                                  .rows = rows,
                                  .a = a,
                                  .a_stride = stride,
                                  .k_count = k / PANEL,
                                  .b = packed,
                                  .b_stride = strip_bytes,
                                  .b_at = sw_amx_chunk_at(operands, k, 0),
                                  .n_count = n / PANEL,
                                  .bias = with_bias ? bias : NULL,
                                  .scale = scale,
                                  .finish = finish,
                                  .c = c,
                                  .c_stride = stride,
                                  .scratch = scratch};
    sw_amx_linear_run(&linear);
    sw_amx_release();
    for (int32_t r = 0; r < rows; r++) {
        for (int32_t strip = 0; strip < n / PANEL; strip++) {
            sum sums[PANEL] = {{0}};
            double square = 0;
            const size_t at = (size_t)strip * stride + (size_t)r * PANEL;
            for (int32_t j = 0; j < PANEL; j++) {
                const int32_t column = strip * PANEL + j;
                for (int32_t i = 0; i < k; i++) {
                    const double x =
                        trial_get(a, operands, (size_t)(i / PANEL) * stride + (size_t)(r * PANEL + i % PANEL));
                    const float weight = w[(size_t)column * (size_t)k + (size_t)i];
                    const uint16_t narrow = trial_bf16(weight);
                    sum_add(&sums[j], x, operands == SW_F32 ? weight : trial_get(&narrow, SW_BF16, 0));
                }
                const double start =
                    (with_bias ? bias[column] : 0) + (finish == SW_AMX_ADD ? before[at + (size_t)j] : 0);
                sums[j].value += start;
                sums[j].magnitude += fabs(start);
                square += sums[j].value * sums[j].value;
            }
            for (int32_t j = 0; j < PANEL; j++) {
                double exact = sums[j].value, tolerance = sum_tolerance(operands, &sums[j]);
                if (finish == SW_AMX_GELU) {
                    exact = exact * 0.5 * erfc(-exact * sqrt(0.5));
                    /* gelu' <= 1.13; the table's error */
                    tolerance = 1.2 * tolerance + (operands == SW_F32 ? 3e-8 + UNIT * fabs(sums[j].value)
                                                                      : 3.3e-5 * fabs(sums[j].value));
                } else if (finish == SW_AMX_NORMALISE) {
                    exact = exact / sqrt(square) * scale[strip];
                    tolerance = (2 * tolerance / sqrt(square) + 64 * UNIT) * fabs(scale[strip]);
                }
                trial_close(trial_get(c, type, at + (size_t)j), exact, tolerance, type,
                            "%s of %s, row %d of %d, n %d, k %d, column %d", finishes[finish],
                            operands == SW_F32 ? "float32" : "bf16", (int)r, (int)rows, (int)n, (int)k,
                            (int)(strip * PANEL + j));
            }
        }
    }
    free(scratch);
    free(before);
    guarded_free_all();
}

static void linear_layers(void **state)
{
    (void)state;
    if (!usable())
        skip();
    static const int32_t rows[] = {1, 15, 16, 17, 31, 32, 33, 49, 98}, sizes[][2] = {{32, 32}, {96, 64}, {64, 384}};
    for (int side = 0; side < GUARDED_SIDES; side++) {
        guarded_use_side((enum guarded_side)side);
        for (int finish = SW_AMX_STORE; finish <= SW_AMX_NORMALISE; finish++) {
            for (size_t s = 0; s < COUNT_OF(sizes); s++) {
                for (size_t r = 0; r < COUNT_OF(rows); r++) {
                    const bool biased = finish != SW_AMX_ADD;
                    check_linear(SW_BF16, rows[r], sizes[s][0], sizes[s][1], biased && r % 2 == 0,
                                 (sw_amx_finish)finish);
                    if (finish != SW_AMX_NARROW)
                        check_linear(SW_F32, rows[r], sizes[s][0], sizes[s][1], biased && r % 2 == 1,
                                     (sw_amx_finish)finish);
                }
            }
        }
    }
}

/* Some strips and some steps of a larger matrix, as parts of a layer are computed. */
static void check_parts(sw_type type)
{
    enum { ROWS = 40, N = 128, K = 288, CHUNKS = 3 };
    const size_t stride = round_rows(ROWS) * PANEL;
    const void *a = trial_normals(stride * (K / PANEL), type, 0, 1);
    const float *w = trial_normals((size_t)N * K, SW_F32, 0, 0.1f), *bias = trial_normals(N, SW_F32, 0, 1);
    const size_t whole_strip = sw_amx_strip_bytes(type, K, 1), strip = sw_amx_strip_bytes(type, K / CHUNKS, CHUNKS);
    const size_t scratch_bytes = sw_amx_linear_scratch(ROWS, K);
    char *packed_whole = guarded_alloc(N / PANEL * whole_strip, 1), *packed = guarded_alloc(N / PANEL * strip, 1);
    sw_amx_pack(packed_whole, type, w, N, K, 1);
    sw_amx_pack(packed, type, w, N, K / CHUNKS, CHUNKS);
    void *scratch = aligned_alloc(64, (scratch_bytes + 63) / 64 * 64);
    float *whole = guarded_alloc(stride * (N / PANEL), sizeof *whole),
          *parts = guarded_alloc(stride * (N / PANEL), sizeof *parts);
    sw_amx_linear linear = {.type = type,
                            .scratch = scratch,
                            .rows = ROWS,
                            .a = a,
                            .a_stride = stride,
                            .k_count = K / PANEL,
                            .b = packed_whole,
                            .b_stride = whole_strip,
                            .b_at = sw_amx_chunk_at(type, K, 0),
                            .n_count = N / PANEL,
                            .bias = bias,
                            .finish = SW_AMX_STORE,
                            .c = whole,
                            .c_stride = stride};
    sw_amx_linear_run(&linear);
    linear.b_stride = strip;
    linear.k_count = K / PANEL / CHUNKS;
    for (int32_t n = 0; n < N / PANEL; n += 2) {
        linear.n_count = 2;
        linear.b = packed + (size_t)n * strip;
        linear.c = parts + (size_t)n * stride;
        linear.bias = bias + n * PANEL;
        linear.finish = SW_AMX_STORE;
        for (int32_t chunk = 0; chunk < CHUNKS; chunk++) {
            linear.a = (const char *)a + (size_t)(chunk * K / CHUNKS / PANEL) * stride * sw_type_size(type);
            linear.b_at = sw_amx_chunk_at(type, K / CHUNKS, chunk);
            sw_amx_linear_run(&linear);
            linear.bias = NULL;
            linear.finish = SW_AMX_ADD;
        }
    }
    sw_amx_release();
    for (int32_t r = 0; r < ROWS; r++) {
        for (int32_t c = 0; c < N; c++) {
            const size_t at = (size_t)(c / PANEL) * stride + (size_t)(r * PANEL + c % PANEL);
            trial_close(parts[at], whole[at], 1e-5, SW_F32, "row %d, column %d", (int)r, (int)c);
        }
    }
    free(scratch);
    guarded_free_all();
}

static void parts_of_a_layer(void **state)
{
    (void)state;
    if (!usable())
        skip();
    check_parts(SW_BF16);
    check_parts(SW_F32);
}

 /* The scores carry the roundings of their sums, which scale with the largest of them, the coarse exponential of bf16
  * 1e-4, probabilities the unit roundoff of bf16, 2^-8, each, and the quotient a few roundings: all relative to sums
  * of |probability * value|. Float32 has the fine exponential and the roundings of a sum of T products instead. */
static void check_attention(sw_type type, int32_t tokens, bool masked, float spread, int32_t step)
{
    const size_t padded = round_rows(tokens) * PANEL;
    const void *q = trial_normals(padded, type, 0, spread), *k = trial_normals((size_t)tokens * PANEL, type, 0, spread);
    const void *v = trial_normals((size_t)tokens * PANEL, type, 0, 1);
    const float *bias = trial_normals((size_t)tokens * (size_t)tokens, SW_F32, 0, 1);
    int32_t *region = guarded_alloc((size_t)tokens, sizeof *region);
    for (int32_t i = 0; i < tokens; i++)
        region[i] = i % 3 == 0 ? 4 : i / 5 % 2;
    guarded_seal(region);
    void *context = guarded_alloc((size_t)tokens * PANEL, sw_type_size(type));
    const size_t scratch_bytes = (sw_amx_attention_scratch(type, tokens) + 63) / 64 * 64;
    void *scratch = aligned_alloc(64, scratch_bytes);
    memset(scratch, 0xff, scratch_bytes);
    const sw_amx_attention attention = {.type = type, .tokens = tokens, .q = q, .k = k, .v = v, .context = context,
                                        .region = masked ? region : NULL, .mask = -100, .scratch = scratch};
    sw_amx_attention_load(&attention);
    for (int32_t first = 0; first < tokens; first += step)
        sw_amx_attention_queries(&attention, first, tokens - first < step ? tokens - first : step,
                                 bias + (size_t)first * (size_t)tokens);
    sw_amx_release();
    double *share = malloc((size_t)tokens * sizeof *share);
    for (int32_t i = 0; i < tokens; i++) {
        double peak = -INFINITY, sum = 0, score_size = 0;
        for (int32_t j = 0; j < tokens; j++) {
            share[j] = bias[(size_t)i * (size_t)tokens + (size_t)j] + (masked && region[i] != region[j] ? -100 : 0);
            for (int32_t c = 0; c < PANEL; c++)
                share[j] +=
                    (double)trial_get(q, type, (size_t)(i * PANEL + c)) * trial_get(k, type, (size_t)(j * PANEL + c));
            peak = fmax(peak, share[j]);
            score_size = fmax(score_size, fabs(share[j]));
        }
        for (int32_t j = 0; j < tokens; j++)
            sum += share[j] = exp(share[j] - peak);
        const double relative = (type == SW_BF16 ? 0x1p-8 + 1.5e-4 : 40 * UNIT) + 64 * UNIT * (1 + score_size);
        for (int32_t c = 0; c < PANEL; c++) {
            double exact = 0, size = 0;
            for (int32_t j = 0; j < tokens; j++) {
                const double term = share[j] / sum * trial_get(v, type, (size_t)(j * PANEL + c));
                exact += term;
                size += fabs(term);
            }
            trial_close(trial_get(context, type, (size_t)(i * PANEL + c)), exact, relative * size, type,
                        "%s, T %d%s, query %d, channel %d",
                        type == SW_F32 ? "float32" : "bf16", (int)tokens, masked ? " masked" : "", (int)i, (int)c);
        }
    }
    free(share);
    free(scratch);
    guarded_free_all();
}

static void attention_of_windows(void **state)
{
    (void)state;
    if (!usable())
        skip();
    static const int32_t tokens[] = {1, 2, 9, 16, 17, 25, 32, 33, 49, 63, 64, 65, 144, 256, 576};
    for (int side = 0; side < GUARDED_SIDES; side++) {
        guarded_use_side((enum guarded_side)side);
        for (size_t t = 0; t < COUNT_OF(tokens); t++) {
            for (int masked = 0; masked < 2; masked++) {
                for (int type = SW_F32; type <= SW_BF16; type++) {
                    check_attention((sw_type)type, tokens[t], masked, 0.5f, tokens[t]);
                    check_attention((sw_type)type, tokens[t], masked, 0.5f, 16);
                    check_attention((sw_type)type, tokens[t], masked, 3.0f, tokens[t]); /* scores of a hundred */
                }
            }
        }
    }
}

/* A number of A that is none, or infinite, in row 20. */
static void check_nan_of_linear(sw_type type, float bad)
{
    enum { ROWS = 48 };
    const size_t strip = sw_amx_strip_bytes(type, PANEL, 1), scratch_bytes = sw_amx_linear_scratch(ROWS, PANEL);
    void *a = guarded_alloc(ROWS * PANEL, sw_type_size(type)), *c = guarded_alloc(ROWS * PANEL, sw_type_size(type));
    char *packed = guarded_alloc(strip, 1);
    void *scratch = aligned_alloc(64, (scratch_bytes + 63) / 64 * 64);
    float w[PANEL * PANEL];
    for (int i = 0; i < PANEL * PANEL; i++)
        w[i] = 0.01f;
    for (int i = 0; i < ROWS * PANEL; i++) {
        const float value = i == 20 * PANEL + 7 ? bad : 1.0f;
        if (type == SW_F32)
            ((float *)a)[i] = value;
        else
            ((uint16_t *)a)[i] = trial_bf16(value);
    }
    sw_amx_pack(packed, type, w, PANEL, PANEL, 1);
    const sw_amx_linear linear = {.type = type, .rows = ROWS, .a = a, .k_count = 1, .b = packed, .b_stride = strip,
                                  .b_at = sw_amx_chunk_at(type, PANEL, 0), .n_count = 1, .finish = SW_AMX_GELU,
                                  .c = c, .scratch = scratch};
    sw_amx_linear_run(&linear);
    for (int i = 0; i < ROWS * PANEL; i++)
        assert_true(isfinite(trial_get(c, type, (size_t)i)) == (i / PANEL != 20));
    free(scratch);
    guarded_free_all();
}

/* Numbers too small for a factor of their own are zeros; huge ones stay. */
static void sizes_of_float32(void **state)
{
    (void)state;
    if (!usable())
        skip();
    static const float sizes[] = {0, 1e-45f, 1e-38f, 1e-31f, 1e-20f, 1, 1e20f, 1e36f};
    float w[PANEL * PANEL], a[COUNT_OF(sizes) * PANEL + 8 * PANEL] = {0}, c[16 * PANEL];
    char packed[6144 + 128] __attribute__((aligned(64))), scratch[16 * 196] __attribute__((aligned(64)));
    for (int i = 0; i < PANEL * PANEL; i++)
        w[i] = i % (PANEL + 1) == 0 ? -2.0f : 0.0f;
    for (size_t r = 0; r < COUNT_OF(sizes); r++)
        a[r * PANEL + r] = sizes[r];
    sw_amx_pack(packed, SW_F32, w, PANEL, PANEL, 1);
    const sw_amx_linear linear = {.type = SW_F32, .rows = COUNT_OF(sizes), .a = a, .k_count = 1, .b = packed,
                                  .b_at = sw_amx_chunk_at(SW_F32, PANEL, 0), .n_count = 1, .finish = SW_AMX_STORE,
                                  .c = c, .scratch = scratch};
    sw_amx_linear_run(&linear);
    sw_amx_release();
    for (size_t r = 0; r < COUNT_OF(sizes); r++) {
        for (size_t i = 0; i < PANEL; i++) {
            const double exact = i == r ? -2.0 * sizes[r] : 0;
            assert_true(fabs(c[r * PANEL + i] - exact) <= fmax(4 * UNIT * fabs(exact), 1e-37));
        }
    }
}

static void nan_stays_in_its_row(void **state)
{
    (void)state;
    if (!usable())
        skip();
    enum { T = 49 };
    for (int type = SW_F32; type <= SW_BF16; type++) {
        for (int bad = 0; bad < 2; bad++)
            check_nan_of_linear((sw_type)type, bad == 0 ? NAN : INFINITY);
    }
    uint16_t q[64 * PANEL], kv[T * PANEL], context[T * PANEL];
    float bias[T * T] = {0};
    for (int i = 0; i < 64 * PANEL; i++)
        q[i] = trial_bf16(i / PANEL == 20 ? NAN : 0.5f);
    for (int i = 0; i < T * PANEL; i++)
        kv[i] = trial_bf16(0.5f);
    void *scratch = aligned_alloc(64, (sw_amx_attention_scratch(SW_BF16, T) + 63) / 64 * 64);
    const sw_amx_attention attention = {
        .type = SW_BF16, .tokens = T, .q = q, .k = kv, .v = kv, .context = context, .scratch = scratch};
    sw_amx_attention_load(&attention);
    sw_amx_attention_queries(&attention, 0, T, bias);
    sw_amx_release();
    for (int r = 0; r < T; r++)
        assert_true(isnan(trial_get(context, SW_BF16, (size_t)r * PANEL)) == (r == 20));
    free(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_layers),
        cmocka_unit_test(parts_of_a_layer),
        cmocka_unit_test(attention_of_windows),
        cmocka_unit_test(nan_stays_in_its_row),
        cmocka_unit_test(sizes_of_float32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
