#include "weights/synth_encode.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "compute/ops/formats.h"

namespace megamoe::weights {
namespace {

constexpr std::int64_t kBlock = 128;
constexpr std::int64_t kGroup = 32;
constexpr float kSmallest = 0x1p-100F;  // a block of zeros gets a valid scale too

std::byte e8m0_code(float power_of_two) {
    return static_cast<std::byte>(std::bit_cast<std::uint32_t>(power_of_two) >> 23);
}

}  // namespace

void encode_fp8(std::span<const float> rows, std::int64_t cols, std::vector<std::byte>& codes,
                std::vector<std::byte>& scales) {
    const std::int64_t num_rows = static_cast<std::int64_t>(rows.size()) / cols;
    MM_CHECK(num_rows <= kBlock, "more rows than a block has", num_rows);
    std::vector<float> inverse(static_cast<std::size_t>((cols + kBlock - 1) / kBlock));
    for (std::size_t b = 0; b < inverse.size(); ++b) {
        const std::int64_t first = static_cast<std::int64_t>(b) * kBlock;
        float largest = kSmallest;
        for (std::int64_t r = 0; r < num_rows; ++r) {
            for (std::int64_t c = first; c < std::min(first + kBlock, cols); ++c) {
                largest = std::max(largest, std::abs(rows[static_cast<std::size_t>(r * cols + c)]));
            }
        }
        const float scale = ops::pow2_ceil(largest / 448.0F);
        scales.push_back(e8m0_code(scale));
        inverse[b] = 1.0F / scale;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto block = static_cast<std::size_t>(static_cast<std::int64_t>(i) % cols / kBlock);
        codes.push_back(static_cast<std::byte>(ops::to_e4m3(rows[i] * inverse[block])));
    }
}

void encode_fp4(std::span<const float> rows, std::int64_t cols, std::vector<std::byte>& codes,
                std::vector<std::byte>& scales) {
    MM_CHECK(cols % kGroup == 0, "columns no multiple of a group", cols);
    for (std::size_t first = 0; first < rows.size(); first += kGroup) {
        const std::span<const float> group = rows.subspan(first, kGroup);
        float largest = kSmallest;
        for (const float x : group) {
            largest = std::max(largest, std::abs(x));
        }
        const float scale = ops::pow2_ceil(largest / 6.0F);
        scales.push_back(e8m0_code(scale));
        const float inverse = 1.0F / scale;
        for (std::size_t i = 0; i < kGroup; i += 2) {  // the even column is in the low nibble
            codes.push_back(
                static_cast<std::byte>(ops::to_e2m1(group[i] * inverse) | ops::to_e2m1(group[i + 1] * inverse) << 4));
        }
    }
}

void encode_bf16(std::span<const float> values, std::vector<std::byte>& codes) {
    for (const float x : values) {
        const std::uint16_t code = ops::to_bf16(x);
        codes.push_back(static_cast<std::byte>(code & 0xFF));
        codes.push_back(static_cast<std::byte>(code >> 8));
    }
}

}  // namespace megamoe::weights
