/* SPDX-License-Identifier: MIT */
/* The self-test passes every kernel of this CPU, and finds each that computes something else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/amx.h"
#include "kernels/selftest.h"
#include "memory_counted.h"

enum { ELEMENT_WISE = 19 };

static void all_kernels_pass(void **state)
{
    (void)state;
    for (int isa = 0; isa < SW_ISA_COUNT; isa++) {
        const sw_kernels *kernels = sw_kernels_for((sw_isa)isa);
        for (int amx = 0; amx < 2 && kernels != NULL; amx++) {
            size_t count = 0, tiles = 0;
            sw_selftest result;
            swin_error err = {0};
            for (;; count++) {
                if (sw_selftest_run(kernels, amx, count, &result, &err) != SWIN_OK)
                    fail_msg("%s", err.message);
                if (result.kernel == NULL)
                    break;
                assert_true(result.error >= 0 && result.error <= 1);
                tiles += strcmp(result.isa, "amx") == 0;
                assert_true(strcmp(result.isa, "amx") == 0 || strcmp(result.isa, kernels->name) == 0);
            }
            assert_int_equal(count - tiles, ELEMENT_WISE);
            assert_true((tiles > 0) == (amx && sw_amx_built() && sw_cpu_has_amx()));
            assert_int_equal(memory_live_blocks(), 0);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * Kernels that are wrong in one number
 */

static const sw_kernels *right;

static void spoil(void *array, sw_type type, size_t i)
{
    if (type == SW_F32) {
        ((float *)array)[i] += 0.125f;
    } else {
        uint16_t *const narrow = (uint16_t *)array + i;
        *narrow = (uint16_t)((*narrow & 0x7fff) == 0 ? 0x3f80 : *narrow ^ 0x0080); /* 1, or half or twice the number */
    }
}

static void gather(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
                   const sw_norm *norm)
{
    right->gather(dst, x, index, rows, channels, norm);
    spoil(dst->data, dst->type, dst->stride + 2);
}

static void residual(float *x, const int32_t *index, const sw_panels *y, const sw_norm *post, int32_t rows,
                     int32_t channels, const sw_panels *dst, const sw_norm *pre)
{
    right->residual(x, index, y, post, rows, channels, dst, pre);
    spoil(dst->data, dst->type, 3);
}

static void gather_merge(const sw_panels *dst, const float *x, const int32_t *index, int32_t rows, int32_t channels,
                         const sw_norm *norm)
{
    right->gather_merge(dst, x, index, rows, channels, norm);
    spoil(dst->data, dst->type, dst->stride + 1);
}

static void gather_patches(void *dst, sw_type type, const sw_pixels *pixels, int32_t patch_size, int32_t grid_width,
                           int32_t first, int32_t rows)
{
    right->gather_patches(dst, type, pixels, patch_size, grid_width, first, rows);
    spoil(dst, type, 5);
}

static void store_map(float *map, bool nhwc, size_t plane, const float *x, int32_t first, int32_t rows,
                      int32_t channels, const sw_norm *norm)
{
    right->store_map(map, nhwc, plane, x, first, rows, channels, norm);
    spoil(map, SW_F32, nhwc ? (size_t)first * (size_t)channels : (size_t)first);
}

static void gather_head(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t src_stride,
                        const int32_t *index, const float *pad, int32_t rows, int32_t d, bool normalise, float scale)
{
    right->gather_head(dst, dst_type, src, src_type, src_stride, index, pad, rows, d, normalise, scale);
    spoil(dst, dst_type, (size_t)(rows * d - 1));
}

static void scatter_head(void *dst, sw_type type, size_t dst_stride, const void *src, const int32_t *index,
                         int32_t rows, int32_t d)
{
    right->scatter_head(dst, type, dst_stride, src, index, rows, d);
    spoil(dst, type, dst_stride + 1);
}

static void softmax(void *dst, sw_type type, const float *scores, const float *bias, size_t bias_stride,
                    const int32_t *region, float mask, int32_t first, int32_t rows, int32_t tokens, size_t stride)
{
    /* One key too few. */
    right->softmax(dst, type, scores, bias, bias_stride, region, mask, first, rows, tokens - 1, stride);
}

static void gelu(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t count)
{
    right->gelu(dst, dst_type, src, src_type, count);
    spoil(dst, dst_type, count - 1);
}

static void to_bf16(uint16_t *dst, const float *src, size_t count)
{
    right->to_bf16(dst, src, count);
    dst[count / 2] ^= 1;
}

static void from_bf16(float *dst, const uint16_t *src, size_t count)
{
    right->from_bf16(dst, src, count);
    dst[count - 1] = 0;
}

static void every_wrong_kernel_is_found(void **state)
{
    (void)state;
    right = sw_kernels_for(sw_isa_best());
    sw_kernels tables[11];
    static const char *const names[] = {"gather", "residual", "merge", "patches", "map", "gather head", "scatter head",
                                        "softmax", "gelu", "to bf16", "from bf16"};
    for (int i = 0; i < 11; i++)
        tables[i] = *right;
    tables[0].gather = gather;
    tables[1].residual = residual;
    tables[2].gather_merge = gather_merge;
    tables[3].gather_patches = gather_patches;
    tables[4].store_map = store_map;
    tables[5].gather_head = gather_head;
    tables[6].scatter_head = scatter_head;
    tables[7].softmax = softmax;
    tables[8].gelu = gelu;
    tables[9].to_bf16 = to_bf16;
    tables[10].from_bf16 = from_bf16;
    for (int i = 0; i < 11; i++) {
        int wrong = 0;
        for (size_t check = 0; check < ELEMENT_WISE; check++) {
            sw_selftest result;
            swin_error err = {0};
            const swin_status status = sw_selftest_run(&tables[i], false, check, &result, &err);
            const bool affected = strncmp(result.kernel, names[i], strlen(names[i])) == 0 &&
                                  (i != 0 || strncmp(result.kernel, "gather head", 11) != 0);
            if ((status == SWIN_ERR_INTERNAL) != affected)
                fail_msg("%s with a wrong %s: status %d, error %g", result.kernel, names[i], (int)status, result.error);
            if (affected) {
                assert_true(result.error > 1);
                assert_non_null(strstr(err.message, result.kernel));
            }
            wrong += affected;
        }
        assert_true(wrong == 1 || wrong == 2);
    }
}

static void memory_may_lack(void **state)
{
    (void)state;
    sw_selftest result;
    swin_error err = {0};
    memory_fail_after(0);
    const swin_status status = sw_selftest_run(sw_kernels_for(SW_ISA_PLAIN), true, 0, &result, &err);
    assert_int_equal(memory_fail_no_more(), status != SWIN_OK);
    assert_int_equal(status, SWIN_ERR_NO_MEMORY);
    assert_null(result.kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_kernels_pass),
        cmocka_unit_test(every_wrong_kernel_is_found),
        cmocka_unit_test(memory_may_lack),
    };
    return cmocka_run_group_tests_name("self-test", tests, NULL, NULL);
}
