/* SPDX-License-Identifier: MIT */
/*
 * Which instruction sets this CPU has and the operating system saves. Compiled without any of their flags. Nothing is
 * remembered: a session asks once and keeps the table.
 */
#include "kernels.h"

#include <stddef.h>

extern const sw_kernels sw_kernels_plain;

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

extern const sw_kernels sw_kernels_avx2;
extern const sw_kernels sw_kernels_avx512;
extern const sw_kernels sw_kernels_avx512_bf16;

/* Bits of XCR0: the register state that the operating system saves. */
enum {
    STATE_AVX = 0x6,      /* SSE, AVX                                           */
    STATE_AVX512 = 0xe6,  /* the same, mask registers, upper halves, upper half */
    STATE_TILES = 0x60000 /* tile configuration, tile data                      */
};

/* Linux hands out the large tile state only on request (arch_prctl). The grant is for the process and for good. */
enum {
    REQUEST_STATE_PERMISSION = 0x1023,
    STATE_NUMBER_TILE_DATA = 18
};

typedef struct registers {
    unsigned eax, ebx, ecx, edx;
} registers;

static registers cpuid(unsigned leaf, unsigned subleaf)
{
    registers r = {0};
    if (!__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx))
        return (registers){0};
    return r;
}

static bool has(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

__attribute__((target("xsave"))) static uint64_t saved_states(void)
{
    return has(cpuid(1, 0).ecx, bit_OSXSAVE) ? _xgetbv(0) : 0;
}

static bool has_avx2(void)
{
    return has(cpuid(1, 0).ecx, bit_AVX | bit_FMA | bit_F16C) && has(cpuid(7, 0).ebx, bit_AVX2) &&
           (saved_states() & STATE_AVX) == STATE_AVX;
}

static bool has_avx512(void)
{
    return has_avx2() && has(cpuid(7, 0).ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL) &&
           (saved_states() & STATE_AVX512) == STATE_AVX512;
}

static bool has_avx512_bf16(void)
{
    return has_avx512() && has(cpuid(7, 1).eax, bit_AVX512BF16);
}

sw_isa sw_isa_best(void)
{
    return has_avx512_bf16() ? SW_ISA_AVX512_BF16
           : has_avx512()    ? SW_ISA_AVX512
           : has_avx2()      ? SW_ISA_AVX2
                             : SW_ISA_PLAIN;
}

const sw_kernels *sw_kernels_for(sw_isa isa)
{
    switch (isa) {
    case SW_ISA_PLAIN:
        return &sw_kernels_plain;
    case SW_ISA_AVX2:
        return has_avx2() ? &sw_kernels_avx2 : NULL;
    case SW_ISA_AVX512:
        return has_avx512() ? &sw_kernels_avx512 : NULL;
    case SW_ISA_AVX512_BF16:
        return has_avx512_bf16() ? &sw_kernels_avx512_bf16 : NULL;
    case SW_ISA_COUNT:
        break;
    }
    return NULL;
}

bool sw_cpu_has_amx(void)
{
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25 };
    if (!has_avx512_bf16() || !has(cpuid(7, 0).ecx, bit_AVX512VBMI) ||
        !has(cpuid(7, 0).edx, AMX_BF16 | AMX_TILE | AMX_INT8) || (saved_states() & STATE_TILES) != STATE_TILES)
        return false;
    /* Palette 1 as every kernel assumes it: eight tiles of 16 rows of 64 bytes. */
    const registers palettes = cpuid(0x1d, 0), palette = cpuid(0x1d, 1);
    if (palettes.eax < 1 || palette.eax >> 16 != 1024 || (palette.ebx & 0xffff) != 64 || palette.ebx >> 16 < 8 ||
        (palette.ecx & 0xffff) < 16)
        return false;
    return syscall(SYS_arch_prctl, REQUEST_STATE_PERMISSION, STATE_NUMBER_TILE_DATA) == 0;
}

#else

sw_isa sw_isa_best(void)
{
    return SW_ISA_PLAIN;
}

const sw_kernels *sw_kernels_for(sw_isa isa)
{
    return isa == SW_ISA_PLAIN ? &sw_kernels_plain : NULL;
}

bool sw_cpu_has_amx(void)
{
    return false;
}

#endif
