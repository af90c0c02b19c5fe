// Float32 products: profile hf on every AVX-512 machine, and profile ds where vdpbf16ps is missing.
#include "compute/cpu/gemm_tile_avx512.h"

namespace megamoe::cpu {
namespace {

using ops::WeightFormat;

struct FloatCodes {
    static constexpr std::int32_t kColsAWord = 1;

    static __m512 mul_add(__m512 sum, __m512i weights, __m512 word) {
        return _mm512_fmadd_ps(word, _mm512_castsi512_ps(weights), sum);
    }

    // A lane's two bfloat16 values, even column first.
    static void split(__m512i pair, __m512i& even, __m512i& odd) {
        even = _mm512_slli_epi32(pair, 16);
        odd = _mm512_and_si512(pair, _mm512_set1_epi32(static_cast<int>(0xFFFF0000U)));
    }
};

struct F32Codes : FloatCodes {
    static constexpr std::int32_t kWords = 1;
    static void expand(__m512i codes, __m512i (&operand)[kWords]) { operand[0] = codes; }
};

struct Bf16Codes : FloatCodes {
    static constexpr std::int32_t kWords = 2;
    static void expand(__m512i codes, __m512i (&operand)[kWords]) { split(codes, operand[0], operand[1]); }
};

struct Fp8Codes : FloatCodes {
    static constexpr std::int32_t kWords = 4;

    static void expand(__m512i codes, __m512i (&operand)[kWords]) {
        const __m512i zero = _mm512_setzero_si512();
        split(to_bf16(_mm512_unpacklo_epi8(codes, zero)), operand[0], operand[1]);
        split(to_bf16(_mm512_unpackhi_epi8(codes, zero)), operand[2], operand[3]);
    }

  private:
    // A code in each 16-bit word. Exponent and mantissa move into place; exponent 0 needs 2^-9 * mantissa, a look-up.
    static __m512i to_bf16(__m512i code) {
        alignas(64) static constexpr std::uint16_t kSubnormal[32] = {0,      0x3B00, 0x3B80, 0x3BC0,
                                                                     0x3C00, 0x3C20, 0x3C40, 0x3C60};
        const __m512i magnitude = _mm512_and_si512(code, _mm512_set1_epi16(0x7F));
        __m512i value = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(120 << 7));
        const __mmask32 subnormal = _mm512_cmplt_epi16_mask(magnitude, _mm512_set1_epi16(8));
        value = _mm512_mask_permutexvar_epi16(value, subnormal, magnitude, _mm512_load_si512(kSubnormal));
        const __mmask32 nan = _mm512_cmpeq_epi16_mask(magnitude, _mm512_set1_epi16(0x7F));
        value = _mm512_mask_mov_epi16(value, nan, _mm512_set1_epi16(0x7FC0));
        return _mm512_or_si512(value, _mm512_slli_epi16(_mm512_andnot_si512(_mm512_set1_epi16(0x7F), code), 8));
    }
};

struct Fp4Codes : FloatCodes {
    static constexpr std::int32_t kWords = 8;

    // vpermps looks at the low 4 bits of an index alone: no masking.
    static void expand(__m512i codes, __m512i (&operand)[kWords]) {
        const __m512 table = _mm512_setr_ps(0, 0.5F, 1, 1.5F, 2, 3, 4, 6, -0.0F, -0.5F, -1, -1.5F, -2, -3, -4, -6);
#pragma GCC unroll 4
        for (unsigned j = 0; j < 4; ++j) {
            operand[2 * j] = _mm512_castps_si512(_mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4 * j), table));
            operand[2 * j + 1] =
                _mm512_castps_si512(_mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4 * j + 16), table));
        }
    }
};

void pack_row(const float* a, std::int32_t cols, std::int32_t padded_cols, bool round, std::int64_t block_bytes,
              std::byte* out) {
    for (std::int32_t c = 0; c < padded_cols; c += kLanes) {
        const __m512 x = _mm512_maskz_loadu_ps(Avx512::lanes_below(c, cols), a + c);
        _mm512_storeu_ps(out + c / kBlockCols * block_bytes + c % kBlockCols * 4, round ? Avx512::round_bf16(x) : x);
    }
}

}  // namespace

const GemmKernels kGemmAvx512{
    .needs = Isa::kAvx512,
    .plain = WeightFormat::kF32,
    .straight_rows = kStraightRows,
    .pack_row = pack_row,
    .decode = {nullptr, decode<Bf16Codes>, decode<Fp8Codes>, decode<Fp4Codes>},
    .tile = {tile<F32Codes, kTileRows>, tile<Bf16Codes, kStraightRows>, tile<Fp8Codes, kStraightRows>,
             tile<Fp4Codes, kStraightRows>},
    .tile_decoded = tile<F32Codes, kTileRows, /*kFromMemory=*/false>,
    .store = store,
};

}  // namespace megamoe::cpu
