/* SPDX-License-Identifier: MIT */
/*
 * Position biases ready for use against their definition: entry (query, key) is the table's at the query's place minus
 * the key's.
 */
#include "../kernels/trial.h"

#include "config_of.h"
#include "exec/position_bias.h"
#include "memory_counted.h"

enum { HEADS = 3 };

static const struct {
    int32_t rows, columns;
    bool expanded;
} windows[] = {
    {1, 1, true},   {2, 2, true},   {7, 7, true},    {12, 12, true},  {3, 5, true},    {5, 3, true},
    {1, 16, true},  {16, 1, true},  {12, 13, false}, {16, 16, false}, {24, 24, false}, {3, 50, false},
    {50, 3, false}, {1, 128, true}, {48, 32, false}, {128, 1, true},
};

static sw_model *make_model(int32_t version)
{
    swin_error err;
    swin_config config = config_of(version, 1, 12, HEADS, 4);
    sw_model *model;
    if (sw_model_create_random(&config, 7, &model, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    return model;
}

static void check_window(const sw_model *model, size_t w)
{
    swin_error err;
    const int32_t window[2] = {windows[w].rows, windows[w].columns};
    const int32_t slots = window[0] * window[1], span = 2 * window[1] - 1;
    const size_t size = (size_t)(2 * window[0] - 1) * (size_t)span;
    float *table = guarded_alloc(HEADS * size, sizeof *table);
    assert_int_equal(sw_model_position_bias(model, 0, 1, window[0], window[1], table, &err), SWIN_OK);
    sw_position_bias bias;
    assert_int_equal(sw_position_bias_create(&bias, model, 0, 1, HEADS, window, &err), SWIN_OK);
    assert_int_equal(bias.expanded, windows[w].expanded);
    const size_t kept = bias.expanded ? (size_t)slots * (size_t)slots : size;
    assert_int_equal(sw_position_bias_bytes(&bias), HEADS * kept * sizeof(float));
    assert_int_equal(memory_live_bytes() >= sw_position_bias_bytes(&bias), true);

    /* all rows at once, then blocks of some, the last one shorter, then single rows */
    const int32_t blocks[] = {slots, slots / 3 + 1, 1};
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        for (int32_t head = 0; head < HEADS; head++) {
            for (int32_t first = 0; first < slots; first += blocks[i]) {
                const int32_t rows = slots - first < blocks[i] ? slots - first : blocks[i];
                if (blocks[i] == 1 && first % 7 != 0)
                    continue;
                float *scratch = guarded_alloc((size_t)rows * (size_t)slots, sizeof *scratch);
                const float *values = sw_position_bias_rows(&bias, head, first, rows, scratch);
                assert_int_equal(values == scratch, !bias.expanded);
                for (int32_t q = first; q < first + rows; q++) {
                    for (int32_t k = 0; k < slots; k++) {
                        const int32_t dy = q / window[1] - k / window[1], dx = q % window[1] - k % window[1];
                        const float expected = table[(size_t)head * size + (size_t)(dy + window[0] - 1) * (size_t)span +
                                                     (size_t)(dx + window[1] - 1)];
                        if (*values != expected)
                            fail_msg("%d x %d, head %d, query %d, key %d: %g, expected %g", window[0], window[1], head,
                                     q, k, (double)*values, (double)expected);
                        values++;
                    }
                }
                guarded_free(scratch);
            }
        }
    }
    sw_position_bias_destroy(&bias);
    assert_int_equal(sw_position_bias_bytes(&bias), 0);
    guarded_free_all();
}

static void rows_are_those_of_the_table(void **state)
{
    (void)state;
    for (int32_t version = 1; version <= 2; version++) {
        sw_model *model = make_model(version);
        for (size_t w = 0; w < COUNT_OF(windows); w++)
            check_window(model, w);
        sw_model_destroy(model);
        assert_int_equal(memory_live_blocks(), 0);
    }
}

static void creating_may_lack_memory(void **state)
{
    (void)state;
    sw_model *model = make_model(2);
    const size_t before = memory_live_blocks();
    static const int32_t sizes[][2] = {{5, 5}, {20, 20}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        swin_status status = SWIN_ERR_NO_MEMORY;
        for (long failing = 0; status != SWIN_OK; failing++) {
            sw_position_bias bias;
            swin_error err;
            sw_error_reset(&err);
            memory_fail_after(failing);
            status = sw_position_bias_create(&bias, model, 0, 0, HEADS, sizes[i], &err);
            assert_int_equal(memory_fail_no_more(), status != SWIN_OK);
            assert_true(failing > 0 || status != SWIN_OK);
            assert_true(status == SWIN_OK || (status == SWIN_ERR_NO_MEMORY && err.status == SWIN_ERR_NO_MEMORY));
            sw_position_bias_destroy(&bias);
            assert_int_equal(memory_live_blocks(), before);
        }
    }
    sw_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_table),
        cmocka_unit_test(creating_may_lack_memory),
    };
    return cmocka_run_group_tests_name("position bias", tests, NULL, NULL);
}
