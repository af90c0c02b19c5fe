#include "compute/cpu/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "compute/ops/formats.h"

namespace megamoe::cpu {
namespace {

TEST(Convert, EveryBitPatternAndLengthGivesTheScalarResult) {
    std::mt19937 rng(3);
    for (std::int64_t count = 0; count < 70; ++count) {
        std::vector<float> x(static_cast<std::size_t>(count));
        std::vector<std::uint16_t> codes(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(rng()));  // NaN, infinity and subnormals among them
            codes[i] = static_cast<std::uint16_t>(rng());
        }
        std::vector<std::uint16_t> got(x.size());
        std::vector<float> sum(x.size(), 0.5F);
        std::vector<float> rounded = x;

        to_bf16(detect_isa(), x.data(), count, got.data());
        add_bf16(detect_isa(), codes.data(), count, sum.data());
        round_bf16(detect_isa(), rounded.data(), count);

        for (std::size_t i = 0; i < x.size(); ++i) {
            EXPECT_EQ(got[i], ops::to_bf16(x[i]));
            EXPECT_EQ(std::bit_cast<std::uint32_t>(rounded[i]), std::bit_cast<std::uint32_t>(ops::round_bf16(x[i])));
            const float want = 0.5F + ops::from_bf16(codes[i]);
            EXPECT_TRUE(sum[i] == want || (std::isnan(sum[i]) && std::isnan(want)));
        }
    }
}

}  // namespace
}  // namespace megamoe::cpu
