// Small steps of the 512-bit kernels. In an anonymous namespace: code compiled with wide flags must not leak into other
// files.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace megamoe::cpu {
namespace {

constexpr std::int32_t kLanes = 16;

// The lanes of a vector at index `at` that are below `count`.
inline __mmask16 lanes_below(std::int64_t at, std::int64_t count) {
    const std::int64_t left = count - at;
    return static_cast<__mmask16>(left >= kLanes ? 0xFFFF : left <= 0 ? 0 : (1 << left) - 1);
}

// ops::round_bf16() in each lane.
inline __m512 round_bf16(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_castsi512_ps(_mm512_and_si512(rounded, _mm512_set1_epi32(static_cast<int>(0xFFFF0000U))));
}

}  // namespace
}  // namespace megamoe::cpu
