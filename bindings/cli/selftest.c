/* SPDX-License-Identifier: MIT */
#include "selftest.h"

#include <swin/swin.h>

#include "clock.h"

bool selftest_print(FILE *stream, struct failure *failure)
{
    const double start = clock_now();
    size_t count = 0, wrong = 0;
    for (;; count++) {
        swin_selftest_result result;
        swin_error error;
        const swin_status status = swin_selftest(count, &result, sizeof result, &error);
        if (status != SWIN_OK && status != SWIN_ERR_INTERNAL)
            return failure_set(failure, "self-test: %s", error.message);
        if (result.kernel == NULL)
            break;
        fprintf(stream, "%-26s %-13s %-5s %.3g of what is allowed\n", result.kernel, result.isa,
                status == SWIN_OK ? "ok" : "WRONG", result.error);
        wrong += status != SWIN_OK;
    }
    fprintf(stream, "%zu kernels compared with plain C in %.0f ms\n", count, (clock_now() - start) * 1e3);
    if (wrong > 0)
        return failure_set(failure, "%zu of %zu kernels differ from plain C; do not use this build here",
                           wrong, count);
    return true;
}
