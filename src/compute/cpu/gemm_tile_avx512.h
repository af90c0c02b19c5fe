// The loop nest of the matrix product for 512-bit registers, shared by gemm_avx512.cpp and gemm_avx512bf16.cpp.
// Everything is in an anonymous namespace: code compiled with wide flags must not leak into other files.
#pragma once

#include "compute/cpu/gemm_kernels.h"
#include "compute/cpu/vec_avx512.h"

namespace megamoe::cpu {
namespace {

constexpr std::int32_t kLanes = 16;
constexpr std::int32_t kVectorBytes = 64;
constexpr std::int32_t kStraightRows = 4;  // more would leave no registers for decoding
constexpr std::int64_t kPrefetchAhead = 8192;

// 16 scales; the bits of a UE8M0 byte are a float32's exponent, but for 0 (2^-127, subnormal) and 255 (NaN).
inline __m512 load_scales(const std::byte* scales, bool f32) {
    if (f32) {
        return _mm512_loadu_ps(scales);
    }
    const __m512i code = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales)));
    const __m512i bits = _mm512_max_epu32(_mm512_slli_epi32(code, 23), _mm512_set1_epi32(0x00400000));
    const __mmask16 nan = _mm512_cmpeq_epi32_mask(code, _mm512_set1_epi32(255));
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(bits, nan, _mm512_set1_epi32(0x7FC00000)));
}

// `Codes` says how a vector of codes becomes operands. `a` is read in 32-bit words, a word for kColsAWord columns:
//   kWords         words of `a` that a vector of codes meets
//   expand         vector of codes -> the operand of each word
//   mul_add        sum + operand * word
//
// The order of operations of one output is that of gemm_kernels.h for every kRows.
template <class Codes, std::int32_t kRows, bool kFromMemory>
void tile_of(const Tile& t) {
    constexpr std::int32_t kColsAVector = Codes::kWords * Codes::kColsAWord;
    constexpr std::int32_t kRowWords = kBlockCols / Codes::kColsAWord;
    const bool grouped = t.group_cols != 0;
    const std::int32_t step = grouped ? t.group_cols : kBlockCols;
    std::int64_t at = 0;  // of the next vector of each panel
    std::int64_t scales_at = 0;
    for (std::int32_t begin = 0; begin < t.cols; begin += step, scales_at += t.scale_stride) {
        const std::byte* block = t.a + begin / kBlockCols * t.a_block_bytes;
        const float* a = reinterpret_cast<const float*>(block) + begin % kBlockCols / Codes::kColsAWord;
        const std::int32_t cols = t.cols - begin < step ? t.cols - begin : step;
        __m512 sum[kRows][kTilePanels];
#pragma GCC unroll 6
        for (std::int32_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
            for (std::int32_t p = 0; p < kTilePanels; ++p) {
                sum[r][p] = grouped ? _mm512_setzero_ps() : _mm512_load_ps(t.acc + r * kTileWidth + p * 16);
            }
        }
        for (std::int32_t c = 0; c < cols; c += kColsAVector, at += t.code_stride, a += Codes::kWords) {
            __m512i operand[kTilePanels][Codes::kWords];
#pragma GCC unroll 4
            for (std::int32_t p = 0; p < kTilePanels; ++p) {
                if constexpr (kFromMemory) {
                    _mm_prefetch(reinterpret_cast<const char*>(t.codes[p] + at + kPrefetchAhead), _MM_HINT_T0);
                }
                Codes::expand(_mm512_load_si512(t.codes[p] + at), operand[p]);
            }
#pragma GCC unroll 8
            for (std::int32_t word = 0; word < Codes::kWords; ++word) {
#pragma GCC unroll 6
                for (std::int32_t r = 0; r < kRows; ++r) {
                    const __m512 pair = _mm512_set1_ps(a[r * kRowWords + word]);
#pragma GCC unroll 4
                    for (std::int32_t p = 0; p < kTilePanels; ++p) {
                        sum[r][p] = Codes::mul_add(sum[r][p], operand[p][word], pair);
                    }
                }
            }
        }
#pragma GCC unroll 4
        for (std::int32_t p = 0; p < kTilePanels; ++p) {
            const __m512 scale = grouped ? load_scales(t.scales[p] + scales_at, t.f32_scales) : _mm512_setzero_ps();
#pragma GCC unroll 6
            for (std::int32_t r = 0; r < kRows; ++r) {
                float* acc = t.acc + r * kTileWidth + p * 16;
                _mm512_store_ps(acc, grouped ? _mm512_fmadd_ps(sum[r][p], scale, _mm512_load_ps(acc)) : sum[r][p]);
            }
        }
    }
}

// Instantiated for 1..kMaxRows rows. kFromMemory: fetch codes ahead; else they were decoded to L1.
template <class Codes, std::int32_t kMaxRows, bool kFromMemory = true>
void tile(const Tile& t) {
    if constexpr (kMaxRows > 1) {
        if (t.rows < kMaxRows) {
            return tile<Codes, kMaxRows - 1, kFromMemory>(t);
        }
    }
    tile_of<Codes, kMaxRows, kFromMemory>(t);
}

// Expands a panel to the plain format: each operand becomes a vector. Meanwhile the next chunk of the panel, as large
// as this one, comes closer: it arrives while tiles read this one.
template <class Codes>
void decode(const std::byte* codes, std::int64_t code_stride, std::int32_t cols, std::byte* out) {
    constexpr std::int32_t kColsAVector = Codes::kWords * Codes::kColsAWord;
    const std::int64_t ahead = cols / kColsAVector * code_stride;
    for (std::int32_t c = 0; c < cols; c += kColsAVector, codes += code_stride) {
        __m512i operand[Codes::kWords];
        _mm_prefetch(reinterpret_cast<const char*>(codes + ahead), _MM_HINT_T0);
        Codes::expand(_mm512_load_si512(codes), operand);
#pragma GCC unroll 8
        for (std::int32_t word = 0; word < Codes::kWords; ++word, out += kTilePanels * kVectorBytes) {
            _mm512_store_si512(out, operand[word]);
        }
    }
}

inline void store(const float* acc, std::int32_t n, bool round, float* out) {
    for (std::int32_t i = 0; i < n; i += kLanes) {
        const __m512 sums = _mm512_load_ps(acc + i);
        _mm512_mask_storeu_ps(out + i, Avx512::lanes_below(i, n), round ? Avx512::round_bf16(sums) : sums);
    }
}

}  // namespace
}  // namespace megamoe::cpu
