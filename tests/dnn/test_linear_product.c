/* SPDX-License-Identifier: MIT */
/*
 * Linear products against double precision, with operands that end right at a page that must not be touched.
 */
#include "matrix.h"

#include "backend_refusing.h"
#include "memory_counted.h"

/* Real layers: patch embedding (k 48), qkv, proj, fc1, fc2 and merging of the published models, and what cannot be cut
 * evenly. */
static const struct {
    int32_t m, n, k;
} shapes[] = {
    {1, 1, 1},      {1, 3, 5},      {3, 1, 7},      {16, 7, 3},     {17, 33, 31},  {49, 96, 48},
    {98, 288, 96},  {112, 96, 96},  {16, 384, 384}, {64, 192, 384}, {33, 768, 96}, {49, 96, 768},
    {208, 130, 50}, {448, 48, 192}, {16, 24, 1152}, {7, 1000, 13},  {128, 5, 257},
};

/* W [n, k] float32, as the packed weights hold it. */
static float *rounded(const float *w, size_t count, sw_type type)
{
    float *copy = guarded_alloc(count, sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        const uint16_t half = trial_bf16(w[i]);
        copy[i] = type == SW_BF16 ? trial_get(&half, SW_BF16, 0) : w[i];
    }
    return copy;
}

static void check_shape(sw_linear_shape s, bool after_another)
{
    swin_error err;
    sw_dnn *dnn;
    must(sw_dnn_create(&dnn, &err), &err);
    const sw_product *like = NULL, *product;
    if (after_another) { /* the layout of the weights was chosen by a product of many rows */
        sw_linear_shape most = s;
        most.m = 500;
        most.accumulate = false;
        most.bias = true;
        must(sw_dnn_linear(dnn, &most, NULL, &like, &err), &err);
    }
    must(sw_dnn_linear(dnn, &s, like, &product, &err), &err);
    assert_int_equal(sw_dnn_product_count(dnn), after_another ? 2 : 1);
    char where[160];
    snprintf(where, sizeof where, "%s m %d n %d k %d%s%s, types %d to %d", sw_product_name(product), s.m, s.n, s.k,
             s.bias ? " with bias" : "", s.accumulate ? " accumulating" : "", (int)s.type, (int)s.out_type);

    const size_t c_count = (size_t)s.m * (size_t)s.n;
    const void *a = trial_normals((size_t)s.m * (size_t)s.k, s.type, 0.1f, 1);
    const float *w = trial_normals((size_t)s.n * (size_t)s.k, SW_F32, 0, 1);
    const float *bias = s.bias ? trial_normals((size_t)s.n, SW_F32, 1, 2) : NULL;
    void *c = guarded_alloc(c_count, sw_type_size(s.out_type));
    float *before = guarded_alloc(c_count, sizeof *before);
    for (size_t i = 0; i < c_count; i++) {
        before[i] = trial_normal(0, 3);
        trial_put(c, s.out_type, i, s.accumulate ? before[i] : NAN); /* what is not added to is not read */
    }

    sw_weights *weights;
    must(sw_weights_create(dnn, like != NULL ? like : product, w, &weights, &err), &err);
    assert_true(sw_weights_bytes(weights) >= (size_t)s.n * (size_t)s.k * sw_type_size(s.type));
    sw_dnn_thread *thread;
    must(sw_dnn_thread_create(dnn, &thread, &err), &err);
    assert_int_equal(sw_product_linear(product, thread, a, weights, bias, c), SWIN_OK);

    const matrix c_matrix = dense(c, s.out_type, s.n), a_matrix = dense(a, s.type, s.k);
    const matrix b_matrix = {rounded(w, (size_t)s.n * (size_t)s.k, s.type), SW_F32, 0, 1, (size_t)s.k};
    const matrix start = s.accumulate ? dense(before, SW_F32, s.n) : (matrix){bias, SW_F32, 0, 0, 1};
    product_check(&c_matrix, &a_matrix, &b_matrix, &start, s.m, s.n, s.k, s.k + 1, where);

    sw_dnn_thread_destroy(thread);
    sw_weights_destroy(weights);
    sw_dnn_destroy(dnn);
    guarded_free_all();
}

static void check_shapes(sw_type type, sw_type out_type)
{
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        /* plain, with a bias, accumulating; alone and after another */
        for (int what = 0; what < (out_type == SW_F32 ? 6 : 4); what++) {
            guarded_use_side(what % 2 == 0 ? GUARDED_END : GUARDED_START);
            trial_seed(i);
            const sw_linear_shape s = {.m = shapes[i].m,
                                       .n = shapes[i].n,
                                       .k = shapes[i].k,
                                       .type = type,
                                       .out_type = out_type,
                                       .bias = what / 2 == 1,
                                       .accumulate = what / 2 == 2};
            check_shape(s, what % 2 == 1);
        }
    }
    assert_int_equal(memory_live_blocks(), 0);
}

static void linear_in_float32(void **state)
{
    (void)state;
    check_shapes(SW_F32, SW_F32);
}

static void linear_in_bf16_to_float32(void **state)
{
    (void)state;
    check_shapes(SW_BF16, SW_F32);
}

static void linear_in_bf16_to_bf16(void **state)
{
    (void)state;
    check_shapes(SW_BF16, SW_BF16);
}

/* As on a CPU for which oneDNN has no bf16 products. */
static void linear_in_widened_bf16(void **state)
{
    (void)state;
    backend_without_bf16(true);
    check_shapes(SW_BF16, SW_F32);
    check_shapes(SW_BF16, SW_BF16);
    backend_without_bf16(false);
}

/* A stage's menu: all products take the weights that were packed for any one of them, whatever was made before. */
static void a_menu_shares_its_weights(void **state)
{
    (void)state;
    static const int32_t menu[] = {448, 224, 112, 56, 49, 32, 16, 1};
    static const struct {
        int32_t n, k;
    } layers[] = {{96, 96}, {96, 48}, {288, 96}, {384, 96}, {96, 384}, {192, 384}, {20, 20}, {60, 17}, {3, 5}};
    for (int type = SW_F32; type <= SW_BF16; type++) {
        for (size_t l = 0; l < COUNT_OF(layers); l++) {
            swin_error err;
            sw_dnn *dnn;
            must(sw_dnn_create(&dnn, &err), &err);
            const int32_t n = layers[l].n, k = layers[l].k;
            sw_linear_shape s = {.n = n, .k = k, .type = (sw_type)type, .bias = true};
            /* somebody else's products of the same shapes, each with a layout of its own choice */
            const sw_product *other, *products[COUNT_OF(menu)];
            for (size_t i = 0; i < COUNT_OF(menu); i += 2) {
                s.m = menu[COUNT_OF(menu) - 1 - i];
                must(sw_dnn_linear(dnn, &s, NULL, &other, &err), &err);
            }
            for (size_t i = 0; i < COUNT_OF(menu); i++) {
                s.m = menu[i];
                must(sw_dnn_linear(dnn, &s, i == 0 ? NULL : products[0], &products[i], &err), &err);
            }
            sw_dnn_thread *thread;
            must(sw_dnn_thread_create(dnn, &thread, &err), &err);
            trial_seed(l);
            const void *a = trial_normals((size_t)(menu[0] * k), (sw_type)type, 0, 1);
            const float *w = trial_normals((size_t)(n * k), SW_F32, 0, 1),
                        *bias = trial_normals((size_t)n, SW_F32, 0, 1);
            const matrix a_matrix = dense(a, (sw_type)type, k), start = {bias, SW_F32, 0, 0, 1};
            const matrix b_matrix = {rounded(w, (size_t)(n * k), (sw_type)type), SW_F32, 0, 1, (size_t)k};
            for (size_t packed = 0; packed < COUNT_OF(menu); packed += COUNT_OF(menu) - 1) {
                sw_weights *weights;
                must(sw_weights_create(dnn, products[packed], w, &weights, &err), &err);
                for (size_t i = 0; i < COUNT_OF(menu); i++) {
                    float *c = guarded_alloc((size_t)(menu[i] * n), sizeof *c);
                    assert_int_equal(sw_product_linear(products[i], thread, a, weights, bias, c), SWIN_OK);
                    const matrix c_matrix = dense(c, SW_F32, n);
                    product_check(&c_matrix, &a_matrix, &b_matrix, &start, menu[i] < 40 ? menu[i] : 40, n, k, k + 1,
                                  sw_product_name(products[i]));
                    guarded_free(c);
                }
                sw_weights_destroy(weights);
            }
            sw_dnn_thread_destroy(thread);
            sw_dnn_destroy(dnn);
            guarded_free_all();
        }
    }
    assert_int_equal(memory_live_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_in_float32),         cmocka_unit_test(linear_in_bf16_to_float32),
        cmocka_unit_test(linear_in_bf16_to_bf16),    cmocka_unit_test(linear_in_widened_bf16),
        cmocka_unit_test(a_menu_shares_its_weights),
    };
    return cmocka_run_group_tests_name("linear products", tests, NULL, NULL);
}
