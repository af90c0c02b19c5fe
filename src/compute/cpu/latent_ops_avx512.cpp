#include <immintrin.h>

#include <cmath>

#include "compute/cpu/latent_kernels.h"

namespace megamoe::cpu {
namespace {

__m512 round_to_bf16(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    rounded = _mm512_mask_or_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), bits, _mm512_set1_epi32(0x400000));
    return _mm512_castsi512_ps(_mm512_and_si512(rounded, _mm512_set1_epi32(static_cast<int>(0xFFFF0000U))));
}

// One butterfly stage inside a vector: lanes whose bit is clear get a + b, the others a - b with a from the lower lane.
__m512 butterfly(__m512 x, __m512 swapped, __mmask16 upper) {
    return _mm512_mask_sub_ps(_mm512_add_ps(x, swapped), upper, swapped, x);
}

__m512 butterflies_below_16(__m512 x) {
    x = butterfly(x, _mm512_permute_ps(x, 0xB1), 0xAAAA);
    x = butterfly(x, _mm512_permute_ps(x, 0x4E), 0xCCCC);
    x = butterfly(x, _mm512_shuffle_f32x4(x, x, 0xB1), 0xF0F0);
    return butterfly(x, _mm512_shuffle_f32x4(x, x, 0x4E), 0xFF00);
}

// Nearest E2M1 value, ties to the even code, after clamping to +-6.
__m512 nearest_e2m1(__m512 v) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    const __m512 a = _mm512_min_ps(_mm512_abs_ps(v), _mm512_set1_ps(6.0F));
    const __m512 two = _mm512_set1_ps(2.0F);
    const __m512 half = _mm512_set1_ps(0.5F);
    const __m512 fine = _mm512_mul_ps(_mm512_roundscale_ps(_mm512_mul_ps(a, two), kNearest), half);
    const __m512 middle = _mm512_roundscale_ps(a, kNearest);
    const __m512 coarse = _mm512_mul_ps(_mm512_roundscale_ps(_mm512_mul_ps(a, half), kNearest), two);
    __m512 r = _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, two, _CMP_GE_OQ), fine, middle);
    r = _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, _mm512_set1_ps(4.0F), _CMP_GE_OQ), r, coarse);
    const __m512i sign = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(static_cast<int>(0x80000000U)));
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(r), sign));
}

float pow2_ceil(float v) {
    int exponent = 0;
    const float mantissa = std::frexp(v, &exponent);  // v = mantissa * 2^exponent, mantissa in [0.5, 1)
    return std::ldexp(1.0F, mantissa == 0.5F ? exponent - 1 : exponent);
}

}  // namespace

void rotate_heads_avx512(float* heads, std::int32_t num_heads, std::int32_t dim, const float* cos_sin,
                         std::int32_t rope_dim, bool inverse, bool round_bf16) {
    // Even lanes: v0 c - v1 s; odd lanes: v1 c + v0 s; the inverse turns the sign of s.
    const __mmask16 minus = inverse ? 0xAAAA : 0x5555;
    for (std::int32_t i = 0; i < rope_dim; i += 16) {
        const __m512 cs = _mm512_loadu_ps(cos_sin + i);
        const __m512 c = _mm512_moveldup_ps(cs);
        const __m512 s = _mm512_movehdup_ps(cs);
        float* v = heads + (dim - rope_dim) + i;
        for (std::int32_t h = 0; h < num_heads; ++h, v += dim) {
            const __m512 x = _mm512_loadu_ps(v);
            const __m512 a = _mm512_mul_ps(x, c);
            const __m512 b = _mm512_mul_ps(_mm512_permute_ps(x, 0xB1), s);
            const __m512 r = _mm512_mask_sub_ps(_mm512_add_ps(a, b), minus, a, b);
            _mm512_storeu_ps(v, round_bf16 ? round_to_bf16(r) : r);
        }
    }
}

void hadamard_fp4_avx512(float* x, std::int32_t n) {
    for (std::int32_t i = 0; i < n; i += 16) {
        _mm512_storeu_ps(x + i, butterflies_below_16(_mm512_loadu_ps(x + i)));
    }
    for (std::int32_t half = 16; half < n; half *= 2) {
        for (std::int32_t block = 0; block < n; block += 2 * half) {
            for (std::int32_t i = block; i < block + half; i += 16) {
                const __m512 a = _mm512_loadu_ps(x + i);
                const __m512 b = _mm512_loadu_ps(x + i + half);
                _mm512_storeu_ps(x + i, _mm512_add_ps(a, b));
                _mm512_storeu_ps(x + i + half, _mm512_sub_ps(a, b));
            }
        }
    }
    const __m512 norm = _mm512_set1_ps(1.0F / std::sqrt(static_cast<float>(n)));
    constexpr float kFloor = 6.0F * 0x1p-126F;
    for (std::int32_t i = 0; i < n; i += 32) {
        const __m512 lo = round_to_bf16(_mm512_mul_ps(_mm512_loadu_ps(x + i), norm));
        const __m512 hi = round_to_bf16(_mm512_mul_ps(_mm512_loadu_ps(x + i + 16), norm));
        const float top = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(lo), _mm512_abs_ps(hi)));
        const float scale = pow2_ceil((top > kFloor ? top : kFloor) / 6.0F);
        const __m512 s = _mm512_set1_ps(scale);
        const __m512 inverse = _mm512_set1_ps(1.0F / scale);  // powers of two: exact both ways
        _mm512_storeu_ps(x + i, round_to_bf16(_mm512_mul_ps(nearest_e2m1(_mm512_mul_ps(lo, inverse)), s)));
        _mm512_storeu_ps(x + i + 16, round_to_bf16(_mm512_mul_ps(nearest_e2m1(_mm512_mul_ps(hi, inverse)), s)));
    }
}

}  // namespace megamoe::cpu
