/* SPDX-License-Identifier: MIT */
/*
 * The attention products against double precision, viewed in panels and split by head.
 */
#include "matrix.h"

#include "backend_refusing.h"
#include "memory_counted.h"

static const struct {
    int32_t windows, heads, queries, tokens, head_channels;
    bool split;
} shapes[] = {
    /* viewed: several windows, all heads of a panel */
    {1, 1, 1, 1, 1, false},
    {1, 3, 4, 4, 8, false},
    {3, 1, 9, 9, 5, false},
    {8, 3, 49, 49, 32, false},
    {1, 12, 49, 49, 32, false},
    {2, 6, 49, 49, 32, false},
    {4, 2, 64, 64, 24, false},
    {2, 5, 12, 12, 6, false},
    /* split: one window, heads one after the other */
    {1, 1, 1, 1, 1, true},
    {1, 3, 49, 49, 32, true},
    {1, 2, 64, 64, 32, true},
    {1, 4, 100, 100, 20, true},
    {1, 2, 144, 144, 32, true},
    {1, 1, 256, 256, 32, true},
    {1, 3, 15, 15, 7, true},
    /* query blocks of windows whose scores are too large for one product */
    {1, 1, 72, 576, 32, true},
    {1, 1, 19, 323, 16, true},
    {1, 1, 1, 331, 8, true},
};

/* q, k, v and the context: rows of a window and head. */
static matrix rows_of(const void *data, const sw_attention_shape *s, int32_t window, int32_t head, int32_t rows)
{
    const size_t d = (size_t)s->head_channels, t = (size_t)rows, width = d * (size_t)s->heads;
    if (s->split)
        return (matrix){data, s->type, ((size_t)window * (size_t)s->heads + (size_t)head) * t * d, d, 1};
    return (matrix){data, s->type, (size_t)window * t * width + (size_t)head * d, width, 1};
}

static matrix scores_of(const void *data, sw_type type, const sw_attention_shape *s, int32_t window, int32_t head)
{
    const size_t size = (size_t)s->queries * (size_t)s->tokens;
    return (matrix){data, type, ((size_t)window * (size_t)s->heads + (size_t)head) * size, (size_t)s->tokens, 1};
}

static matrix transposed(matrix x)
{
    return (matrix){x.data, x.type, x.first, x.column_step, x.row_step};
}

static void check_shape(const sw_attention_shape *s)
{
    swin_error err;
    sw_dnn *dnn;
    must(sw_dnn_create(&dnn, &err), &err);
    const sw_product *scores, *context;
    must(sw_dnn_scores(dnn, s, &scores, &err), &err);
    must(sw_dnn_context(dnn, s, &context, &err), &err);
    assert_ptr_not_equal(scores, context);
    sw_dnn_thread *thread;
    must(sw_dnn_thread_create(dnn, &thread, &err), &err);

    const size_t groups = (size_t)s->windows * (size_t)s->heads, d = (size_t)s->head_channels;
    const size_t key_count = groups * (size_t)s->tokens * d, query_count = groups * (size_t)s->queries * d;
    const size_t score_count = groups * (size_t)s->queries * (size_t)s->tokens;
    const void *q = trial_normals(query_count, s->type, 0.2f, 1), *k = trial_normals(key_count, s->type, 0, 1);
    const void *v = trial_normals(key_count, s->type, -1, 1), *p = trial_normals(score_count, s->type, 0.1f, 0.1f);
    float *c = guarded_alloc(score_count, sizeof *c);
    void *x = guarded_alloc(query_count, sw_type_size(s->type));
    assert_int_equal(sw_product_attention(scores, thread, q, k, c), SWIN_OK);
    assert_int_equal(sw_product_attention(context, thread, p, v, x), SWIN_OK);

    const matrix none = {0};
    for (int32_t w = 0; w < s->windows; w++) {
        for (int32_t h = 0; h < s->heads; h++) {
            char where[160];
            snprintf(where, sizeof where,
                     "%d windows, %d heads, %d x %d tokens, %d channels, type %d%s: window %d, head %d", s->windows,
                     s->heads, s->queries, s->tokens, s->head_channels, (int)s->type, s->split ? ", split" : "", w, h);
            const matrix c_matrix = scores_of(c, SW_F32, s, w, h), q_matrix = rows_of(q, s, w, h, s->queries);
            const matrix k_matrix = transposed(rows_of(k, s, w, h, s->tokens));
            product_check(&c_matrix, &q_matrix, &k_matrix, &none, s->queries, s->tokens, s->head_channels,
                          s->head_channels + 1, where);
            const matrix x_matrix = rows_of(x, s, w, h, s->queries), p_matrix = scores_of(p, s->type, s, w, h);
            const matrix v_matrix = rows_of(v, s, w, h, s->tokens);
            product_check(&x_matrix, &p_matrix, &v_matrix, &none, s->queries, s->head_channels, s->tokens,
                          s->tokens + 1, where);
        }
    }
    sw_dnn_thread_destroy(thread);
    sw_dnn_destroy(dnn);
    guarded_free_all();
}

static void check_shapes(sw_type type)
{
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        for (int side = 0; side < GUARDED_SIDES; side++) {
            guarded_use_side((enum guarded_side)side);
            trial_seed(i);
            const sw_attention_shape s = {.windows = shapes[i].windows,
                                          .heads = shapes[i].heads,
                                          .queries = shapes[i].queries,
                                          .tokens = shapes[i].tokens,
                                          .head_channels = shapes[i].head_channels,
                                          .type = type,
                                          .split = shapes[i].split};
            check_shape(&s);
        }
    }
    assert_int_equal(memory_live_blocks(), 0);
}

static void attention_in_float32(void **state)
{
    (void)state;
    check_shapes(SW_F32);
}

static void attention_in_bf16(void **state)
{
    (void)state;
    check_shapes(SW_BF16);
}

static void attention_in_widened_bf16(void **state)
{
    (void)state;
    backend_without_bf16(true);
    check_shapes(SW_BF16);
    backend_without_bf16(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_in_float32),
        cmocka_unit_test(attention_in_bf16),
        cmocka_unit_test(attention_in_widened_bf16),
    };
    return cmocka_run_group_tests_name("attention products", tests, NULL, NULL);
}
