// Products of bfloat16 pairs with vdpbf16ps. FP8 and FP4 codes become bfloat16 by table look-up, without loss.
#include "compute/cpu/gemm_tile_avx512.h"

namespace megamoe::cpu {
namespace {

using ops::WeightFormat;

struct PairCodes {
    static constexpr std::int32_t kColsAWord = 2;

    static __m512 mul_add(__m512 sum, __m512i weights, __m512 pair) {
        return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(weights), reinterpret_cast<__m512bh>(pair));
    }
};

struct Bf16Codes : PairCodes {
    static constexpr std::int32_t kWords = 1;
    static void expand(__m512i codes, __m512i (&operand)[kWords]) { operand[0] = codes; }
};

// High byte and low byte of the bfloat16 of each positive e4m3 code; bit 7 of the code is the sign.
struct E4m3Tables {
    alignas(64) std::uint8_t high[128];
    alignas(64) std::uint8_t low[128];
};

constexpr E4m3Tables make_e4m3_tables() {
    E4m3Tables t{};
    for (unsigned code = 0; code < 128; ++code) {
        unsigned exponent = code >> 3;
        unsigned mantissa = code & 7U;
        unsigned bits = 0;
        if (code == 127) {
            bits = 0x7FC0;
        } else if (exponent != 0) {
            bits = (exponent + 120U) << 7 | mantissa << 4;
        } else if (mantissa != 0) {
            for (exponent = 1; (mantissa & 8U) == 0; --exponent) {
                mantissa <<= 1;
            }
            bits = (exponent + 120U) << 7 | (mantissa & 7U) << 4;
        }
        t.high[code] = static_cast<std::uint8_t>(bits >> 8);
        t.low[code] = static_cast<std::uint8_t>(bits);
    }
    return t;
}

constexpr E4m3Tables kE4m3 = make_e4m3_tables();

struct Fp8Codes : PairCodes {
    static constexpr std::int32_t kWords = 2;

    static void expand(__m512i codes, __m512i (&operand)[kWords]) {
        const auto table = [](const std::uint8_t* half) { return _mm512_load_si512(half); };
        const __m512i magnitude = _mm512_permutex2var_epi8(table(kE4m3.high), codes, table(kE4m3.high + 64));
        const __m512i low = _mm512_permutex2var_epi8(table(kE4m3.low), codes, table(kE4m3.low + 64));
        constexpr int kOrAnd = 0xF8;  // a | (b & c)
        const __m512i high = _mm512_ternarylogic_epi32(magnitude, codes, _mm512_set1_epi8(-128), kOrAnd);
        operand[0] = _mm512_unpacklo_epi8(low, high);
        operand[1] = _mm512_unpackhi_epi8(low, high);
    }
};

// The bfloat16 of each e2m1 code, twice: vpermw looks at 5 bits of an index, of which the uppermost is a neighbour's.
alignas(64) constexpr std::uint16_t kE2m1[32] = {0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0,
                                                 0x8000, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0,
                                                 0x0000, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0,
                                                 0x8000, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0};

struct Fp4Codes : PairCodes {
    static constexpr std::int32_t kWords = 4;

    static void expand(__m512i codes, __m512i (&operand)[kWords]) {
        const __m512i table = _mm512_load_si512(kE2m1);
        operand[0] = _mm512_permutexvar_epi16(codes, table);
        operand[1] = _mm512_permutexvar_epi16(_mm512_srli_epi32(codes, 4), table);
        operand[2] = _mm512_permutexvar_epi16(_mm512_srli_epi32(codes, 8), table);
        operand[3] = _mm512_permutexvar_epi16(_mm512_srli_epi32(codes, 12), table);
    }
};

void pack_row(const float* a, std::int32_t cols, std::int32_t padded_cols, bool /*round_bf16*/,
              std::int64_t block_bytes, std::byte* out) {
    for (std::int32_t c = 0; c < padded_cols; c += 32) {
        const __m512 low = _mm512_maskz_loadu_ps(Avx512::lanes_below(c, cols), a + c);
        const __m512 high = _mm512_maskz_loadu_ps(Avx512::lanes_below(c + kLanes, cols), a + c + kLanes);
        const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
        _mm512_storeu_si512(out + c / kBlockCols * block_bytes + c % kBlockCols * 2, reinterpret_cast<__m512i>(both));
    }
}

}  // namespace

const GemmKernels kGemmAvx512Bf16{
    .needs = Isa::kAvx512Bf16,
    .plain = WeightFormat::kBf16,
    .straight_rows = kStraightRows,
    .pack_row = pack_row,
    .decode = {nullptr, nullptr, decode<Fp8Codes>, decode<Fp4Codes>},
    .tile = {nullptr, tile<Bf16Codes, kTileRows>, tile<Fp8Codes, kStraightRows>, tile<Fp4Codes, kStraightRows>},
    .tile_decoded = tile<Bf16Codes, kTileRows, /*kFromMemory=*/false>,
    .store = store,
};

}  // namespace megamoe::cpu
