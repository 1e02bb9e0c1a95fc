/* SPDX-License-Identifier: MIT */
/*
 * Which instruction sets this CPU has and the operating system saves. Compiled without any of their flags. Nothing is
 * remembered: a session asks once and keeps the table.
 */
#include "kernels.h"

#include <stddef.h>

extern const sw_kernels sw_kernels_plain;

sw_isa sw_isa_best(void)
{
    return SW_ISA_PLAIN;
}

const sw_kernels *sw_kernels_for(sw_isa isa)
{
    return isa == SW_ISA_PLAIN ? &sw_kernels_plain : NULL;
}

bool sw_cpu_has_amx_bf16(void)
{
    return false;
}
