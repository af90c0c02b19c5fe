#include "compute/cpu/row_ops.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "compute/cpu/test_data.h"

namespace megamoe::cpu {
namespace {

constexpr float kEps = 1e-6F;

std::uint32_t seed() {
    return *rc::gen::arbitrary<std::uint32_t>();
}
Isa any_isa() {
    return *rc::gen::elementOf(isas_of_this_machine());
}
Rounding any_rounding() {
    return *rc::gen::element(Rounding::kNone, Rounding::kBf16);
}
bool near(float got, double want, double relative) {
    return std::fabs(got - want) <= relative * std::fabs(want);
}

// The largest relative error of one rounding to bfloat16, or the given one where results are not rounded.
double tolerance(Rounding rounding, double unrounded) {
    return rounding == Rounding::kBf16 ? 0x1.01p-8 : unrounded;
}

TEST(RmsNorm, AgreesWithDoublePrecisionAndAcrossIsas) {
    EXPECT_TRUE(rc::check([] {
        const int n = *rc::gen::inRange(1, 700);
        const auto x = random_floats(n, seed());
        const auto weight = random_floats(n, seed());
        const bool weighted = *rc::gen::arbitrary<bool>();
        const Rounding rounding = any_rounding();
        double squares = 0;
        for (const float v : x) {
            squares += static_cast<double>(v) * v;
        }
        const double root = std::sqrt(squares / n + kEps);
        std::vector<float> scalar(x.size());
        rms_norm(Isa::kScalar, x.data(), weighted ? weight.data() : nullptr, n, kEps, rounding, scalar.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
            RC_ASSERT(near(scalar[i], x[i] / root * (weighted ? weight[i] : 1.0F), tolerance(rounding, 1e-5)));
        }

        auto in_place = x;
        rms_norm(any_isa(), in_place.data(), weighted ? weight.data() : nullptr, n, kEps, rounding, in_place.data());

        RC_ASSERT(in_place == scalar);
    }));
}

TEST(HeadNorm, RoundsAfterEachOperationInProfileDs) {
    std::vector<float> x{1.0F, 3.0F, -2.0F, 0.5F};  // squares 1 9 4 .25, mean 3.5625 -> 3.5625, rsqrt .52981 -> .53125

    head_norm(Isa::kScalar, x.data(), 4, kEps, Rounding::kBf16);

    EXPECT_EQ(x, (std::vector<float>{0.53125F, 1.59375F, -1.0625F, 0.265625F}));
}

TEST(HeadNorm, IsasAgreeBitForBit) {
    EXPECT_TRUE(rc::check([] {
        const int n = *rc::gen::inRange(1, 600);
        const auto x = random_floats(n, seed(), /*bf16=*/true);
        const Rounding rounding = any_rounding();
        auto want = x;
        head_norm(Isa::kScalar, want.data(), n, kEps, rounding);

        auto got = x;
        head_norm(any_isa(), got.data(), n, kEps, rounding);

        RC_ASSERT(got == want);
    }));
}

TEST(QuantiseFp8, HasTheBitsOfTheReference) {
    EXPECT_TRUE(rc::check([] {
        const int n = *rc::gen::inRange(1, 700);
        const int group = *rc::gen::element(16, 64, 100, 128);
        const float magnitude = *rc::gen::element(0.0F, 1e-6F, 1e-3F, 1.0F, 300.0F, 1e6F);
        auto x = random_floats(n, seed(), *rc::gen::arbitrary<bool>());
        for (float& v : x) {
            v *= magnitude;
        }
        auto want = x;
        ops::simulate_fp8(want.data(), n, group);

        quantise_fp8(any_isa(), x.data(), n, group);

        for (std::size_t i = 0; i < x.size(); ++i) {
            RC_ASSERT(std::bit_cast<std::uint32_t>(x[i]) == std::bit_cast<std::uint32_t>(want[i]));
        }
    }));
}

TEST(QuantiseFp8, WalksEveryCodeAndEveryTie) {
    std::vector<float> values;
    for (int c = 0; c < 126; ++c) {
        const float low = ops::from_e4m3(static_cast<std::uint8_t>(c));
        const float high = ops::from_e4m3(static_cast<std::uint8_t>(c + 1));
        for (const float v : {low, (low + high) / 2, std::nextafter((low + high) / 2, 0.0F),
                              std::nextafter((low + high) / 2, 1000.0F)}) {
            values.push_back(v);
            values.push_back(-v);
        }
    }
    values.push_back(448.0F);  // fixes the scale at 1
    const int n = static_cast<int>(values.size());
    auto want = values;
    ops::simulate_fp8(want.data(), n, n);
    for (const Isa isa : isas_of_this_machine()) {
        auto got = values;
        quantise_fp8(isa, got.data(), n, n);
        EXPECT_EQ(got, want) << name(isa);
    }
}

TEST(Swiglu, AgreesWithDoublePrecisionOnEveryIsa) {
    EXPECT_TRUE(rc::check([] {
        const int n = *rc::gen::inRange(1, 200);
        auto gate = random_floats(n, seed());
        const auto up = random_floats(n, seed());
        const float limit = *rc::gen::element(0.5F, 10.0F);
        const float weight = *rc::gen::element(1.0F, 0.37F);
        const Rounding rounding = any_rounding();
        const float spread = *rc::gen::element(1.0F, 5.0F, 60.0F);  // the last reaches exp's overflow
        for (float& g : gate) {
            g *= spread;
        }
        std::vector<float> out(gate.size());

        swiglu(any_isa(), gate.data(), up.data(), n, limit, weight, rounding, out.data());

        for (std::size_t i = 0; i < out.size(); ++i) {
            const double g = std::min(gate[i], limit);
            const double want = g / (1 + std::exp(-g)) * std::clamp(up[i], -limit, limit) * weight;
            RC_ASSERT(std::fabs(out[i] - want) <= tolerance(rounding, 5e-7) * std::fabs(want) + 1e-36);
        }
        swiglu(any_isa(), gate.data(), up.data(), n, limit, weight, rounding, gate.data());  // in place
        RC_ASSERT(near(gate[0], out[0], tolerance(rounding, 1e-6)));
    }));
}

TEST(Swiglu, ALaneDoesNotSeeItsNeighbours) {
    const auto gate = random_floats(100, 1);
    const auto up = random_floats(100, 2);
    for (const Isa isa : isas_of_this_machine()) {
        std::vector<float> all(100);
        swiglu(isa, gate.data(), up.data(), 100, 10, 1, Rounding::kNone, all.data());
        for (std::size_t i = 0; i < all.size(); ++i) {
            float one = 0;
            swiglu(isa, &gate[i], &up[i], 1, 10, 1, Rounding::kNone, &one);
            EXPECT_EQ(one, all[i]) << name(isa) << ' ' << i;
        }
    }
}

TEST(HyperConnection, CollapseAndExpandAreTheFormulasOfTheSpecWithTheSameBitsOnEveryIsa) {
    EXPECT_TRUE(rc::check([] {
        const int streams = *rc::gen::inRange(1, 6);
        const int hidden = *rc::gen::inRange(1, 100);
        const auto s = random_floats(streams * hidden, seed());
        const auto o = random_floats(hidden, seed());
        const auto pre = random_floats(streams, seed());
        const auto comb = random_floats(streams * streams, seed());
        const Rounding rounding = any_rounding();
        const auto at = [hidden](int j, int d) { return static_cast<std::size_t>(j * hidden + d); };
        std::vector<float> collapsed(o.size());
        hc_collapse(Isa::kScalar, s.data(), pre.data(), streams, hidden, rounding, collapsed.data());
        auto expanded = s;
        hc_expand(Isa::kScalar, o.data(), pre.data(), comb.data(), streams, hidden, rounding, expanded.data());
        const double unit = tolerance(rounding, 1e-5);
        for (int d = 0; d < hidden; ++d) {
            double sum = 0;
            double magnitude = 0;
            for (int j = 0; j < streams; ++j) {
                const double term = static_cast<double>(pre[static_cast<std::size_t>(j)]) * s[at(j, d)];
                sum += term;
                magnitude += std::fabs(term);
            }
            RC_ASSERT(std::fabs(collapsed[static_cast<std::size_t>(d)] - sum) <=
                      unit * std::fabs(sum) + 1e-6 * magnitude);
            for (int k = 0; k < streams; ++k) {
                double want = static_cast<double>(pre[static_cast<std::size_t>(k)]) * o[static_cast<std::size_t>(d)];
                magnitude = std::fabs(want);
                for (int j = 0; j < streams; ++j) {
                    const double term =
                        static_cast<double>(comb[static_cast<std::size_t>(j * streams + k)]) * s[at(j, d)];
                    want += term;
                    magnitude += std::fabs(term);
                }
                RC_ASSERT(std::fabs(expanded[at(k, d)] - want) <= unit * std::fabs(want) + 1e-6 * magnitude);
            }
        }
        const Isa isa = any_isa();
        std::vector<float> got(o.size());
        hc_collapse(isa, s.data(), pre.data(), streams, hidden, rounding, got.data());
        RC_ASSERT(got == collapsed);
        got = s;
        hc_expand(isa, o.data(), pre.data(), comb.data(), streams, hidden, rounding, got.data());
        RC_ASSERT(got == expanded);
    }));
}

}  // namespace
}  // namespace megamoe::cpu
