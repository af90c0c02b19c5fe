#include "compute/ops/route.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace megamoe::ops {
namespace {

// Check values of the model spec, 3.1.
TEST(SqrtSoftplus, MatchesThePublishedCheckValuesAtBothEnds) {
    const std::array<std::pair<float, double>, 6> values{
        {{-20, 4.539993e-05}, {-5, 0.08194723}, {0, 0.83255461}, {1, 1.14597630}, {5, 2.23756907}, {21, 4.58257569}}};
    for (const auto& [z, want] : values) {
        EXPECT_NEAR(sqrt_softplus(z) / want, 1, 1e-6) << z;
    }
    EXPECT_GT(sqrt_softplus(-80), 0);
    EXPECT_FLOAT_EQ(sqrt_softplus(400), 20);
}

TEST(SelectExperts, BiasMovesTheChoiceButNotTheWeight) {
    const std::array score{3.0F, 1.0F, 2.0F};
    const std::array bias{0.0F, 5.0F, 0.0F};
    std::array<std::int32_t, 2> id{};
    std::array<float, 2> weight{};

    select_experts(score, bias, id);
    mixing_weights(score, id, 0, 1, weight);

    EXPECT_EQ(id, (std::array{1, 0}));  // biased: 3, 6, 2
    EXPECT_FLOAT_EQ(weight[0], 0.25F);  // 1 / (1 + 3), from the unbiased scores
    EXPECT_FLOAT_EQ(weight[1], 0.75F);
}

TEST(SelectExperts, EqualsAStableSortForAnyScores) {
    EXPECT_TRUE(rc::check("the k best, lower id first on a tie", [] {
        const auto n = *rc::gen::inRange<std::size_t>(1, 40);
        const auto k = *rc::gen::inRange<std::size_t>(1, n + 1);
        // Few distinct values, so that ties are common.
        const auto score = *rc::gen::container<std::vector<float>>(
            n, rc::gen::map(rc::gen::inRange(0, 6), [](int v) { return static_cast<float>(v); }));
        const std::vector<float> bias(n, 0.5F);
        std::vector<std::int32_t> want(n);
        std::iota(want.begin(), want.end(), 0);
        std::stable_sort(want.begin(), want.end(), [&](std::int32_t a, std::int32_t b) {
            return score[static_cast<std::size_t>(a)] > score[static_cast<std::size_t>(b)];
        });
        want.resize(k);
        std::vector<std::int32_t> got(k);

        select_experts(score, bias, got);

        RC_ASSERT(got == want);
    }));
}

TEST(MixingWeights, TheFloorKeepsAnAllZeroRowFinite) {
    const std::array score{0.0F, 0.0F};
    const std::array<std::int32_t, 2> id{0, 1};
    std::array<float, 2> weight{};

    mixing_weights(score, id, 1e-20F, 1.5F, weight);

    EXPECT_EQ(weight, (std::array{0.0F, 0.0F}));
}

}  // namespace
}  // namespace megamoe::ops
