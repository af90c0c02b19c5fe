#include "compute/ops/rope.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

namespace megamoe::ops {
namespace {

ModelGeometry released() {
    ModelGeometry g;
    g.rope_dim = 64;
    g.rope_theta = 10000;
    g.compress_rope_theta = 160000;
    g.yarn = {.factor = 16, .original_max_position = 65536, .beta_fast = 32, .beta_slow = 1};
    return g;
}

// Check values of the model spec, 3.1, printed with seven digits.
TEST(RopeFrequencies, MatchThePublishedCheckValues) {
    const auto main = rope_frequencies(released(), RopeKind::kMain);
    const auto compress = rope_frequencies(released(), RopeKind::kCompress);
    const std::array<std::pair<int, double>, 4> main_values{{{0, 1}, {1, 7.498942e-01}, {8, 0.1}, {31, 1.333521e-04}}};
    const std::array<std::pair<int, double>, 9> compress_values{{{0, 1},
                                                                 {1, 6.876560e-01},
                                                                 {8, 5.000000e-02},
                                                                 {15, 3.635539e-03},
                                                                 {16, 2.265625e-03},
                                                                 {20, 2.969778e-04},
                                                                 {24, 1.953125e-05},
                                                                 {25, 5.372313e-06},
                                                                 {31, 5.680529e-07}}};

    for (const auto& [i, want] : main_values) {
        EXPECT_NEAR(main[static_cast<std::size_t>(i)] / want, 1, 5e-7) << i;
    }
    for (const auto& [i, want] : compress_values) {
        EXPECT_NEAR(compress[static_cast<std::size_t>(i)] / want, 1, 5e-7) << i;
    }
}

TEST(Rotate, InverseUndoesTheRotationAndLeavesPlainChannelsAlone) {
    const auto frequencies = rope_frequencies(released(), RopeKind::kCompress);
    std::vector<float> angles(64);
    std::mt19937 rng(1);
    std::vector<float> head(96);
    for (float& v : head) {
        v = static_cast<float>(rng()) / 4e9F - 0.5F;
    }
    const auto before = head;

    rope_angles(frequencies, 12345, angles);
    rotate(head, angles, false, false);
    EXPECT_NE(head, before);
    EXPECT_TRUE(std::equal(head.begin(), head.begin() + 32, before.begin()));
    rotate(head, angles, true, false);

    for (std::size_t i = 0; i < head.size(); ++i) {
        EXPECT_NEAR(head[i], before[i], 2e-6F);  // two float32 rotations
    }
}

TEST(Rotate, RotatesInterleavedPairs) {
    std::vector<float> head{1, 0, 0, 1};
    const float c = std::cos(1.0F);
    const float s = std::sin(1.0F);

    rotate(head, std::array{c, s, 1.0F, 0.0F}, false, false);

    EXPECT_EQ(head, (std::vector<float>{c, s, 0, 1}));
}

TEST(Hadamard, TwiceIsTheIdentity) {
    std::vector<float> x(64);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
    }
    const auto before = x;

    hadamard_bf16(x);
    hadamard_bf16(x);

    for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(x[i], before[i], 0.06F);  // two bfloat16 roundings of values up to 12 in the middle
    }
}

TEST(Hadamard, FirstAndSecondBasisVectorGiveTheSylvesterRows) {
    std::vector<float> x{0, 1, 0, 0};

    hadamard_bf16(x);

    EXPECT_EQ(x, (std::vector<float>{0.5F, -0.5F, 0.5F, -0.5F}));
}

}  // namespace
}  // namespace megamoe::ops
