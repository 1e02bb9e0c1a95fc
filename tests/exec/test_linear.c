/* SPDX-License-Identifier: MIT */
/*
 * Linear layers in panels against double precision, on the weights of random models.
 */
#include "../dnn/matrix.h"

#include "config_of.h"
#include "exec/linear.h"
#include "memory_counted.h"

static void a_menu_gives_the_smallest_that_holds(void **state)
{
    (void)state;
    const sw_menu menu = {4, {16, 49, 98, 392}};
    static const int32_t cases[][2] = {{1, 0},  {16, 0},  {17, 1},  {49, 1},   {50, 2},
                                       {98, 2}, {99, 3}, {392, 3}, {393, 3}, {100000, 3}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(sw_menu_choose(&menu, cases[i][0]), cases[i][1]);
    const sw_menu single = {1, {7}};
    assert_int_equal(sw_menu_choose(&single, 1), 0);
    assert_int_equal(sw_menu_choose(&single, 8), 0);
}

/* The layers of the second stage of a model with 24 and 48 channels. */
static const struct {
    sw_kind weight;
    bool bias;
    int32_t in, in_panels, out, out_panels, scaled;
} layers[] = {
    {SW_QKV_WEIGHT, true, 48, 1, 144, 1, 48}, {SW_QKV_WEIGHT, true, 48, 1, 144, 6, 48},
    {SW_QKV_WEIGHT, true, 48, 1, 144, 4, 48}, /* the scale ends within a panel */
    {SW_PROJ_WEIGHT, true, 48, 2, 48, 1, 0},  {SW_PROJ_WEIGHT, true, 48, 3, 48, 4, 0},
    {SW_FC1_WEIGHT, true, 48, 1, 192, 3, 0},  {SW_FC2_WEIGHT, true, 192, 4, 48, 1, 0},
    {SW_FC2_WEIGHT, true, 192, 8, 48, 3, 0},  {SW_MERGE_WEIGHT, false, 192, 1, 96, 2, 0},
    {SW_MERGE_WEIGHT, false, 192, 2, 96, 3, 0},
};

typedef struct bench {
    sw_model *model;
    sw_dnn *dnn;
    sw_linear linear;
    sw_linear_spec spec;
    sw_tensor_id bias_id;
    sw_menu menu;
    sw_dnn_thread *thread;
} bench;

static void set_up(bench *b, size_t layer, sw_type type)
{
    swin_error err;
    swin_config config = config_of(1, 3, 24, 1, 4);
    memset(b, 0, sizeof *b);
    must(sw_model_create_random(&config, 11 + layer, &b->model, &err), &err);
    must(sw_dnn_create(&b->dnn, &err), &err);
    b->menu = (sw_menu){3, {5, 16, 70}};
    const sw_kind weight = layers[layer].weight;
    b->bias_id = (sw_tensor_id){(sw_kind)(weight + 1), 1, weight == SW_MERGE_WEIGHT ? 0 : 1};
    b->spec = (sw_linear_spec){.in = layers[layer].in,
                               .in_panels = layers[layer].in_panels,
                               .out = layers[layer].out,
                               .out_panels = layers[layer].out_panels,
                               .type = type,
                               .out_type = SW_F32,
                               .weight = {weight, 1, b->bias_id.block},
                               .bias = layers[layer].bias ? &b->bias_id : NULL,
                               .scaled = layers[layer].scaled,
                               .scale = 0.3f};
    must(sw_linear_plan(&b->linear, b->dnn, &b->menu, &b->spec, &err), &err);
    float *scratch = guarded_alloc(sw_linear_scratch(&b->linear), sizeof *scratch);
    must(sw_linear_pack(&b->linear, b->dnn, b->model, &b->spec, scratch, &err), &err);
    guarded_free(scratch);
    must(sw_dnn_thread_create(b->dnn, &b->thread, &err), &err);
}

static void tear_down(bench *b)
{
    sw_dnn_thread_destroy(b->thread);
    sw_linear_destroy(&b->linear);
    sw_dnn_destroy(b->dnn);
    sw_model_destroy(b->model);
    guarded_free_all();
    assert_int_equal(memory_live_blocks(), 0);
}

/* W [out, in] and bias [out], scaled and rounded as they are packed. */
static void read_weights(const bench *b, float **w, float **bias)
{
    swin_error err;
    const size_t in = (size_t)b->spec.in, out = (size_t)b->spec.out, scaled = (size_t)b->spec.scaled;
    *w = guarded_alloc(in * out, sizeof **w);
    must(sw_model_read(b->model, b->spec.weight, 0, b->spec.out, *w, &err), &err);
    for (size_t i = 0; i < in * out; i++) {
        const float value = i / in < scaled ? (*w)[i] * b->spec.scale : (*w)[i];
        const uint16_t half = trial_bf16(value);
        (*w)[i] = b->spec.type == SW_BF16 ? trial_get(&half, SW_BF16, 0) : value;
    }
    *bias = NULL;
    if (b->spec.bias == NULL)
        return;
    *bias = guarded_alloc(out, sizeof **bias);
    must(sw_model_read(b->model, *b->spec.bias, 0, b->spec.out, *bias, &err), &err);
    for (size_t i = 0; i < scaled; i++)
        (*bias)[i] *= b->spec.scale;
}

/* All input panels at once, or one call for each. */
static void run(const bench *b, int32_t entry, const sw_panels *in, const sw_panels *out, bool at_once)
{
    for (int32_t j = 0; j < b->linear.out_panels; j++) {
        if (at_once)
            assert_int_equal(sw_linear_run(&b->linear, b->thread, entry, in, 0, b->linear.in_panels, out, j), SWIN_OK);
        for (int32_t i = 0; i < b->linear.in_panels && !at_once; i++) {
            sw_panels from = *in;
            from.data = (char *)in->data + (size_t)i * in->stride * sw_type_size(in->type);
            assert_int_equal(sw_linear_run(&b->linear, b->thread, entry, &from, i, 1, out, j), SWIN_OK);
        }
    }
}

static void check_layer(size_t layer, sw_type type, bool at_once)
{
    bench b;
    set_up(&b, layer, type);
    assert_int_equal(b.linear.in_width * b.linear.in_panels, b.spec.in);
    assert_int_equal(b.linear.out_width * b.linear.out_panels, b.spec.out);
    assert_true(sw_linear_bytes(&b.linear) >= (size_t)b.spec.in * (size_t)b.spec.out * sw_type_size(type));
    float *w, *bias;
    read_weights(&b, &w, &bias);
    for (int32_t entry = 0; entry < b.menu.count; entry++) {
        const int32_t rows = b.menu.rows[entry], in_width = b.linear.in_width, out_width = b.linear.out_width;
        /* panels need not touch */
        const size_t in_stride = (size_t)(rows * in_width + 3), out_stride = (size_t)(rows * out_width + 5);
        void *a = trial_normals(in_stride * (size_t)b.linear.in_panels, type, 0, 1);
        float *c = guarded_alloc(out_stride * (size_t)b.linear.out_panels, sizeof *c);
        const sw_panels in = {a, type, in_width, in_stride}, out = {c, SW_F32, out_width, out_stride};
        run(&b, entry, &in, &out, at_once);

        float *dense_a = guarded_alloc((size_t)(rows * b.spec.in), sizeof *dense_a);
        for (int32_t r = 0; r < rows; r++) {
            for (int32_t p = 0; p < b.spec.in; p++)
                dense_a[r * b.spec.in + p] =
                    trial_get(a, type, (size_t)(p / in_width) * in_stride + (size_t)(r * in_width + p % in_width));
        }
        const matrix a_matrix = dense(dense_a, SW_F32, b.spec.in);
        for (int32_t j = 0; j < b.linear.out_panels; j++) {
            char where[100];
            snprintf(where, sizeof where, "layer %zu, type %d, menu entry %d, panel %d", layer, (int)type, entry, j);
            const matrix c_matrix = {c, SW_F32, (size_t)j * out_stride, (size_t)out_width, 1};
            const matrix b_matrix = {w, SW_F32, (size_t)(j * out_width * b.spec.in), 1, (size_t)b.spec.in};
            const matrix start = {bias, SW_F32, (size_t)(j * out_width), 0, 1};
            product_check(&c_matrix, &a_matrix, &b_matrix, &start, rows, out_width, b.spec.in, where);
            if (j + 1 < b.linear.out_panels)
                trial_untouched(c + (size_t)j * out_stride + rows * out_width, 5 * sizeof *c, where);
        }
        guarded_free(a);
        guarded_free(c);
        guarded_free(dense_a);
    }
    tear_down(&b);
}

static void layers_in_float32(void **state)
{
    (void)state;
    for (size_t layer = 0; layer < 2 * COUNT_OF(layers); layer++)
        check_layer(layer / 2, SW_F32, layer % 2 == 0);
}

static void layers_in_bf16(void **state)
{
    (void)state;
    for (size_t layer = 0; layer < 2 * COUNT_OF(layers); layer++)
        check_layer(layer / 2, SW_BF16, layer % 2 == 0);
}

static void packing_may_lack_memory(void **state)
{
    (void)state;
    swin_error err;
    swin_config config = config_of(1, 3, 24, 1, 4);
    sw_model *model;
    sw_dnn *dnn;
    must(sw_model_create_random(&config, 1, &model, &err), &err);
    must(sw_dnn_create(&dnn, &err), &err);
    const sw_menu menu = {1, {16}};
    const sw_tensor_id bias = {SW_FC2_BIAS, 1, 0};
    const sw_linear_spec spec = {.in = 192,
                                 .in_panels = 3,
                                 .out = 48,
                                 .out_panels = 2,
                                 .weight = {SW_FC2_WEIGHT, 1, 0},
                                 .bias = &bias};
    sw_linear linear = {0};
    must(sw_linear_plan(&linear, dnn, &menu, &spec, &err), &err);
    float *scratch = guarded_alloc(sw_linear_scratch(&linear), sizeof *scratch);
    const size_t blocks = memory_live_blocks();
    swin_status status = SWIN_ERR_NO_MEMORY;
    long failing = 0;
    for (; status != SWIN_OK; failing++) {
        sw_linear attempt = linear;
        sw_error_reset(&err);
        memory_fail_after(failing);
        status = sw_linear_pack(&attempt, dnn, model, &spec, scratch, &err);
        memory_fail_after(-1);
        assert_true(status == SWIN_OK || (status == SWIN_ERR_NO_MEMORY && err.status == SWIN_ERR_NO_MEMORY));
        sw_linear_destroy(&attempt);
        assert_int_equal(memory_live_blocks(), blocks);
    }
    assert_true(failing > 2 + 2 * 6);
    sw_dnn_destroy(dnn);
    sw_model_destroy(model);
    guarded_free_all();
    assert_int_equal(memory_live_blocks(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_menu_gives_the_smallest_that_holds),
        cmocka_unit_test(layers_in_float32),
        cmocka_unit_test(layers_in_bf16),
        cmocka_unit_test(packing_may_lack_memory),
    };
    return cmocka_run_group_tests_name("linear layers", tests, NULL, NULL);
}
