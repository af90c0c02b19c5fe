#include <immintrin.h>

#include "compute/cpu/convert_kernels.h"

namespace megamoe::cpu {
namespace {

__mmask16 tail(std::int64_t left) {
    return left >= 16 ? static_cast<__mmask16>(0xFFFF) : static_cast<__mmask16>((1U << left) - 1);
}

// Nearest, ties to even; a NaN becomes a quiet NaN of the same sign and leading bits.
__m256i round_to_codes(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

__m512 widen(__m256i codes) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16));
}

void to_bf16_avx512(const float* from, std::int64_t count, std::uint16_t* to) {
    for (std::int64_t i = 0; i < count; i += 16) {
        const __mmask16 m = tail(count - i);
        _mm256_mask_storeu_epi16(to + i, m, round_to_codes(_mm512_maskz_loadu_ps(m, from + i)));
    }
}

void add_avx512(const float* from, std::int64_t count, float* sum) {
    for (std::int64_t i = 0; i < count; i += 16) {
        const __mmask16 m = tail(count - i);
        const __m512 total = _mm512_add_ps(_mm512_maskz_loadu_ps(m, sum + i), _mm512_maskz_loadu_ps(m, from + i));
        _mm512_mask_storeu_ps(sum + i, m, total);
    }
}

void add_bf16_avx512(const std::uint16_t* from, std::int64_t count, float* sum) {
    for (std::int64_t i = 0; i < count; i += 16) {
        const __mmask16 m = tail(count - i);
        const __m512 value = widen(_mm256_maskz_loadu_epi16(m, from + i));
        _mm512_mask_storeu_ps(sum + i, m, _mm512_add_ps(_mm512_maskz_loadu_ps(m, sum + i), value));
    }
}

void round_bf16_avx512(float* x, std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += 16) {
        const __mmask16 m = tail(count - i);
        _mm512_mask_storeu_ps(x + i, m, widen(round_to_codes(_mm512_maskz_loadu_ps(m, x + i))));
    }
}

}  // namespace

const ConvertKernels kConvertAvx512{Isa::kAvx512, &to_bf16_avx512, &add_avx512, &add_bf16_avx512, &round_bf16_avx512};

}  // namespace megamoe::cpu
