#include "compute/ops/formats.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace megamoe::ops {
namespace {

// The nearest of the finite codes, ties to the even code, found by trying all of them.
template <class Decode>
std::uint8_t nearest_code(float x, int codes, Decode decode) {
    int best = -1;
    for (int c = 0; c < codes; ++c) {
        const float v = decode(static_cast<std::uint8_t>(c));
        if (std::isnan(v)) {
            continue;
        }
        const double distance = std::fabs(static_cast<double>(v) - std::fabs(x));
        const double to_beat =
            best < 0 ? std::numeric_limits<double>::infinity()
                     : std::fabs(decode(static_cast<std::uint8_t>(best)) - static_cast<double>(std::fabs(x)));
        if (distance < to_beat || (distance == to_beat && c % 2 == 0)) {
            best = c;
        }
    }
    return static_cast<std::uint8_t>(best);
}

rc::Gen<float> values_around(float limit) {
    return rc::gen::map(rc::gen::inRange(-2'000'000, 2'000'001),
                        [limit](int i) { return static_cast<float>(i) / 1'000'000.0F * limit; });
}

TEST(Formats, E4m3HasTheValuesOfTheSpec) {
    EXPECT_EQ(from_e4m3(0x00), 0.0F);
    EXPECT_EQ(from_e4m3(0x01), 0x1p-9F);
    EXPECT_EQ(from_e4m3(0x07), 7 * 0x1p-9F);
    EXPECT_EQ(from_e4m3(0x08), 0x1p-6F);
    EXPECT_EQ(from_e4m3(0x38), 1.0F);
    EXPECT_EQ(from_e4m3(0x7E), 448.0F);
    EXPECT_EQ(from_e4m3(0xFE), -448.0F);
    EXPECT_TRUE(std::isnan(from_e4m3(0x7F)));
    EXPECT_TRUE(std::isnan(from_e4m3(0xFF)));
}

TEST(Formats, EveryE4m3ValueRoundTrips) {
    for (int c = 0; c < 256; ++c) {
        const auto code = static_cast<std::uint8_t>(c);
        if (!std::isnan(from_e4m3(code))) {
            EXPECT_EQ(to_e4m3(from_e4m3(code)), code);
        }
    }
    EXPECT_EQ(to_e4m3(std::numeric_limits<float>::quiet_NaN()), 0x7F);
}

TEST(Formats, ToE4m3IsTheNearestCode) {
    const auto near = [](float x) { return nearest_code(x, 128, from_e4m3); };
    EXPECT_TRUE(rc::check("over the whole range", [&] {
        const float x = *values_around(448.0F);
        RC_ASSERT((to_e4m3(x) & 0x7F) == near(x));
        RC_ASSERT(((to_e4m3(x) & 0x80) != 0) == std::signbit(x));
    }));
    EXPECT_TRUE(rc::check("among the subnormal codes", [&] {
        const float x = *values_around(0x1p-6F);
        RC_ASSERT((to_e4m3(x) & 0x7F) == near(x));
    }));
    for (int c = 0; c < 126; ++c) {  // the exact midpoints
        const float mid = (from_e4m3(static_cast<std::uint8_t>(c)) + from_e4m3(static_cast<std::uint8_t>(c + 1))) / 2;
        EXPECT_EQ(to_e4m3(mid), c % 2 == 0 ? c : c + 1) << mid;
    }
}

TEST(Formats, ToE2m1IsTheNearestCodeAndTiesGoToTheEvenOne) {
    EXPECT_TRUE(rc::check([] {
        const float x = *values_around(6.0F);
        RC_ASSERT((to_e2m1(x) & 7) == nearest_code(x, 8, from_e2m1));
    }));
    constexpr std::array kMidpoints{0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F};
    constexpr std::array kExpected{0, 2, 2, 4, 4, 6, 6};
    for (std::size_t i = 0; i < kMidpoints.size(); ++i) {
        EXPECT_EQ(to_e2m1(kMidpoints[i]), kExpected[i]) << kMidpoints[i];
        EXPECT_EQ(to_e2m1(-kMidpoints[i]), kExpected[i] | 8) << kMidpoints[i];
    }
    EXPECT_EQ(to_e2m1(-0.0F), 0);
    EXPECT_EQ(to_e2m1(1e9F), 7);
}

TEST(Formats, E8m0IsAnExponent) {
    EXPECT_EQ(from_e8m0(0), 0x1p-127F);
    EXPECT_EQ(from_e8m0(120), 0x1p-7F);
    EXPECT_EQ(from_e8m0(127), 1.0F);
    EXPECT_EQ(from_e8m0(254), 0x1p127F);
    EXPECT_TRUE(std::isnan(from_e8m0(255)));
}

TEST(Formats, Bf16RoundsToNearestEvenAndKeepsNan) {
    EXPECT_EQ(round_bf16(1.0F + 0x1p-8F), 1.0F);                // a tie, down to even
    EXPECT_EQ(round_bf16(1.0F + 3 * 0x1p-8F), 1.0F + 0x1p-6F);  // a tie, up to even
    EXPECT_EQ(round_bf16(1.0F + 0x1.02p-8F), 1.0F + 0x1p-7F);
    EXPECT_EQ(round_bf16(-0.0F), 0.0F);
    EXPECT_TRUE(std::isnan(round_bf16(std::bit_cast<float>(0x7F800001U))));
    EXPECT_TRUE(std::isinf(round_bf16(std::numeric_limits<float>::max())));
}

TEST(Formats, Pow2CeilIsTheSmallestPowerNotBelow) {
    EXPECT_EQ(pow2_ceil(1.0F), 1.0F);
    EXPECT_EQ(pow2_ceil(std::nextafter(1.0F, 2.0F)), 2.0F);
    EXPECT_EQ(pow2_ceil(0x1p-126F), 0x1p-126F);
    EXPECT_TRUE(rc::check([] {
        const float v = std::fabs(*values_around(1000.0F)) + 1e-3F;
        const float p = pow2_ceil(v);
        RC_ASSERT(p >= v);
        RC_ASSERT(p / 2 < v);
        RC_ASSERT(std::exp2(std::round(std::log2(p))) == p);
    }));
}

// Examples of the spec: a group whose largest magnitude is `amax` gets the scale 2^(byte - 127).
TEST(Formats, SimulatedGroupsUseTheScaleOfTheSpec) {
    const auto smallest_step = [](auto simulate, float amax, float scale) {
        std::vector<float> x{amax, scale * 0.76F};  // three quarters of a step survive only if the step is no larger
        simulate(x.data(), 2, 128);
        return x[1];
    };
    const auto fp4 = [&](float amax, float scale) { return smallest_step(simulate_fp4, amax, scale); };
    EXPECT_EQ(fp4(6.0F, 1.0F), 1.0F);
    EXPECT_EQ(fp4(1.0F, 0.25F), 0.25F);
    EXPECT_EQ(fp4(3.0F, 0.5F), 0.5F);
    EXPECT_EQ(fp4(7.0F, 2.0F), 2.0F);
    const auto fp8_unit = [](float amax, float scale) {  // the smallest code is 2^-9 of the scale
        std::vector<float> x{amax, scale * 0x1.8p-10F, scale * 0x1p-11F};
        simulate_fp8(x.data(), 3, 128);
        EXPECT_EQ(x[2], 0.0F) << amax;
        return x[1];
    };
    EXPECT_EQ(fp8_unit(448.0F, 1.0F), 0x1p-9F);
    EXPECT_EQ(fp8_unit(1.0F, 0x1p-8F), 0x1p-17F);
    EXPECT_EQ(fp8_unit(3.5F, 0x1p-7F), 0x1p-16F);
    EXPECT_EQ(fp8_unit(500.0F, 2.0F), 0x1p-8F);
    EXPECT_EQ(fp8_unit(0.0F, 0x1p-22F), 0x1p-31F);
}

TEST(Formats, SimulationIsIdempotentAndGroupsAreIndependent) {
    EXPECT_TRUE(rc::check([] {
        const auto n = *rc::gen::inRange(1, 300);
        const auto x = *rc::gen::container<std::vector<float>>(static_cast<std::size_t>(n), values_around(50.0F));
        const int group = *rc::gen::element(32, 64, 128);
        const auto simulate = *rc::gen::element(&simulate_fp8, &simulate_fp4);

        auto once = x;
        simulate(once.data(), n, group);
        auto twice = once;
        simulate(twice.data(), n, group);
        auto alone = x;
        for (int begin = 0; begin < n; begin += group) {
            simulate(alone.data() + begin, std::min(group, n - begin), group);
        }

        RC_ASSERT(once == twice);
        RC_ASSERT(once == alone);
    }));
}

}  // namespace
}  // namespace megamoe::ops
