// 16 float32 lanes in two 256-bit registers: the vector type of row_ops_simd.h and attend_simd.h.
// In an anonymous namespace: code compiled with wide flags must not leak into other files.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace megamoe::cpu {
namespace {

struct Avx2 {
    struct F {
        __m256 low, high;
    };
    // Registers of a product: rows and panels of scores, heads and vectors of values (see attend_simd.h).
    static constexpr std::int32_t kScoreRows = 3, kScorePanels = 2;
    static constexpr std::int32_t kValueHeads = 2, kValueVectors = 2;

    // The 8 lanes of a register at index `at` that are below `count`, as a mask of maskload and maskstore.
    static __m256i lanes_below(std::int64_t at, std::int64_t count) {
        const std::int64_t left = count - at;
        const int clamped = left >= 8 ? 8 : left <= 0 ? 0 : static_cast<int>(left);
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(clamped), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    }

    static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
    static F set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
    // The 32 bits at p, whatever they mean.
    static F broadcast(const void* p) {
        const __m256 x = _mm256_broadcast_ss(static_cast<const float*>(p));
        return {x, x};
    }
    static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
    static F load(const float* p, std::int64_t at, std::int64_t count) {
        return {_mm256_maskload_ps(p + at, lanes_below(at, count)),
                _mm256_maskload_ps(p + at + 8, lanes_below(at + 8, count))};
    }
    static F load_bf16(const std::uint16_t* p) {
        const auto widen = [](const std::uint16_t* half) {
            const __m256i codes = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(half)));
            return _mm256_castsi256_ps(_mm256_slli_epi32(codes, 16));
        };
        return {widen(p), widen(p + 8)};
    }
    static void store(float* p, F x) {
        _mm256_storeu_ps(p, x.low);
        _mm256_storeu_ps(p + 8, x.high);
    }
    static void store(float* p, std::int64_t at, std::int64_t count, F x) {
        _mm256_maskstore_ps(p + at, lanes_below(at, count), x.low);
        _mm256_maskstore_ps(p + at + 8, lanes_below(at + 8, count), x.high);
    }

    static F add(F a, F b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
    static F sub(F a, F b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
    static F mul(F a, F b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
    static F div(F a, F b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
    static F fma(F a, F b, F c) {
        return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
    }
    static F min(F a, F b) { return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)}; }
    static F max(F a, F b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
    static F bit_and(F a, F b) { return {_mm256_and_ps(a.low, b.low), _mm256_and_ps(a.high, b.high)}; }
    static F bit_or(F a, F b) { return {_mm256_or_ps(a.low, b.low), _mm256_or_ps(a.high, b.high)}; }

    // Halves, quarters, pairs: the tree of row_ops.h.
    static float sum(F x) {
        const __m256 eight = _mm256_add_ps(x.low, x.high);
        const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
    }
    static float max(F x) {
        const __m256 eight = _mm256_max_ps(x.low, x.high);
        const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
    }

    // ops::round_bf16() in each lane.
    static F round_bf16(F x) { return {round_bf16(x.low), round_bf16(x.high)}; }
    static __m256 round_bf16(__m256 x) {
        const __m256i bits = _mm256_castps_si256(x);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
        const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
        const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
        const __m256 either = _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), nan);
        return _mm256_and_ps(either, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xFFFF0000U))));
    }

    // p * 2^n for whole n in [-252, 252], with overflow to infinity and gradual underflow: in two factors, since 2^n
    // itself need not be a float32.
    static F scale_by_power(F p, F n) {
        const auto scale = [](__m256 x, __m256 power) {
            const __m256i whole = _mm256_cvtps_epi32(power);
            const __m256i half = _mm256_srai_epi32(whole, 1);
            const auto exp2 = [](__m256i e) {
                return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(e, _mm256_set1_epi32(127)), 23));
            };
            return _mm256_mul_ps(_mm256_mul_ps(x, exp2(half)), exp2(_mm256_sub_epi32(whole, half)));
        };
        return {scale(p.low, n.low), scale(p.high, n.high)};
    }
    static F round_to_integer(F x) {
        constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        return {_mm256_round_ps(x.low, kNearest), _mm256_round_ps(x.high, kNearest)};
    }

    // Row r, lane c becomes row c, lane r.
    static void transpose(F (&row)[16]) {
        alignas(32) float square[16][16];
        for (int r = 0; r < 16; ++r) {
            store(square[r], row[r]);
        }
        for (int c = 0; c < 16; ++c) {
            alignas(32) float column[16];
            for (int r = 0; r < 16; ++r) {
                column[r] = square[r][c];
            }
            row[c] = load(column);
        }
    }
};

}  // namespace
}  // namespace megamoe::cpu
