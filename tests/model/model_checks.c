/* SPDX-License-Identifier: MIT */
#include "model_checks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static float *values(size_t count)
{
    float *data = calloc(count + 1, sizeof *data);
    assert_non_null(data);
    return data;
}

sw_model *must_open(const char *path, const swin_model_params *params)
{
    sw_model *model;
    swin_error err = {0};
    if (sw_model_open(path, params, &model, &err) != SWIN_OK)
        fail_msg("%s: %s", path, err.message);
    return model;
}

sw_model *must_create(const swin_config *config, uint64_t seed)
{
    sw_model *model;
    swin_error err = {0};
    if (sw_model_create_random(config, seed, &model, &err) != SWIN_OK)
        fail_msg("%s", err.message);
    return model;
}

void must_refuse(const char *path, const swin_model_params *params, swin_status status, const char *words)
{
    sw_model *model;
    swin_error err = {0};
    const swin_status found = sw_model_open(path, params, &model, &err);
    if (found == SWIN_OK)
        sw_model_destroy(model);
    if (found != status || err.status != (int32_t)status || strstr(err.message, words) == NULL)
        fail_msg("status %d, expected %d with \"%s\": %s", found, status, words, err.message);
    assert_null(model);
}

void assert_models_equal(const sw_model *a, const sw_model *b)
{
    const swin_config *config = sw_model_config(a), *other = sw_model_config(b);
    assert_int_equal(config->stages, other->stages);
    assert_memory_equal(config->depths, other->depths, sizeof config->depths);
    for (int32_t stage = 0; stage < config->stages; stage++) {
        for (int32_t block = 0; block < config->depths[stage]; block++) {
            for (int32_t kind = 0; kind < SW_KIND_COUNT; kind++) {
                const sw_tensor_id id = {(sw_kind)kind, stage, block};
                int32_t rows, columns, other_rows, other_columns;
                sw_model_shape(a, id, &rows, &columns);
                sw_model_shape(b, id, &other_rows, &other_columns);
                assert_int_equal(rows, other_rows);
                assert_int_equal(columns, other_columns);
                if (rows == 0)
                    continue;
                const size_t count = (size_t)rows * (size_t)columns;
                float *x = values(count), *y = values(count);
                assert_int_equal(sw_model_read(a, id, 0, rows, x, NULL), SWIN_OK);
                assert_int_equal(sw_model_read(b, id, 0, rows, y, NULL), SWIN_OK);
                if (memcmp(x, y, count * sizeof *x) != 0)
                    fail_msg("tensor %d of stage %d, block %d differs", kind, stage, block);
                /* In parts, each read on its own. */
                for (int32_t first = 0; first < rows;) {
                    const int32_t part = first % 5 + 1 < rows - first ? first % 5 + 1 : rows - first;
                    assert_int_equal(sw_model_read(b, id, first, part, y, NULL), SWIN_OK);
                    if (memcmp(x + (size_t)first * (size_t)columns, y,
                               (size_t)part * (size_t)columns * sizeof *x) != 0)
                        fail_msg("rows from %d of tensor %d of stage %d, block %d differ", first, kind, stage, block);
                    first += part;
                }
                free(x);
                free(y);
            }
            const int32_t *window = config->window[stage];
            const size_t count =
                (size_t)(2 * window[0] - 1) * (size_t)(2 * window[1] - 1) * (size_t)config->heads[stage];
            float *x = values(count), *y = values(count);
            assert_int_equal(sw_model_position_bias(a, stage, block, window[0], window[1], x, NULL), SWIN_OK);
            assert_int_equal(sw_model_position_bias(b, stage, block, window[0], window[1], y, NULL), SWIN_OK);
            if (memcmp(x, y, count * sizeof *x) != 0)
                fail_msg("the position bias of stage %d, block %d differs", stage, block);
            free(x);
            free(y);
        }
    }
}
