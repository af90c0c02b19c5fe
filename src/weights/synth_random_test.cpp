#include "weights/synth_random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace megamoe::weights {
namespace {

TEST(SynthRandom, KeepsItsBitsForever) {
    const SynthRandom random(7, "layers.3.attn.wq_a.weight");

    // Computed once with a second implementation, in Python.
    EXPECT_EQ(random.bits(0), 9026125545046325470U);
    EXPECT_EQ(random.normal(5), 87031 * 0x1p-16F);
}

TEST(SynthRandom, DependsOnSeedAndName) {
    EXPECT_NE(SynthRandom(1, "a").bits(0), SynthRandom(2, "a").bits(0));
    EXPECT_NE(SynthRandom(1, "a").bits(0), SynthRandom(1, "b").bits(0));
}

TEST(SynthRandom, DrawsNormalsOfTheRightMoments) {
    const SynthRandom random(3, "moments");
    constexpr int kCount = 400000;
    double m1 = 0;
    double m2 = 0;
    double m4 = 0;
    int beyond_two = 0;
    for (int i = 0; i < kCount; ++i) {
        const double x = random.normal(i);
        m1 += x / kCount;
        m2 += x * x / kCount;
        m4 += x * x * x * x / kCount;
        beyond_two += std::abs(x) > 2 ? 1 : 0;
    }
    EXPECT_NEAR(m1, 0, 0.01);
    EXPECT_NEAR(m2, 1, 0.01);
    EXPECT_NEAR(m4, 2.9, 0.05);  // 3 - 1.2 / 12 for a sum of twelve uniforms
    EXPECT_NEAR(static_cast<double>(beyond_two) / kCount, 0.0455, 0.002);
}

TEST(SynthRandom, SpreadsUniformsEvenly) {
    const SynthRandom random(3, "uniform");
    int counts[10] = {};
    for (int i = 0; i < 100000; ++i) {
        ++counts[static_cast<int>(random.uniform(i) * 10)];
    }
    for (const int count : counts) {
        EXPECT_NEAR(count, 10000, 400);  // 4 deviations
    }
}

TEST(SynthRandom, ExpAndLogAgreeWithTheLibrary) {
    for (double x = -600; x < 600; x += 0.37) {
        EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 1e-13) << x;
        EXPECT_NEAR(portable_log(std::exp(x)), x, 1e-13 * std::max(1.0, std::abs(x))) << x;
    }
    EXPECT_EQ(portable_exp(0), 1);
    EXPECT_EQ(portable_log(1), 0);
}

TEST(SynthRandom, QuantileInvertsTheNormalDistribution) {
    for (double x = -5; x <= 5; x += 0.01) {
        const double p = std::erfc(-x / std::sqrt(2.0)) / 2;

        EXPECT_NEAR(normal_quantile(p), x, 1e-7 * std::max(1.0, std::abs(x))) << p;
    }
}

}  // namespace
}  // namespace megamoe::weights
