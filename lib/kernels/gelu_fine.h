/* SPDX-License-Identifier: MIT */
/*
 * gelu_fine.h - GELU of float32 in registers of 16, for every kernel that ends with it. gelu_avx512.c says how.
 */
#ifndef SW_KERNELS_GELU_FINE_H
#define SW_KERNELS_GELU_FINE_H

#include "vector.h"

#define INTERVALS 32

/* t / FINE_STEP, rounded. */
#define FINE_STEP 0.2f
#define FINE_LAST 6.2f

static const float fine[5][INTERVALS] = {
    {0, -0x1.58aba4p-4f, -0x1.1a474cp-3f, -0x1.510092p-3f, -0x1.5b1a98p-3f, -0x1.44ed0cp-3f, -0x1.1acb94p-3f,
     -0x1.cf174ap-4f, -0x1.6721f4p-4f, -0x1.08e836p-4f, -0x1.74bcf8p-5f, -0x1.f525a2p-6f, -0x1.42571ap-6f,
     -0x1.8d1e4ap-7f, -0x1.d4de54p-8f, -0x1.096698p-8f, -0x1.2034dep-9f, -0x1.2c4d30p-10f, -0x1.2c4eacp-11f,
     -0x1.2046eep-12f, -0x1.09ad6cp-13f, -0x1.d632eep-15f, -0x1.8f8d4ep-16f, -0x1.460eb6p-17f, -0x1.ff189ep-19f,
     -0x1.80bc52p-20f, -0x1.162da0p-21f, -0x1.826518p-23f, -0x1.01c672p-24f, -0x1.4a634cp-26f, -0x1.96c7e8p-28f, 0},
    {-0x1.99999ap-4f, -0x1.189a30p-4f, -0x1.433562p-5f, -0x1.e70ec0p-7f, 0x1.04cbc8p-8f, 0x1.1101a8p-6f, 0x1.82826ep-6f,
     0x1.a64118p-6f, 0x1.91fa96p-6f, 0x1.5bee6ep-6f, 0x1.1749dap-6f, 0x1.a45a90p-7f, 0x1.2a8364p-7f, 0x1.91cbdep-8f,
     0x1.01021cp-8f, 0x1.3925e2p-9f, 0x1.6bf4f0p-10f, 0x1.93f92ep-11f, 0x1.ac9914p-12f, 0x1.b2f668p-13f,
     0x1.a67b20p-14f, 0x1.88ef0ep-15f, 0x1.5e124ep-16f, 0x1.2adabcp-17f, 0x1.e913a0p-19f, 0x1.7fa9aap-20f,
     0x1.209954p-21f, 0x1.a06808p-23f, 0x1.20272cp-24f, 0x1.7e9620p-26f, 0x1.e75e46p-28f, 0},
    {0x1.057382p-6f, 0x1.f64c84p-7f, 0x1.bc15a0p-7f, 0x1.6625b2p-7f, 0x1.023302p-7f, 0x1.3d27f2p-8f, 0x1.1d1144p-9f,
     0x1.f6787ap-14f, -0x1.45a86cp-10f, -0x1.00a148p-9f, -0x1.1b105ep-9f, -0x1.0819d4p-9f, -0x1.b976aep-10f,
     -0x1.52f9b6p-10f, -0x1.e4b744p-11f, -0x1.454cd0p-11f, -0x1.9bfd10p-12f, -0x1.ee1a14p-13f, -0x1.194cbep-13f,
     -0x1.30ad36p-14f, -0x1.3a5de0p-15f, -0x1.355c54p-16f, -0x1.229f30p-17f, -0x1.04d404p-18f, -0x1.bf8df8p-20f,
     -0x1.6f41d6p-21f, -0x1.205ebap-22f, -0x1.b17dc0p-24f, -0x1.37fddep-25f, -0x1.ae26dap-27f, -0x1.1c1878p-28f, 0},
    {-0x1.a7a524p-23f, -0x1.afcddap-12f, -0x1.8a614cp-11f, -0x1.fb814ap-11f, -0x1.0f98bep-10f, -0x1.fa9a8ep-11f,
     -0x1.a09482p-11f, -0x1.2ae754p-11f, -0x1.65db62p-12f, -0x1.2fc43cp-13f, -0x1.e112d6p-21f, 0x1.6b698cp-14f,
     0x1.075da4p-13f, 0x1.0fe4e0p-13f, 0x1.db6da6p-14f, 0x1.73c4b4p-14f, 0x1.0a7f4ep-14f, 0x1.62f6aep-15f,
     0x1.bad728p-16f, 0x1.041facp-16f, 0x1.20d86cp-17f, 0x1.2ffd2cp-18f, 0x1.2fd822p-19f, 0x1.20e50ap-20f,
     0x1.059f48p-21f, 0x1.c3c934p-23f, 0x1.743d24p-24f, 0x1.24df48p-25f, 0x1.b857d8p-27f, 0x1.3c7664p-28f,
     0x1.b3085ap-30f, 0},
    {-0x1.bc4584p-14f, -0x1.979626p-14f, -0x1.2b929cp-14f, -0x1.2c80d4p-15f, 0x1.5911d8p-20f, 0x1.0dc996p-15f,
     0x1.b1f46ep-15f, 0x1.eaee86p-15f, 0x1.c7906ap-15f, 0x1.67ffa4p-15f, 0x1.e10e6ap-16f, 0x1.fd61b6p-17f,
     0x1.37cf1ep-18f, -0x1.22b5eep-19f, -0x1.763c4ap-18f, -0x1.b2f0bap-18f, -0x1.8ad384p-18f, -0x1.370b68p-18f,
     -0x1.ba30ecp-19f, -0x1.212af8p-19f, -0x1.5fd94ep-20f, -0x1.911eaap-21f, -0x1.ae861cp-22f, -0x1.b48d8cp-23f,
     -0x1.a34612p-24f, -0x1.7e28c0p-25f, -0x1.4b18e6p-26f, -0x1.11023ap-27f, -0x1.acee64p-29f, -0x1.414b48p-30f,
     -0x1.cb4e98p-32f, 0},
};

typedef struct column {
    __m512 low, high;
} column;

SW_INLINE column column_of(const float values[INTERVALS])
{
    return (column){_mm512_loadu_ps(values), _mm512_loadu_ps(values + 16)};
}

SW_INLINE vf pick(const column *c, vf shifted)
{
    /* The last five bits count. */
    return _mm512_permutex2var_ps(c->low, _mm512_castps_si512(shifted), c->high);
}

/* min(|x|, last), and last for NaN. */
SW_INLINE vf magnitude(vf x, float last)
{
    return _mm512_range_ps(x, vf_set(last), 0xa);
}

/* max(x, 0), and NaN for NaN. */
SW_INLINE vf positive(vf x)
{
    return vf_max(vf_set(0), x);
}

typedef struct fine_columns {
    column c[5];
} fine_columns;

SW_INLINE vf gelu_fine(vf x, const fine_columns *table)
{
    const vf t = magnitude(x, FINE_LAST);
    const vf shifted = vf_fma(t, vf_set(1 / FINE_STEP), vf_set(VF_SHIFT));
    const vf r = vf_fma(t, vf_set(1 / FINE_STEP), vf_sub(vf_set(VF_SHIFT), shifted));
    vf p = vf_fma(pick(table->c + 4, shifted), r, pick(table->c + 3, shifted));
    p = vf_fma(p, r, pick(table->c + 2, shifted));
    p = vf_fma(p, r, pick(table->c + 1, shifted));
    p = vf_fma(p, r, pick(table->c, shifted));
    return vf_add(positive(x), p);
}

SW_INLINE fine_columns fine_table(void)
{
    return (fine_columns){
        {column_of(fine[0]), column_of(fine[1]), column_of(fine[2]), column_of(fine[3]), column_of(fine[4])}};
}

#endif
