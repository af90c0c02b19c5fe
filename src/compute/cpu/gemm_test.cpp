#include "compute/cpu/gemm.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "compute/cpu/test_data.h"

namespace megamoe::cpu {
namespace {

using ops::ScaleFormat;
using ops::WeightFormat;

constexpr WeightFormat kFormats[] = {WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kFp8, WeightFormat::kFp4};

struct Shape {
    WeightFormat format;
    ScaleFormat scale;
    std::int32_t m, n, k;
};

Shape any_shape(std::int32_t max_m) {
    Shape s{};
    s.format = *rc::gen::elementOf(std::vector(std::begin(kFormats), std::end(kFormats)));
    s.scale = *rc::gen::element(ScaleFormat::kE8m0, ScaleFormat::kF32);
    s.m = *rc::gen::inRange(1, max_m + 1);
    s.n = *rc::gen::inRange(1, 200);
    s.k = s.format == WeightFormat::kFp4 ? 32 * *rc::gen::inRange(1, 12) : *rc::gen::inRange(1, 400);
    return s;
}

std::vector<float> product(Isa isa, int team, const PackedMatrix& w, const std::vector<float>& a, std::int32_t m,
                           Math math, bool round = false) {
    std::vector<float> out(static_cast<std::size_t>(m) * static_cast<std::size_t>(w.rows()), -1.0F);
    Workers workers(team);
    gemm(isa, workers,
         {.w = &w,
          .a = a.data(),
          .lda = w.cols(),
          .m = m,
          .out = out.data(),
          .ldo = w.rows(),
          .math = math,
          .round_bf16 = round});
    return out;
}

TEST(Gemm, AgreesWithSumsInDoublePrecisionOnEveryIsa) {
    EXPECT_TRUE(rc::check([] {
        const Shape s = any_shape(20);
        const RandomMatrix source(s.format, s.scale, s.n, s.k, *rc::gen::arbitrary<std::uint32_t>());
        const auto w = PackedMatrix::pack(source.view());
        const auto a = random_floats(static_cast<std::int64_t>(s.m) * s.k, 7, /*bf16=*/true);
        std::vector<float> wide(static_cast<std::size_t>(s.n) * static_cast<std::size_t>(s.k));
        for (std::int32_t i = 0; i < s.n * s.k; ++i) {
            wide[static_cast<std::size_t>(i)] = matrix_element(source.view(), i / s.k, i % s.k);
        }
        for (const Isa isa : isas_of_this_machine()) {
            for (const Math math : {Math::kF32, Math::kBf16}) {
                const auto got = product(isa, 1, w, a, s.m, math);
                for (std::int32_t i = 0; i < s.m * s.n; ++i) {
                    double sum = 0;
                    double magnitude = 0;
                    for (std::int32_t c = 0; c < s.k; ++c) {
                        const double term = static_cast<double>(a[static_cast<std::size_t>(i / s.n * s.k + c)]) *
                                            wide[static_cast<std::size_t>(i % s.n * s.k + c)];
                        sum += term;
                        magnitude += std::fabs(term);
                    }
                    // Each float32 addition may lose 2^-24 of what it adds to; half of the worst case is ample.
                    const double tolerance = magnitude * 0x1p-25 * (s.k + 8);
                    RC_ASSERT(std::fabs(got[static_cast<std::size_t>(i)] - sum) <= tolerance);
                }
            }
        }
    }));
}

TEST(Gemm, AnOutputDependsOnItsRowAloneForAnyTeam) {
    EXPECT_TRUE(rc::check([] {
        const Shape s = any_shape(70);
        const RandomMatrix source(s.format, s.scale, s.n, s.k, 3);
        const auto w = PackedMatrix::pack(source.view());
        const auto math = *rc::gen::element(Math::kF32, Math::kBf16);
        const Isa isa = *rc::gen::elementOf(isas_of_this_machine());
        const bool round = *rc::gen::arbitrary<bool>();
        const auto a = random_floats(static_cast<std::int64_t>(s.m) * s.k, *rc::gen::arbitrary<std::uint32_t>());
        const auto all = product(isa, *rc::gen::inRange(1, 5), w, a, s.m, math, round);

        const std::int32_t row = *rc::gen::inRange(0, s.m);
        const std::vector<float> alone(a.begin() + row * s.k, a.begin() + (row + 1) * s.k);
        const auto one = product(isa, 1, w, alone, 1, math, round);

        const std::vector<float> same(all.begin() + row * s.n, all.begin() + (row + 1) * s.n);
        RC_ASSERT(one == same);
    }));
}

// Heights on both sides of every change of method, and columns beyond a chunk that stays in L1.
TEST(Gemm, EveryMethodGivesARowTheSameBits) {
    constexpr std::int32_t kRows = 40;
    constexpr std::int32_t kOutputs = 83;
    constexpr std::int32_t kCols = 2080;
    const auto a = random_floats(std::int64_t{kRows} * kCols, 8);
    for (const WeightFormat format : kFormats) {
        const RandomMatrix source(format, ScaleFormat::kE8m0, kOutputs, kCols, 9);
        const auto w = PackedMatrix::pack(source.view());
        for (const Isa isa : isas_of_this_machine()) {
            if (isa == Isa::kScalar) {
                continue;  // one method
            }
            for (const Math math : {Math::kF32, Math::kBf16}) {
                const auto all = product(isa, 1, w, a, kRows, math);
                for (const std::int32_t m : {1, 2, 3, 4, 5, 6, 7, 13, 16, 17, 25}) {
                    const auto some = product(isa, 2, w, a, m, math);
                    EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << name(isa) << " m " << m;
                }
            }
        }
    }
}

TEST(Gemm, IsasAgreeAsPromised) {
    EXPECT_TRUE(rc::check([] {
        const Shape s = any_shape(30);
        const RandomMatrix source(s.format, s.scale, s.n, s.k, 4);
        const auto w = PackedMatrix::pack(source.view());
        const auto a = random_floats(static_cast<std::int64_t>(s.m) * s.k, *rc::gen::arbitrary<std::uint32_t>());
        for (const Math math : {Math::kF32, Math::kBf16}) {
            const auto want = product(Isa::kScalar, 1, w, a, s.m, math);
            for (const Isa isa : isas_of_this_machine()) {
                if (math == Math::kF32 || isa < Isa::kAvx512Bf16) {
                    RC_ASSERT(product(isa, 1, w, a, s.m, math) == want);
                }
            }
        }
    }));
}

TEST(Gemm, MoreRowsThanOneBlockAndStridedOperands) {
    const std::int32_t m = 600;
    const std::int32_t n = 40;
    const std::int32_t k = 96;
    const RandomMatrix source(WeightFormat::kFp4, ScaleFormat::kE8m0, n, k, 5);
    const auto w = PackedMatrix::pack(source.view());
    const std::int64_t lda = k + 3;
    const std::int64_t ldo = n + 5;
    const auto a = random_floats(m * lda, 6);
    std::vector<float> out(static_cast<std::size_t>(m * ldo), 123.0F);
    Workers workers(2);

    gemm(detect_isa(), workers,
         {.w = &w, .a = a.data(), .lda = lda, .m = m, .out = out.data(), .ldo = ldo, .math = Math::kBf16});

    for (std::int32_t i = 0; i < m; ++i) {
        const std::vector<float> row(a.begin() + i * lda, a.begin() + i * lda + k);
        const auto want = product(detect_isa(), 1, w, row, 1, Math::kBf16);
        for (std::int32_t j = 0; j < ldo; ++j) {
            const float got = out[static_cast<std::size_t>(i * ldo + j)];
            EXPECT_EQ(got, j < n ? want[static_cast<std::size_t>(j)] : 123.0F) << i << ' ' << j;
        }
    }
}

TEST(Gemm, NoRowsAndNoOutputsAreFine) {
    const RandomMatrix source(WeightFormat::kBf16, ScaleFormat::kNone, 8, 8, 1);
    const auto w = PackedMatrix::pack(source.view());
    const auto empty = PackedMatrix::pack(source.view(), 3, 0);

    EXPECT_TRUE(product(detect_isa(), 2, w, {}, 0, Math::kBf16).empty());
    EXPECT_TRUE(product(detect_isa(), 2, empty, random_floats(8, 1), 1, Math::kBf16).empty());
}

}  // namespace
}  // namespace megamoe::cpu
