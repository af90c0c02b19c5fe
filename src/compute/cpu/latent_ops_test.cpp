#include "compute/cpu/latent_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace megamoe::cpu {
namespace {

std::vector<float> random_values(std::size_t count, std::uint32_t seed, float scale) {
    std::mt19937 rng(seed);
    std::vector<float> out(count);
    for (float& v : out) {
        v = (static_cast<float>(rng()) / 2147483648.0F - 1) * scale;
    }
    return out;
}

TEST(LatentOps, RotationHasTheBitsOfTheReference) {
    for (const std::int32_t rope : {2, 16, 48, 64}) {
        for (const bool inverse : {false, true}) {
            for (const bool rounded : {false, true}) {
                const auto angles = random_values(static_cast<std::size_t>(rope), 1, 1);
                auto got = random_values(3 * 80, 2, 4);
                auto want = got;

                rotate_heads(detect_isa(), got.data(), 3, 80, angles, inverse, rounded);
                rotate_heads(Isa::kScalar, want.data(), 3, 80, angles, inverse, rounded);

                EXPECT_EQ(got, want) << rope << inverse << rounded;
            }
        }
    }
}

TEST(LatentOps, HadamardAndFp4HaveTheBitsOfTheReference) {
    for (const std::size_t n : {2U, 16U, 32U, 64U, 128U}) {
        for (std::uint32_t seed = 0; seed < 200; ++seed) {
            const float scale = std::ldexp(1.0F, static_cast<int>(seed % 40) - 20);
            auto got = random_values(n, seed, seed == 7 ? 0.0F : scale);  // all zeros once
            auto want = got;

            hadamard_fp4(detect_isa(), got);
            hadamard_fp4(Isa::kScalar, want);

            for (std::size_t i = 0; i < n; ++i) {
                ASSERT_EQ(got[i], want[i]) << n << " values, seed " << seed << ", at " << i;
            }
        }
    }
}

}  // namespace
}  // namespace megamoe::cpu
