/* SPDX-License-Identifier: MIT */
#include "trial.h"

static const char *const names[SW_ISA_COUNT] = {"plain", "avx2", "avx512", "avx512_bf16"};

/* What the compiler's own run-time library says of this CPU. */
static int supported(int isa)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    switch (isa) {
    case SW_ISA_AVX2:
        return avx2;
    case SW_ISA_AVX512:
        return avx512;
    case SW_ISA_AVX512_BF16:
        return avx512 && __builtin_cpu_supports("avx512bf16");
    default:
        break;
    }
#endif
    return isa == SW_ISA_PLAIN;
}

static void test_tables(void **context)
{
    (void)context;
    sw_isa best = SW_ISA_PLAIN;
    for (int isa = 0; isa < SW_ISA_COUNT; isa++) {
        const sw_kernels *kernels = sw_kernels_for((sw_isa)isa);
        print_message("%s: %s\n", names[isa], kernels != NULL ? "tested" : "not on this machine");
        assert_int_equal(kernels != NULL, supported(isa) != 0);
        if (kernels == NULL)
            continue;
        best = (sw_isa)isa;
        assert_string_equal(kernels->name, names[isa]);
        /* Every entry is filled, so a new one cannot be forgotten. */
        const char *const *entry = (const char *const *)(const void *)kernels;
        for (size_t i = 0; i < sizeof *kernels / sizeof *entry; i++)
            assert_non_null(entry[i]);
    }
    assert_int_equal(sw_isa_best(), best);
    assert_null(sw_kernels_for(SW_ISA_COUNT));
}

/* The kernel lists what the CPU has. */
static int listed(const char *flag)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL)
        return -1;
    static char line[16384];
    int found = 0;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        for (char *word = strtok(line, " \t\n"); word != NULL; word = strtok(NULL, " \t\n"))
            found |= strcmp(word, flag) == 0;
    }
    fclose(file);
    return found;
}

static void test_amx(void **context)
{
    (void)context;
    const int expected = listed("amx_bf16") == 1 ? listed("amx_int8") : listed("amx_bf16");
    if (expected < 0)
        skip();
    const bool has = sw_cpu_has_amx();
    print_message("amx: %s\n", has ? "yes" : "no");
    /* Emulators (valgrind) hide what the operating system lists, never the reverse. */
    assert_true(!has || expected);
    assert_int_equal(sw_cpu_has_amx(), has);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_amx),
    };
    return cmocka_run_group_tests_name("kernels-dispatch", tests, NULL, NULL);
}
