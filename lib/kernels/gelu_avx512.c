/* SPDX-License-Identifier: MIT */
/*
 * gelu(x) = x Phi(x) = max(x, 0) - h(t), t = |x|, h(t) = t Phi(-t), with h as 32 polynomials whose coefficients fit
 * into a pair of registers each and are picked by one permutation.
 *
 * For bf16 results: quadratics in t, in intervals that shrink as h bends more, relative error 1.8e-3 (half a unit of
 * the last place is 2e-3 to 3.9e-3). For float32: quartics in the distance from the middle of intervals 0.2 wide,
 * absolute error 3e-8, relative 2e-7 near zero and up to 3e-5 in the left tail. Beyond t = 6 (h < 6e-9) the last
 * interval is zero. tests/kernels/gelu_tables.py made the tables, the sign of h included.
 */
#include "set.h"
#include "vector.h"

#define INTERVALS 32

/* The interval's number is t (A + B t), rounded. */
#define COARSE_A 1.9f
#define COARSE_B 0.53f
#define COARSE_LAST 6.05f

static const float coarse[3][INTERVALS] = {
    {0, -0x1.91b5b6p-8f, -0x1.18f410p-4f, -0x1.882a92p-3f, -0x1.47d856p-2f, -0x1.9f3ab2p-2f, -0x1.b8cb5cp-2f,
     -0x1.9d8a14p-2f, -0x1.621b20p-2f, -0x1.1a78ccp-2f, -0x1.a9d0b0p-3f, -0x1.325b1ep-3f, -0x1.a7f8aep-4f,
     -0x1.1bcc10p-4f, -0x1.7135a0p-5f, -0x1.d47744p-6f, -0x1.22b86cp-6f, -0x1.61d20ep-7f, -0x1.a71c5ep-8f,
     -0x1.f201b2p-9f, -0x1.20e3dap-9f, -0x1.4acaa0p-10f, -0x1.763c68p-11f, -0x1.a2b7acp-12f, -0x1.cfb594p-13f,
     -0x1.fcad52p-14f, -0x1.148b94p-14f, -0x1.2a3808p-15f, -0x1.3f1dbap-16f, -0x1.5302d2p-17f, -0x1.65b2f0p-18f, 0},
    {-0x1.ffc81cp-2f, -0x1.d4ff44p-2f, -0x1.13f4a2p-2f, -0x1.bd1c68p-6f, 0x1.554e30p-3f, 0x1.17394ep-2f, 0x1.32ed32p-2f,
     0x1.19d17ap-2f, 0x1.cfd06ap-3f, 0x1.617e44p-3f, 0x1.fc9a84p-4f, 0x1.5d969cp-4f, 0x1.cf08b8p-5f, 0x1.294164p-5f,
     0x1.73ac48p-6f, 0x1.c62d88p-7f, 0x1.0ff970p-7f, 0x1.3ffbd4p-8f, 0x1.72873ap-9f, 0x1.a6f59ep-10f, 0x1.dc96eap-11f,
     0x1.095b06p-11f, 0x1.244eeap-12f, 0x1.3ecea8p-13f, 0x1.5885e0p-14f, 0x1.7125eap-15f, 0x1.88671cp-16f,
     0x1.9e0a60p-17f, 0x1.b1d944p-18f, 0x1.c3a6acp-19f, 0x1.d34f20p-20f, 0},
    {0x1.9440dcp-2f, 0x1.4a7830p-2f, 0x1.6f7512p-3f, 0x1.e92076p-5f, -0x1.b57952p-7f, -0x1.7b4892p-5f, -0x1.b74dc6p-5f,
     -0x1.8909d0p-5f, -0x1.35319cp-5f, -0x1.c0765ap-6f, -0x1.330286p-6f, -0x1.9254e8p-7f, -0x1.fd313cp-8f,
     -0x1.391ee8p-8f, -0x1.77ec7ep-9f, -0x1.ba1560p-10f, -0x1.fe9b50p-11f, -0x1.223b32p-11f, -0x1.454e8ep-12f,
     -0x1.6805c4p-13f, -0x1.89e4dep-14f, -0x1.aa7876p-15f, -0x1.c957e2p-16f, -0x1.e626c2p-17f, -0x1.004b0ep-17f,
     -0x1.0c3276p-18f, -0x1.16b016p-19f, -0x1.1fb1c4p-20f, -0x1.272bdap-21f, -0x1.2d191ep-22f, -0x1.317a46p-23f, 0},
};

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

typedef struct coarse_columns {
    column c[3];
} coarse_columns;

SW_INLINE vf gelu_coarse(vf x, const coarse_columns *table)
{
    const vf t = magnitude(x, COARSE_LAST);
    const vf shifted = vf_fma(t, vf_fma(t, vf_set(COARSE_B), vf_set(COARSE_A)), vf_set(VF_SHIFT));
    vf p = vf_fma(pick(table->c + 2, shifted), t, pick(table->c + 1, shifted));
    p = vf_fma(p, t, pick(table->c, shifted));
    return vf_add(positive(x), p);
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

SW_INLINE void gelu_to_f32(float *dst, const void *src, sw_type type, size_t count)
{
    const fine_columns table = {{column_of(fine[0]), column_of(fine[1]), column_of(fine[2]), column_of(fine[3]),
                                 column_of(fine[4])}};
    size_t i = 0;
    for (; i + 2 * VF_LANES <= count; i += 2 * VF_LANES) {
        const vf first = gelu_fine(vf_get(src, type, i), &table);
        const vf second = gelu_fine(vf_get(src, type, i + VF_LANES), &table);
        vf_put_2(dst, SW_F32, i, first, second);
    }
    for (; i < count; i += VF_LANES) {
        const int n = count - i < VF_LANES ? (int)(count - i) : VF_LANES;
        vf_store_n(dst + i, gelu_fine(vf_get_n(src, type, i, n), &table), n);
    }
}

/* Even elements and odd ones apart need no permutation. Halves are rounded up: the polynomials have taken more
 * liberty than that. A NaN out of bf16 has no lower bits that the rounding could carry. */
SW_INLINE __m512i gelu_packed(__m512i both, const coarse_columns *table)
{
    const __m512i half = _mm512_set1_epi32(0x8000);
    const vf even = gelu_coarse(_mm512_castsi512_ps(_mm512_slli_epi32(both, 16)), table);
    const vf odd = gelu_coarse(_mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(-65536))), table);
    const __m512i lower = _mm512_srli_epi32(_mm512_add_epi32(_mm512_castps_si512(even), half), 16);
    const __m512i upper = _mm512_add_epi32(_mm512_castps_si512(odd), half);
    return _mm512_mask_blend_epi16(0xaaaaaaaa, lower, upper);
}

static void gelu_bf16(uint16_t *dst, const uint16_t *src, size_t count)
{
    const coarse_columns table = {{column_of(coarse[0]), column_of(coarse[1]), column_of(coarse[2])}};
    size_t i = 0;
    for (; i + 2 * VF_LANES <= count; i += 2 * VF_LANES)
        _mm512_storeu_si512(dst + i, gelu_packed(_mm512_loadu_si512(src + i), &table));
    if (i < count) {
        const __mmask32 rest = (1u << (count - i)) - 1;
        _mm512_mask_storeu_epi16(dst + i, rest, gelu_packed(_mm512_maskz_loadu_epi16(rest, src + i), &table));
    }
}

static void gelu_f32_to_bf16(uint16_t *dst, const float *src, size_t count)
{
    const coarse_columns table = {{column_of(coarse[0]), column_of(coarse[1]), column_of(coarse[2])}};
    size_t i = 0;
    for (; i + 2 * VF_LANES <= count; i += 2 * VF_LANES)
        vf_store_bf16_2(dst + i, gelu_coarse(vf_load(src + i), &table),
                        gelu_coarse(vf_load(src + i + VF_LANES), &table));
    for (; i < count; i += VF_LANES) {
        const int n = count - i < VF_LANES ? (int)(count - i) : VF_LANES;
        vf_store_bf16_n(dst + i, gelu_coarse(vf_load_n(src + i, n), &table), n);
    }
}

void sw_gelu(void *dst, sw_type dst_type, const void *src, sw_type src_type, size_t count)
{
    if (dst_type == SW_F32 && src_type == SW_F32)
        gelu_to_f32(dst, src, SW_F32, count);
    else if (dst_type == SW_F32)
        gelu_to_f32(dst, src, SW_BF16, count);
    else if (src_type == SW_F32)
        gelu_f32_to_bf16(dst, src, count);
    else
        gelu_bf16(dst, src, count);
}
