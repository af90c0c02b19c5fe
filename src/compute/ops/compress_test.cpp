#include "compute/ops/compress.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace megamoe::ops {
namespace {

// Raw rows of `count` tokens, [value | gate] each, and the position bias.
struct Stream {
    std::vector<float> rows;
    std::vector<float> bias;
    std::size_t width;

    Stream(std::size_t count, std::size_t ratio, std::size_t width_in) : width(width_in) {
        std::mt19937 rng(7);
        const auto next = [&] { return static_cast<float>(rng()) / 2e9F - 1; };
        rows.resize(count * 2 * width);
        bias.resize(ratio * width);
        std::generate(rows.begin(), rows.end(), next);
        std::generate(bias.begin(), bias.end(), next);
    }
    RawRow row(std::size_t t, std::size_t ratio) const {
        return {rows.data() + t * 2 * width, rows.data() + t * 2 * width + width, bias.data() + t % ratio * width};
    }
};

// The definition in double precision: softmax over the given (gate, value) pairs.
double softmax_mix(const std::vector<std::pair<double, double>>& pairs) {
    double sum = 0;
    double mixed = 0;
    for (const auto& [gate, value] : pairs) {
        sum += std::exp(gate);
        mixed += std::exp(gate) * value;
    }
    return mixed / sum;
}

TEST(PoolWindow, MixesThePreviousWindowsAHalfWithThisWindowsBHalf) {
    constexpr std::size_t kDim = 3;
    const Stream s(8, 4, 2 * kDim);
    std::vector<RawRow> previous;
    std::vector<RawRow> window;
    for (std::size_t t = 0; t < 4; ++t) {
        previous.push_back(s.row(t, 4));
        window.push_back(s.row(t + 4, 4));
    }
    std::vector<float> out(kDim);

    pool_window(previous, window, true, out);

    for (std::size_t ch = 0; ch < kDim; ++ch) {
        std::vector<std::pair<double, double>> pairs;
        for (std::size_t t = 0; t < 4; ++t) {
            pairs.emplace_back(previous[t].gate[ch] + previous[t].bias[ch], previous[t].value[ch]);
            pairs.emplace_back(window[t].gate[kDim + ch] + window[t].bias[kDim + ch], window[t].value[kDim + ch]);
        }
        EXPECT_NEAR(out[ch], softmax_mix(pairs), 1e-6);
    }
}

TEST(PoolWindow, WithoutAPreviousWindowOnlyThisOneCounts) {
    constexpr std::size_t kDim = 2;
    const Stream s(16, 16, kDim);
    std::vector<RawRow> window;
    for (std::size_t t = 0; t < 16; ++t) {
        window.push_back(s.row(t, 16));
    }
    std::vector<float> out(kDim);

    pool_window({}, window, false, out);

    for (std::size_t ch = 0; ch < kDim; ++ch) {
        std::vector<std::pair<double, double>> pairs;
        for (const RawRow& row : window) {
            pairs.emplace_back(row.gate[ch] + row.bias[ch], row.value[ch]);
        }
        EXPECT_NEAR(out[ch], softmax_mix(pairs), 1e-6);
    }
}

TEST(SelectTop, EqualsAStableSortForAnyScores) {
    EXPECT_TRUE(rc::check("the best by score, lower index first on a tie, given back by index", [] {
        const auto n = *rc::gen::inRange<std::size_t>(0, 60);
        const auto count = *rc::gen::inRange(0, 70);
        const auto score = *rc::gen::container<std::vector<float>>(
            n, rc::gen::map(rc::gen::inRange(-3, 3), [](int v) { return static_cast<float>(v); }));
        std::vector<std::int32_t> want(n);
        std::iota(want.begin(), want.end(), 0);
        std::stable_sort(want.begin(), want.end(), [&](std::int32_t a, std::int32_t b) {
            return score[static_cast<std::size_t>(a)] > score[static_cast<std::size_t>(b)];
        });
        want.resize(std::min(n, static_cast<std::size_t>(count)));
        std::sort(want.begin(), want.end());
        std::vector<std::int32_t> got;

        select_top(score, count, got);

        RC_ASSERT(got == want);
    }));
}

TEST(SelectTop, ANanScoreIsNeverPreferred) {
    std::vector<std::int32_t> got;

    select_top(std::vector<float>{NAN, 1, NAN, 2, 0}, 3, got);

    EXPECT_EQ(got, (std::vector<std::int32_t>{1, 3, 4}));
}

}  // namespace
}  // namespace megamoe::ops
