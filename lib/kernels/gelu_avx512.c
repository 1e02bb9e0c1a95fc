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
#include "gelu_fine.h"
#include "set.h"

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

SW_INLINE void gelu_to_f32(float *dst, const void *src, sw_type type, size_t count)
{
    const fine_columns table = fine_table();
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
