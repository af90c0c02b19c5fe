#include "compute/ops/hyper.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <vector>

namespace megamoe::ops {
namespace {

// Check example of the model spec, 3.3.
TEST(HyperCoefficients, MatchThePublishedExample) {
    const HyperShape shape{.num_streams = 2, .iters = 20, .eps = 1e-6F};
    const std::array mix{0.5F, -1.0F, 0.25F, 2.0F, 1.0F, 0.0F, -1.0F, 3.0F};
    const std::array scale{1.0F, 0.5F, 2.0F};
    const std::array base{0.1F, -0.2F, 0.0F, 0.3F, 0.5F, 0.0F, 0.0F, -0.5F};
    std::array<float, 2> pre{};
    std::array<float, 2> post{};
    std::array<float, 4> comb{};

    hyper_coefficients(shape, mix, scale, base, pre, post, comb);

    const std::array want_pre{0.6456573F, 0.2314762F};
    const std::array want_post{1.0624187F, 1.5716700F};
    const std::array want_comb{0.9977632F, 0.0198938F, 0.0022358F, 0.9801053F};
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_NEAR(pre[i], want_pre[i], 2e-7F);
        EXPECT_NEAR(post[i], want_post[i], 3e-7F);
    }
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(comb[i], want_comb[i], 3e-7F);
    }
}

TEST(HyperCoefficients, ColumnsSumToOneForAnyInput) {
    EXPECT_TRUE(rc::check("the last operation is a column step", [] {
        const auto n = *rc::gen::inRange<std::size_t>(1, 6);
        const auto value = rc::gen::map(rc::gen::inRange(-400, 400), [](int v) { return static_cast<float>(v) / 50; });
        const auto mix = *rc::gen::container<std::vector<float>>((2 + n) * n, value);
        const std::vector<float> base((2 + n) * n, 0.1F);
        std::vector<float> pre(n);
        std::vector<float> post(n);
        std::vector<float> comb(n * n);

        hyper_coefficients({static_cast<std::int32_t>(n), 20, 1e-6F}, mix, std::array{1.0F, 1.0F, 1.0F}, base, pre,
                           post, comb);

        for (std::size_t k = 0; k < n; ++k) {
            float sum = 0;
            for (std::size_t j = 0; j < n; ++j) {
                sum += comb[j * n + k];
            }
            RC_ASSERT(std::abs(sum - 1) < 1e-4F);
            RC_ASSERT(post[k] >= 0 && post[k] <= 2);
        }
    }));
}

}  // namespace
}  // namespace megamoe::ops
