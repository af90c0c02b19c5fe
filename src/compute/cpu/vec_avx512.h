// 16 float32 lanes in one 512-bit register: the vector type of row_ops_simd.h and attend_simd.h.
// In an anonymous namespace: code compiled with wide flags must not leak into other files.
#pragma once

// g++ 12's own AVX-512 headers start "undefined" vectors by reading them.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>

namespace megamoe::cpu {
namespace {

struct Avx512 {
    using F = __m512;
    // Registers of a product: rows and panels of scores, heads and vectors of values (see attend_simd.h).
    static constexpr std::int32_t kScoreRows = 6, kScorePanels = 4;
    static constexpr std::int32_t kValueHeads = 4, kValueVectors = 4;

    // The lanes of a vector at index `at` that are below `count`.
    static __mmask16 lanes_below(std::int64_t at, std::int64_t count) {
        const std::int64_t left = count - at;
        return static_cast<__mmask16>(left >= 16 ? 0xFFFF : left <= 0 ? 0 : (1 << left) - 1);
    }

    static F zero() { return _mm512_setzero_ps(); }
    static F set1(float x) { return _mm512_set1_ps(x); }
    // The 32 bits at p, whatever they mean.
    static F broadcast(const void* p) {
        return _mm512_castsi512_ps(_mm512_set1_epi32(_mm_cvtsi128_si32(_mm_loadu_si32(p))));
    }
    static F load(const float* p) { return _mm512_loadu_ps(p); }
    static F load(const float* p, std::int64_t at, std::int64_t count) {
        return _mm512_maskz_loadu_ps(lanes_below(at, count), p + at);
    }
    static F load_bf16(const std::uint16_t* p) {
        const __m512i codes = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
        return _mm512_castsi512_ps(_mm512_slli_epi32(codes, 16));
    }
    static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
    static void store(float* p, std::int64_t at, std::int64_t count, F x) {
        _mm512_mask_storeu_ps(p + at, lanes_below(at, count), x);
    }

    static F add(F a, F b) { return _mm512_add_ps(a, b); }
    static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
    static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
    static F div(F a, F b) { return _mm512_div_ps(a, b); }
    static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
    static F min(F a, F b) { return _mm512_min_ps(a, b); }
    static F max(F a, F b) { return _mm512_max_ps(a, b); }
    static F bit_and(F a, F b) { return _mm512_and_ps(a, b); }
    static F bit_or(F a, F b) { return _mm512_or_ps(a, b); }

    // Halves, quarters, pairs: the tree of row_ops.h.
    static float sum(F x) {
        const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
        const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
    }
    static float max(F x) { return _mm512_reduce_max_ps(x); }

    // ops::round_bf16() in each lane.
    static F round_bf16(F x) {
        const __m512i bits = _mm512_castps_si512(x);
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
        const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
        rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
        return _mm512_castsi512_ps(_mm512_and_si512(rounded, _mm512_set1_epi32(static_cast<int>(0xFFFF0000U))));
    }

    // p * 2^n for whole n, with overflow to infinity and gradual underflow.
    static F scale_by_power(F p, F n) { return _mm512_scalef_ps(p, n); }
    static F round_to_integer(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

    // Row r, lane c becomes row c, lane r.
    static void transpose(F (&row)[16]) {
        F pair[16];
        F four[16];
#pragma GCC unroll 8
        for (int i = 0; i < 16; i += 2) {
            pair[i] = _mm512_unpacklo_ps(row[i], row[i + 1]);
            pair[i + 1] = _mm512_unpackhi_ps(row[i], row[i + 1]);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 16; i += 4) {
            const auto unpack = [](F a, F b, bool high) {
                const __m512d x = _mm512_castps_pd(a);
                const __m512d y = _mm512_castps_pd(b);
                return _mm512_castpd_ps(high ? _mm512_unpackhi_pd(x, y) : _mm512_unpacklo_pd(x, y));
            };
            four[i] = unpack(pair[i], pair[i + 2], false);
            four[i + 1] = unpack(pair[i], pair[i + 2], true);
            four[i + 2] = unpack(pair[i + 1], pair[i + 3], false);
            four[i + 3] = unpack(pair[i + 1], pair[i + 3], true);
        }
        // four[i + j], quarter k: lane 4k + j of rows i..i+3.
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
            const F even_low = _mm512_shuffle_f32x4(four[j], four[4 + j], 0x88);
            const F even_high = _mm512_shuffle_f32x4(four[8 + j], four[12 + j], 0x88);
            const F odd_low = _mm512_shuffle_f32x4(four[j], four[4 + j], 0xDD);
            const F odd_high = _mm512_shuffle_f32x4(four[8 + j], four[12 + j], 0xDD);
            row[j] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
            row[4 + j] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
            row[8 + j] = _mm512_shuffle_f32x4(even_low, even_high, 0xDD);
            row[12 + j] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xDD);
        }
    }
};

}  // namespace
}  // namespace megamoe::cpu
