// Small steps of the 256-bit kernels. In an anonymous namespace: code compiled with wide flags must not leak into other
// files.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace megamoe::cpu {
namespace {

constexpr std::int32_t kHalf = 8;  // lanes of a register; two registers do what one does in the 512-bit kernels

// The lanes of a vector at index `at` that are below `count`, as a mask of maskload and maskstore.
inline __m256i lanes_below(std::int64_t at, std::int64_t count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const std::int64_t left = count - at;
    const int clamped = left >= kHalf ? kHalf : left <= 0 ? 0 : static_cast<int>(left);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(clamped), lane);
}

// ops::round_bf16() in each lane.
inline __m256 round_bf16(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    const __m256 either = _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), nan);
    return _mm256_and_ps(either, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xFFFF0000U))));
}

}  // namespace
}  // namespace megamoe::cpu
