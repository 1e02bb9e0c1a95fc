/* SPDX-License-Identifier: MIT */
/*
 * Linear layers in panels against double precision, on the weights of random models.
 */
#include "../dnn/matrix.h"

#include "config_of.h"
#include "exec/linear.h"
#include "base/memory.h"
#include "kernels/kernels.h"
#include "memory_counted.h"

static void a_menu_gives_the_smallest_that_holds(void **state)
{
    (void)state;
    const sw_menu menu = {4, {16, 49, 98, 392}};
    static const int32_t cases[][2] = {{1, 0},  {16, 0}, {17, 1},  {49, 1},  {50, 2},
                                       {98, 2}, {99, 3}, {392, 3}, {393, 3}, {100000, 3}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(sw_menu_choose(&menu, cases[i][0]), cases[i][1]);
    const sw_menu single = {1, {7}};
    assert_int_equal(sw_menu_choose(&single, 1), 0);
    assert_int_equal(sw_menu_choose(&single, 8), 0);
}

/* The layers of the second stage of a model with 32 and 64 channels. */
static const struct {
    sw_kind weight;
    bool bias;
    int32_t in, in_parts, out, out_parts, scaled;
    bool gelu;
} layers[] = {
    {SW_QKV_WEIGHT, true, 64, 1, 192, 1, 64, false},    {SW_QKV_WEIGHT, true, 64, 1, 192, 6, 64, false},
    {SW_QKV_WEIGHT, true, 64, 1, 192, 2, 64, false}, /* the scale ends within a part */
    {SW_PROJ_WEIGHT, true, 64, 2, 64, 1, 0, false},     {SW_PROJ_WEIGHT, true, 64, 2, 64, 2, 0, false},
    {SW_FC1_WEIGHT, true, 64, 1, 256, 4, 0, true},      {SW_FC1_WEIGHT, true, 64, 1, 256, 4, 0, false},
    {SW_FC2_WEIGHT, true, 256, 4, 64, 1, 0, false},     {SW_FC2_WEIGHT, true, 256, 8, 64, 2, 0, false},
    {SW_MERGE_WEIGHT, false, 256, 1, 128, 2, 0, false}, {SW_MERGE_WEIGHT, false, 256, 2, 128, 4, 0, false},
};

typedef struct bench {
    sw_model *model;
    sw_dnn *dnn;
    sw_linear linear;
    sw_linear_spec spec;
    sw_tensor_id bias_id;
    sw_menu menu;
    sw_linear_thread thread;
} bench;

static void set_up(bench *b, size_t layer, sw_type type, bool amx)
{
    swin_error err;
    swin_config config = config_of(1, 3, 32, 1, 4);
    memset(b, 0, sizeof *b);
    must(sw_model_create_random(&config, 11 + layer, &b->model, &err), &err);
    must(sw_dnn_create(&b->dnn, &err), &err);
    b->menu = (sw_menu){3, {5, 16, 70}};
    const sw_kind weight = layers[layer].weight;
    b->bias_id = (sw_tensor_id){(sw_kind)(weight + 1), 1, weight == SW_MERGE_WEIGHT ? 0 : 1};
    b->spec = (sw_linear_spec){.in = layers[layer].in,
                               .in_parts = layers[layer].in_parts,
                               .out = layers[layer].out,
                               .out_parts = layers[layer].out_parts,
                               .type = type,
                               .out_type = layers[layer].gelu ? type : SW_F32,
                               .amx = amx,
                               .weight = {weight, 1, b->bias_id.block},
                               .bias = layers[layer].bias ? &b->bias_id : NULL,
                               .scaled = layers[layer].scaled,
                               .scale = 0.3f,
                               .gelu = layers[layer].gelu};
    must(sw_linear_plan(&b->linear, b->dnn, &b->menu, &b->spec, &err), &err);
    assert_int_equal(sw_dnn_product_count(b->dnn) == 0, amx);
    b->linear.tiles = sw_alloc(sw_linear_tile_bytes(&b->linear), 1);
    assert_non_null(b->linear.tiles);
    float *scratch = guarded_alloc(sw_linear_scratch(&b->linear), sizeof *scratch);
    must(sw_linear_pack(&b->linear, b->dnn, b->model, &b->spec, scratch, &err), &err);
    guarded_free(scratch);
    must(sw_dnn_thread_create(b->dnn, &b->thread.dnn, &err), &err);
    b->thread.scratch = sw_alloc(sw_amx_linear_scratch(b->menu.rows[b->menu.count - 1], b->spec.in), 1);
    assert_non_null(b->thread.scratch);
    assert_int_equal(b->linear.in_width * b->linear.in_parts, b->spec.in);
    assert_int_equal(b->linear.out_width * b->linear.out_parts, b->spec.out);
    assert_true(sw_linear_bytes(&b->linear) >= (size_t)b->spec.in * (size_t)b->spec.out *
                (amx && type == SW_F32 ? 3 : sw_type_size(type)));
    assert_int_equal(strncmp(sw_linear_kernel(&b->linear), "swin:amx", 8) == 0, amx);
}

static void tear_down(bench *b)
{
    sw_free(b->thread.scratch);
    sw_free(b->linear.tiles);
    sw_dnn_thread_destroy(b->thread.dnn);
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

/* Activations in panels; AMX wants them 32 columns wide, with room for a multiple of 16 rows. */
typedef struct activations {
    sw_panels panels;
    int32_t rows, columns;
} activations;

static size_t place_of(const activations *x, int32_t row, int32_t column)
{
    return (size_t)(column / x->panels.width) * x->panels.stride +
           (size_t)(row * x->panels.width + column % x->panels.width);
}

/* Panels that do not touch. */
static activations make(const bench *b, int32_t rows, int32_t columns, int32_t part, sw_type type, bool fill)
{
    const bool amx = b->spec.amx;
    const int32_t width = amx ? SW_AMX_WIDTH : part,
                  room = amx ? (rows + SW_AMX_ROWS - 1) / SW_AMX_ROWS * SW_AMX_ROWS : rows;
    activations x = {{NULL, type, width, (size_t)(room * width + 32)}, rows, columns};
    const size_t count = x.panels.stride * (size_t)(columns / width);
    x.panels.data = fill ? trial_normals(count, type, 0, 1) : guarded_alloc(count, sw_type_size(type));
    return x;
}

/* All input parts at once, or one call for each. */
static void run(const bench *b, int32_t entry, const activations *in, const activations *out, bool at_once)
{
    const sw_linear *l = &b->linear;
    for (int32_t j = 0; j < l->out_parts; j++) {
        const sw_panels part = sw_linear_part(l, &out->panels, j);
        if (at_once) {
            assert_int_equal(sw_linear_run(l, &b->thread, entry, in->rows, &in->panels, 0, l->in_parts, &part, j),
                             SWIN_OK);
            continue;
        }
        for (int32_t i = 0; i < l->in_parts; i++) {
            sw_panels from = in->panels;
            from.data = (char *)in->panels.data + place_of(in, 0, i * l->in_width) * sw_type_size(from.type);
            assert_int_equal(sw_linear_run(l, &b->thread, entry, in->rows, &from, i, 1, &part, j), SWIN_OK);
        }
    }
}

/* Float32 with AMX: both operands of a product are rounded to 24 bits of the largest in their row, and the product of
 * the two lowest digits is left out (kernels/amx.h); each chunk's sum takes a few roundings. Everything else: a
 * rounding for each product. */
static double sum_tolerance(const bench *b, double magnitude, double x_sum, double x_largest, double w_sum,
                            double w_largest)
{
    const int32_t k = b->spec.in;
    if (!b->spec.amx || b->spec.type != SW_F32)
        return (k + 1) * UNIT * magnitude + 0x1p-120;
    const double unit = 1 / 8355000.0;
    return unit / 2 * (x_sum * w_largest + w_sum * x_largest) + 16385 * k * unit * unit * x_largest * w_largest +
           (8 + 2 * b->spec.in_parts) * UNIT * magnitude;
}

static void check(const bench *b, const activations *in, const activations *out, const char *where)
{
    float *w, *bias;
    read_weights(b, &w, &bias);
    const int32_t k = b->spec.in;
    for (int32_t r = 0; r < in->rows; r++) {
        for (int32_t j = 0; j < b->spec.out; j++) {
            double sum = bias != NULL ? bias[j] : 0, magnitude = fabs(sum);
            double x_sum = 0, x_largest = 0, w_sum = 0, w_largest = 0;
            for (int32_t p = 0; p < k; p++) {
                const double x = trial_get(in->panels.data, in->panels.type, place_of(in, r, p));
                const double weight = w[(size_t)j * (size_t)k + (size_t)p];
                sum += x * weight;
                magnitude += fabs(x * weight);
                x_sum += fabs(x);
                w_sum += fabs(weight);
                x_largest = fmax(x_largest, fabs(x));
                w_largest = fmax(w_largest, fabs(weight));
            }
            double tolerance = sum_tolerance(b, magnitude, x_sum, x_largest, w_sum, w_largest);
            if (b->linear.gelu) { /* |gelu'| <= 1.13, and the table's own error (see the tests of the AMX kernels) */
                tolerance = 1.2 * tolerance + (b->spec.type == SW_F32 ? 3e-8 + UNIT * fabs(sum) : 3.3e-5 * fabs(sum));
                sum = sum / 2 * (1 + erf(sum / sqrt(2)));
            }
            trial_close(trial_get(out->panels.data, out->panels.type, place_of(out, r, j)), sum, tolerance,
                        out->panels.type, "%s, row %d, column %d", where, r, j);
        }
    }
    const size_t element = sw_type_size(out->panels.type), used = out->panels.stride - 32;
    for (int32_t j = 0; j < out->columns / out->panels.width; j++)
        trial_untouched((const char *)out->panels.data + ((size_t)j * out->panels.stride + used) * element,
                        32 * element, where);
}

static void check_layer(size_t layer, sw_type type, bool amx, bool at_once)
{
    bench b;
    trial_seed(layer);
    set_up(&b, layer, type, amx);
    for (int32_t entry = 0; entry < b.menu.count; entry++) {
        const int32_t rows = b.menu.rows[entry];
        const activations in = make(&b, rows, b.spec.in, b.linear.in_width, type, true);
        const activations out = make(&b, rows, b.spec.out, b.linear.out_width, b.spec.out_type, false);
        run(&b, entry, &in, &out, at_once);
        char where[100];
        snprintf(where, sizeof where, "layer %zu, type %d, %s, %d rows", layer, (int)type, sw_linear_kernel(&b.linear),
                 rows);
        check(&b, &in, &out, where);
    }
    tear_down(&b);
}

static void check_layers(sw_type type, bool amx)
{
    for (size_t layer = 0; layer < COUNT_OF(layers); layer++) {
        guarded_use_side((enum guarded_side)(layer % GUARDED_SIDES));
        check_layer(layer, type, amx, true);
        check_layer(layer, type, amx, false);
    }
}

static void layers_in_float32(void **state)
{
    (void)state;
    check_layers(SW_F32, false);
}

static void layers_in_bf16(void **state)
{
    (void)state;
    check_layers(SW_BF16, false);
}

static void layers_in_tiles(void **state)
{
    (void)state;
    if (!sw_amx_built() || !sw_cpu_has_amx())
        skip();
    check_layers(SW_F32, true);
    check_layers(SW_BF16, true);
}

static void packing_may_lack_memory(void **state)
{
    (void)state;
    swin_error err;
    swin_config config = config_of(1, 3, 32, 1, 4);
    sw_model *model;
    sw_dnn *dnn;
    must(sw_model_create_random(&config, 1, &model, &err), &err);
    must(sw_dnn_create(&dnn, &err), &err);
    const sw_menu menu = {1, {16}};
    const sw_tensor_id bias = {SW_FC2_BIAS, 1, 0};
    const sw_linear_spec spec = {
        .in = 256, .in_parts = 4, .out = 64, .out_parts = 2, .weight = {SW_FC2_WEIGHT, 1, 0}, .bias = &bias};
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
        assert_int_equal(memory_fail_no_more(), status != SWIN_OK);
        assert_true(status == SWIN_OK || (status == SWIN_ERR_NO_MEMORY && err.status == SWIN_ERR_NO_MEMORY));
        sw_linear_destroy(&attempt);
        assert_int_equal(memory_live_blocks(), blocks);
    }
    assert_true(failing > 2 + 2 * 8);
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
        cmocka_unit_test(layers_in_tiles),
        cmocka_unit_test(packing_may_lack_memory),
    };
    return cmocka_run_group_tests_name("linear layers", tests, NULL, NULL);
}
