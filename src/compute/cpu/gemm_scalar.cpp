// The plain form of the matrix product, and the definition of its order of operations.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "compute/cpu/gemm_kernels.h"
#include "compute/ops/formats.h"

namespace megamoe::cpu {
namespace {

constexpr std::int32_t kLanes = 16;

template <class T>
T load(const std::byte* p, std::int64_t index) {
    T value;
    std::memcpy(&value, p + index * static_cast<std::int64_t>(sizeof(T)), sizeof value);
    return value;
}

void pack_row(const float* a, std::int32_t cols, std::int32_t padded_cols, bool round, std::int64_t block_bytes,
              std::byte* out) {
    for (std::int32_t begin = 0; begin < padded_cols; begin += kBlockCols, out += block_bytes) {
        const std::int32_t end = std::min(padded_cols, begin + kBlockCols);
        for (std::int32_t c = begin; c < end; ++c) {
            const float value = c >= cols ? 0.0F : round ? ops::round_bf16(a[c]) : a[c];
            std::memcpy(out + (c - begin) * 4, &value, 4);
        }
    }
}

// Decodes by `element(lane, col)` to the kF32 layout.
template <class Element>
void decode(std::int32_t cols, std::byte* out, Element element) {
    for (std::int32_t c = 0; c < cols; ++c, out += (kTilePanels - 1) * kLanes * 4) {
        for (std::int32_t lane = 0; lane < kLanes; ++lane, out += 4) {
            const float value = element(lane, c);
            std::memcpy(out, &value, 4);
        }
    }
}

void decode_bf16(const std::byte* codes, std::int64_t stride, std::int32_t cols, std::byte* out) {
    decode(cols, out, [=](std::int32_t lane, std::int32_t c) {
        return ops::from_bf16(load<std::uint16_t>(codes + c / 2 * stride, lane * 2 + c % 2));
    });
}

void decode_fp8(const std::byte* codes, std::int64_t stride, std::int32_t cols, std::byte* out) {
    decode(cols, out, [=](std::int32_t lane, std::int32_t c) {
        const std::int32_t in_quarter = c % 4 / 2 * 8 + lane % 4 * 2 + c % 2;
        return ops::from_e4m3(load<std::uint8_t>(codes + c / 4 * stride, lane / 4 * 16 + in_quarter));
    });
}

void decode_fp4(const std::byte* codes, std::int64_t stride, std::int32_t cols, std::byte* out) {
    decode(cols, out, [=](std::int32_t lane, std::int32_t c) {
        const auto word = load<std::uint32_t>(codes + c / 8 * stride, lane);
        return ops::from_e2m1(static_cast<std::uint8_t>(word >> (c % 8 / 2 * 4 + c % 2 * 16) & 15U));
    });
}

float scale_at(const Tile& t, std::int32_t panel, std::int64_t group, std::int32_t lane) {
    const std::byte* scales = t.scales[panel] + group * t.scale_stride;
    return t.f32_scales ? load<float>(scales, lane) : ops::from_e8m0(load<std::uint8_t>(scales, lane));
}

// One output: row r of `a` times lane `lane` of a panel.
void dot(const Tile& t, std::int32_t r, std::int32_t panel, std::int32_t lane) {
    float& acc = t.acc[r * kTileWidth + panel * kLanes + lane];
    const std::int32_t step = t.group_cols == 0 ? t.cols : t.group_cols;
    for (std::int32_t begin = 0; begin < t.cols; begin += step) {
        float sum = t.group_cols == 0 ? acc : 0.0F;
        for (std::int32_t c = begin; c < std::min(t.cols, begin + step); ++c) {
            const std::byte* a = t.a + c / kBlockCols * t.a_block_bytes;
            sum = std::fma(load<float>(a, r * kBlockCols + c % kBlockCols),
                           load<float>(t.codes[panel] + c * t.code_stride, lane), sum);
        }
        acc = t.group_cols == 0 ? sum : std::fma(sum, scale_at(t, panel, begin / step, lane), acc);
    }
}

void tile_f32(const Tile& t) {
    for (std::int32_t r = 0; r < t.rows; ++r) {
        for (std::int32_t panel = 0; panel < kTilePanels; ++panel) {
            for (std::int32_t lane = 0; lane < kLanes; ++lane) {
                dot(t, r, panel, lane);
            }
        }
    }
}

void store(const float* acc, std::int32_t n, bool round, float* out) {
    for (std::int32_t i = 0; i < n; ++i) {
        out[i] = round ? ops::round_bf16(acc[i]) : acc[i];
    }
}

}  // namespace

const GemmKernels kGemmScalar{
    .needs = Isa::kScalar,
    .plain = ops::WeightFormat::kF32,
    .straight_rows = 0,
    .pack_row = pack_row,
    .decode = {nullptr, decode_bf16, decode_fp8, decode_fp4},
    .tile = {tile_f32, nullptr, nullptr, nullptr},
    .tile_decoded = tile_f32,
    .store = store,
};

}  // namespace megamoe::cpu
