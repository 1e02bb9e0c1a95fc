/* SPDX-License-Identifier: MIT */
/*
 * Put in front of sw_isa_best() by the linker (--wrap): the environment's SWIN_TEST_ISA, one of "plain", "avx2",
 * "avx512" and "avx512_bf16", holds tests to kernels of older CPUs. The library itself reads no environment.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

sw_isa __real_sw_isa_best(void);
sw_isa __wrap_sw_isa_best(void);
sw_isa __wrap_sw_isa_best(void)
{
    const char *limit = getenv("SWIN_TEST_ISA");
    const sw_isa best = __real_sw_isa_best();
    if (limit == NULL)
        return best;
    for (int isa = 0; isa < SW_ISA_COUNT; isa++) {
        const sw_kernels *kernels = sw_kernels_for((sw_isa)isa);
        if (kernels != NULL && strcmp(kernels->name, limit) == 0)
            return (sw_isa)isa < best ? (sw_isa)isa : best;
    }
    /* A limit that this CPU does not reach is none. */
    return best;
}
