// Float32 products in two 8-lane halves: the same operations in the same order as the 512-bit kernels.
#include "compute/cpu/gemm_kernels.h"
#include "compute/cpu/vec_avx2.h"

namespace megamoe::cpu {
namespace {

using ops::WeightFormat;

constexpr std::int32_t kHalf = 8;
constexpr std::int32_t kVectorBytes = 64;
constexpr std::int32_t kOutStride = kTilePanels * kVectorBytes;

__m256i load_half(const std::byte* vector, std::int32_t half) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(vector) + half);
}

void store_half(std::byte* vector, std::int32_t half, __m256i value) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(vector) + half, value);
}

void decode_bf16(const std::byte* codes, std::int64_t stride, std::int32_t cols, std::byte* out) {
    for (std::int32_t c = 0; c < cols; c += 2, codes += stride, out += 2 * kOutStride) {
        for (std::int32_t half = 0; half < 2; ++half) {
            const __m256i pair = load_half(codes, half);
            store_half(out, half, _mm256_slli_epi32(pair, 16));
            store_half(out + kOutStride, half,
                       _mm256_and_si256(pair, _mm256_set1_epi32(static_cast<int>(0xFFFF0000U))));
        }
    }
}

// An e4m3 code in each lane. Exponent and mantissa move into place, but for exponent 0 (2^-9 * mantissa) and NaN.
__m256i from_e4m3(__m256i code) {
    const __m256i magnitude = _mm256_and_si256(code, _mm256_set1_epi32(0x7F));
    const __m256i normal = _mm256_add_epi32(_mm256_slli_epi32(magnitude, 20), _mm256_set1_epi32(120 << 23));
    const __m256 subnormal = _mm256_mul_ps(_mm256_cvtepi32_ps(magnitude), _mm256_set1_ps(0x1p-9F));
    const __m256i is_subnormal = _mm256_cmpgt_epi32(_mm256_set1_epi32(8), magnitude);
    const __m256i is_nan = _mm256_cmpeq_epi32(magnitude, _mm256_set1_epi32(0x7F));
    __m256i value = _mm256_blendv_epi8(normal, _mm256_castps_si256(subnormal), is_subnormal);
    value = _mm256_blendv_epi8(value, _mm256_set1_epi32(0x7FC00000), is_nan);
    return _mm256_or_si256(value, _mm256_slli_epi32(_mm256_andnot_si256(_mm256_set1_epi32(0x7F), code), 24));
}

void decode_fp8(const std::byte* codes, std::int64_t stride, std::int32_t cols, std::byte* out) {
    constexpr char kNone = -1;
    const __m128i first =
        _mm_setr_epi8(0, kNone, kNone, kNone, 2, kNone, kNone, kNone, 4, kNone, kNone, kNone, 6, kNone, kNone, kNone);
    const __m256i column0 = _mm256_broadcastsi128_si256(first);
    // Byte offsets of the columns in a quarter; kNone stays negative.
    constexpr int kOffset[4] = {0, 1, 8, 9};
    for (std::int32_t c = 0; c < cols; c += 4, codes += stride, out += 4 * kOutStride) {
        for (std::int32_t half = 0; half < 2; ++half) {
            const __m256i bytes = load_half(codes, half);
            for (std::int32_t k = 0; k < 4; ++k) {
                const __m256i pick = _mm256_add_epi8(column0, _mm256_set1_epi32(kOffset[k]));
                store_half(out + k * kOutStride, half, from_e4m3(_mm256_shuffle_epi8(bytes, pick)));
            }
        }
    }
}

void decode_fp4(const std::byte* codes, std::int64_t stride, std::int32_t cols, std::byte* out) {
    const __m256 table = _mm256_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6);  // vpermps looks at 3 bits of an index
    const __m256i sign = _mm256_set1_epi32(static_cast<int>(0x80000000U));
    for (std::int32_t c = 0; c < cols; c += 8, codes += stride, out += 8 * kOutStride) {
        for (std::int32_t half = 0; half < 2; ++half) {
            const __m256i nibbles = load_half(codes, half);
            for (std::int32_t k = 0; k < 8; ++k) {
                const int shift = k / 2 * 4 + k % 2 * 16;
                const __m256i code = _mm256_srl_epi32(nibbles, _mm_cvtsi32_si128(shift));
                const __m256i magnitude = _mm256_castps_si256(_mm256_permutevar8x32_ps(table, code));
                const __m256i negative = _mm256_and_si256(_mm256_slli_epi32(code, 28), sign);
                store_half(out + k * kOutStride, half, _mm256_or_si256(magnitude, negative));
            }
        }
    }
}

// See load_scales() of the 512-bit kernels.
__m256 load_scales(const std::byte* scales, std::int32_t half, bool f32) {
    if (f32) {
        return _mm256_loadu_ps(reinterpret_cast<const float*>(scales) + half * kHalf);
    }
    const __m256i code = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales + half * kHalf)));
    const __m256i bits = _mm256_max_epu32(_mm256_slli_epi32(code, 23), _mm256_set1_epi32(0x00400000));
    const __m256i nan = _mm256_cmpeq_epi32(code, _mm256_set1_epi32(255));
    return _mm256_castsi256_ps(_mm256_blendv_epi8(bits, _mm256_set1_epi32(0x7FC00000), nan));
}

// One panel at a time: 6 rows of two halves are 12 of the 16 registers.
template <std::int32_t kRows>
void tile_panel(const Tile& t, std::int32_t p) {
    const bool grouped = t.group_cols != 0;
    const std::int32_t step = grouped ? t.group_cols : kBlockCols;
    const std::byte* codes = t.codes[p];
    const std::byte* scales = t.scales[p];
    for (std::int32_t begin = 0; begin < t.cols; begin += step, scales += t.scale_stride) {
        const std::byte* block = t.a + begin / kBlockCols * t.a_block_bytes;
        const float* a = reinterpret_cast<const float*>(block) + begin % kBlockCols;
        const std::int32_t cols = t.cols - begin < step ? t.cols - begin : step;
        __m256 sum[kRows][2];
#pragma GCC unroll 6
        for (std::int32_t r = 0; r < kRows; ++r) {
            const float* acc = t.acc + r * kTileWidth + p * 16;
            sum[r][0] = grouped ? _mm256_setzero_ps() : _mm256_load_ps(acc);
            sum[r][1] = grouped ? _mm256_setzero_ps() : _mm256_load_ps(acc + kHalf);
        }
        for (std::int32_t c = 0; c < cols; ++c, codes += t.code_stride) {
            const __m256 low = _mm256_castsi256_ps(load_half(codes, 0));
            const __m256 high = _mm256_castsi256_ps(load_half(codes, 1));
#pragma GCC unroll 6
            for (std::int32_t r = 0; r < kRows; ++r) {
                const __m256 value = _mm256_broadcast_ss(a + r * kBlockCols + c);
                sum[r][0] = _mm256_fmadd_ps(value, low, sum[r][0]);
                sum[r][1] = _mm256_fmadd_ps(value, high, sum[r][1]);
            }
        }
#pragma GCC unroll 2
        for (std::int32_t half = 0; half < 2; ++half) {
            const __m256 scale = grouped ? load_scales(scales, half, t.f32_scales) : _mm256_setzero_ps();
#pragma GCC unroll 6
            for (std::int32_t r = 0; r < kRows; ++r) {
                float* acc = t.acc + r * kTileWidth + p * 16 + half * kHalf;
                _mm256_store_ps(acc,
                                grouped ? _mm256_fmadd_ps(sum[r][half], scale, _mm256_load_ps(acc)) : sum[r][half]);
            }
        }
    }
}

template <std::int32_t kMaxRows>
void tile_of(const Tile& t) {
    if constexpr (kMaxRows > 1) {
        if (t.rows < kMaxRows) {
            return tile_of<kMaxRows - 1>(t);
        }
    }
    for (std::int32_t p = 0; p < kTilePanels; ++p) {
        tile_panel<kMaxRows>(t, p);
    }
}

void pack_row(const float* a, std::int32_t cols, std::int32_t padded_cols, bool round, std::int64_t block_bytes,
              std::byte* out) {
    for (std::int32_t c = 0; c < padded_cols; c += kHalf) {
        const __m256 x = _mm256_maskload_ps(a + c, Avx2::lanes_below(c, cols));
        float* to = reinterpret_cast<float*>(out + c / kBlockCols * block_bytes) + c % kBlockCols;
        _mm256_storeu_ps(to, round ? Avx2::round_bf16(x) : x);
    }
}

void store(const float* acc, std::int32_t n, bool round, float* out) {
    for (std::int32_t i = 0; i < n; i += kHalf) {
        const __m256 sums = _mm256_load_ps(acc + i);
        _mm256_maskstore_ps(out + i, Avx2::lanes_below(i, n), round ? Avx2::round_bf16(sums) : sums);
    }
}

}  // namespace

const GemmKernels kGemmAvx2{
    .needs = Isa::kAvx2,
    .plain = WeightFormat::kF32,
    .straight_rows = 0,
    .pack_row = pack_row,
    .decode = {nullptr, decode_bf16, decode_fp8, decode_fp4},
    .tile = {tile_of<kTileRows>, nullptr, nullptr, nullptr},
    .tile_decoded = tile_of<kTileRows>,
    .store = store,
};

}  // namespace megamoe::cpu
