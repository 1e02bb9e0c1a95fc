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
    return sw_amx_built() && sw_cpu_has_amx_bf16();
}

static size_t round_rows(int32_t rows)
{
    return (size_t)(rows + SW_AMX_ROWS - 1) / SW_AMX_ROWS * SW_AMX_ROWS;
}

static const char *const finishes[] = {"store", "add", "narrow", "gelu", "normalise"};

  /* Sums of k products: products of bf16 numbers are exact in float32, each addition rounds; the roundings of a long
   * sum are independent, and eight standard deviations of them are allowed for. Float32 operands add the three
   * products left out, 2^-26 each in the worst case, and five more additions per product. Tiles flush denormals,
   * which the numbers here never are. */
static double sum_tolerance(sw_type type, double magnitude, int32_t k)
{
    const double terms = type == SW_F32 ? 6.0 * k : k;
    return UNIT * (8 * sqrt(terms) / 2 + (type == SW_F32 ? 1 : 0)) * magnitude;
}

static void check_linear(sw_type operands, int32_t rows, int32_t n, int32_t k, bool with_bias, sw_amx_finish finish)
{
    const size_t a_rows = round_rows(rows), stride = a_rows * PANEL, count = stride * (size_t)(n / PANEL);
    const bool wide = finish == SW_AMX_STORE || finish == SW_AMX_ADD;
    const sw_type type = wide ? SW_F32 : operands;
    const void *a = trial_normals(stride * (size_t)(k / PANEL), operands, 0, 1);
    const float *w = trial_normals((size_t)n * (size_t)k, SW_F32, 0, 1.0f / sqrtf((float)k));
    const float *bias = trial_normals((size_t)n, SW_F32, 0, 1),
                *scale = trial_normals((size_t)(n / PANEL), SW_F32, 10, 3);
    uint16_t *packed = guarded_alloc(sw_amx_packed_size(operands, n, k), sizeof *packed);
    sw_amx_pack(packed, operands, w, n, k);
    guarded_seal(packed);
    void *scratch = aligned_alloc(64, sw_amx_linear_scratch(k));
    memset(scratch, 0xff, sw_amx_linear_scratch(k));
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
                                  .b_stride = sw_amx_packed_size(operands, PANEL, k),
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
            double sums[PANEL], magnitude[PANEL], square = 0;
            const size_t at = (size_t)strip * stride + (size_t)r * PANEL;
            for (int32_t j = 0; j < PANEL; j++) {
                const int32_t column = strip * PANEL + j;
                sums[j] = (with_bias ? bias[column] : 0) + (finish == SW_AMX_ADD ? before[at + (size_t)j] : 0);
                magnitude[j] = fabs(sums[j]);
                for (int32_t i = 0; i < k; i++) {
                    const double x =
                        trial_get(a, operands, (size_t)(i / PANEL) * stride + (size_t)(r * PANEL + i % PANEL));
                    const float weight = w[(size_t)column * (size_t)k + (size_t)i];
                    const uint16_t narrow = trial_bf16(weight);
                    const double product = x * (operands == SW_F32 ? weight : trial_get(&narrow, SW_BF16, 0));
                    sums[j] += product;
                    magnitude[j] += fabs(product);
                }
                square += sums[j] * sums[j];
            }
            for (int32_t j = 0; j < PANEL; j++) {
                double exact = sums[j], tolerance = sum_tolerance(operands, magnitude[j], k);
                if (finish == SW_AMX_GELU) {
                    exact = sums[j] * 0.5 * erfc(-sums[j] * sqrt(0.5));
                    tolerance = 1.2 * tolerance + 3.3e-5 * fabs(sums[j]); /* gelu' <= 1.13; the table's error */
                } else if (finish == SW_AMX_NORMALISE) {
                    exact = sums[j] / sqrt(square) * scale[strip];
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
                    check_linear(SW_BF16, rows[r], sizes[s][0], sizes[s][1], r % 2 == 0, (sw_amx_finish)finish);
                    if (finish != SW_AMX_NARROW && finish != SW_AMX_GELU)
                        check_linear(SW_F32, rows[r], sizes[s][0], sizes[s][1], r % 2 == 1, (sw_amx_finish)finish);
                }
            }
        }
    }
}

/* Some strips and some steps of a larger matrix, as parts of a layer are computed. */
static void check_parts(sw_type type)
{
    enum { ROWS = 40, N = 128, K = 192 };
    const size_t stride = round_rows(ROWS) * PANEL;
    const void *a = trial_normals(stride * (K / PANEL), type, 0, 1);
    const float *w = trial_normals((size_t)N * K, SW_F32, 0, 0.1f), *bias = trial_normals(N, SW_F32, 0, 1);
    uint16_t *packed = guarded_alloc(sw_amx_packed_size(type, N, K), sizeof *packed);
    sw_amx_pack(packed, type, w, N, K);
    void *scratch = aligned_alloc(64, sw_amx_linear_scratch(K));
    float *whole = guarded_alloc(stride * (N / PANEL), sizeof *whole),
          *parts = guarded_alloc(stride * (N / PANEL), sizeof *parts);
    const size_t strip = sw_amx_packed_size(type, PANEL, K);
    sw_amx_linear linear = {.type = type,
                            .scratch = scratch,
                            .rows = ROWS,
                            .a = a,
                            .a_stride = stride,
                            .k_count = K / PANEL,
                            .b = packed,
                            .b_stride = strip,
                            .n_count = N / PANEL,
                            .bias = bias,
                            .finish = SW_AMX_STORE,
                            .c = whole,
                            .c_stride = stride};
    sw_amx_linear_run(&linear);
    for (int32_t n = 0; n < N / PANEL; n++) {
        linear.n_count = 1;
        linear.c = parts + (size_t)n * stride;
        linear.k_count = 2;
        linear.bias = bias + n * PANEL;
        linear.finish = SW_AMX_STORE;
        for (int32_t k = 0; k < K / PANEL; k += 2) {
            linear.a = (const char *)a + (size_t)k * stride * sw_type_size(type);
            linear.b = packed + (size_t)n * strip + sw_amx_packed_size(type, PANEL, k * PANEL);
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

static void nan_stays_in_its_row(void **state)
{
    (void)state;
    if (!usable())
        skip();
    enum { ROWS = 48, T = 49 };
    uint16_t *a = calloc(ROWS * PANEL, sizeof *a), *packed = calloc(PANEL * PANEL, sizeof *packed), c[ROWS * PANEL];
    for (int i = 0; i < ROWS * PANEL; i++)
        a[i] = trial_bf16(i / PANEL == 20 ? NAN : 1.0f);
    for (int i = 0; i < PANEL * PANEL; i++)
        packed[i] = trial_bf16(0.01f);
    const sw_amx_linear linear = {
        .type = SW_BF16, .rows = ROWS, .a = a, .k_count = 1, .b = packed, .n_count = 1, .finish = SW_AMX_GELU, .c = c};
    sw_amx_linear_run(&linear);
    for (int r = 0; r < ROWS; r++)
        assert_true(isnan(trial_get(c, SW_BF16, (size_t)r * PANEL)) == (r == 20));
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
    free(a);
    free(packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_layers),
        cmocka_unit_test(parts_of_a_layer),
        cmocka_unit_test(attention_of_windows),
        cmocka_unit_test(nan_stays_in_its_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
