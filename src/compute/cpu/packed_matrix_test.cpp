#include "compute/cpu/packed_matrix.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <vector>

#include "compute/cpu/gemm.h"
#include "compute/cpu/test_data.h"

namespace megamoe::cpu {
namespace {

using ops::ScaleFormat;
using ops::WeightFormat;

// Every element of the packed matrix, read by products with unit vectors: exact in float32.
std::vector<float> elements(Isa isa, const PackedMatrix& packed) {
    const std::int32_t cols = packed.cols();
    std::vector<float> unit(static_cast<std::size_t>(cols) * static_cast<std::size_t>(cols));
    for (std::int32_t c = 0; c < cols; ++c) {
        unit[static_cast<std::size_t>(c) * static_cast<std::size_t>(cols + 1)] = 1.0F;
    }
    std::vector<float> out(static_cast<std::size_t>(cols) * static_cast<std::size_t>(packed.rows()));
    Workers workers(1);
    gemm(isa, workers,
         {.w = &packed, .a = unit.data(), .lda = cols, .m = cols, .out = out.data(), .ldo = packed.rows()});
    return out;
}

TEST(PackedMatrix, EveryElementDecodesToTheSource) {
    EXPECT_TRUE(rc::check([] {
        const auto format =
            *rc::gen::element(WeightFormat::kF32, WeightFormat::kBf16, WeightFormat::kFp8, WeightFormat::kFp4);
        const auto scale = *rc::gen::element(ScaleFormat::kE8m0, ScaleFormat::kF32);
        const int rows = *rc::gen::inRange(1, 300);
        const int cols = format == WeightFormat::kFp4 ? 32 * *rc::gen::inRange(1, 6) : *rc::gen::inRange(1, 160);
        const int begin = *rc::gen::inRange(0, rows);
        const int count = *rc::gen::inRange(1, std::min(rows - begin, 40) + 1);
        const RandomMatrix source(format, scale, rows, cols, *rc::gen::arbitrary<std::uint32_t>());

        const auto packed = PackedMatrix::pack(source.view(), begin, count);
        const auto got = elements(detect_isa(), packed);

        for (int c = 0; c < cols; ++c) {
            for (int r = 0; r < count; ++r) {
                RC_ASSERT(got[static_cast<std::size_t>(c * count + r)] == matrix_element(source.view(), begin + r, c));
            }
        }
    }));
}

TEST(PackedMatrix, EveryFp8AndFp4CodeDecodesOnEveryIsa) {
    std::vector<std::uint8_t> codes(256 * 32);
    for (std::size_t i = 0; i < codes.size(); ++i) {
        codes[i] = static_cast<std::uint8_t>(i / 32);  // row r holds code r
    }
    const std::vector<std::uint8_t> fp8_scale(2, 127);
    const std::vector<std::uint8_t> fp4_scale(256 * 2, 127);
    const ops::MatrixView views[] = {{WeightFormat::kFp8, ScaleFormat::kE8m0, 256, 32, codes.data(), fp8_scale.data()},
                                     {WeightFormat::kFp4, ScaleFormat::kE8m0, 256, 32, codes.data(), fp4_scale.data()}};
    for (const Isa isa : isas_of_this_machine()) {
        for (const ops::MatrixView& view : views) {
            const auto packed = PackedMatrix::pack(view);
            std::vector<float> a(32);
            std::vector<float> out(256);
            Workers workers(1);
            for (const Math math : {Math::kF32, Math::kBf16}) {
                a.assign(32, 0.0F);
                a[5] = 1.0F;
                for (const std::int32_t m : {1, 7}) {  // straight from the codes, and decoded first
                    std::vector<float> many(static_cast<std::size_t>(m) * 32);
                    std::copy(a.begin(), a.end(), many.end() - 32);
                    std::vector<float> outs(static_cast<std::size_t>(m) * 256);
                    gemm(isa, workers,
                         {.w = &packed,
                          .a = many.data(),
                          .lda = 32,
                          .m = m,
                          .out = outs.data(),
                          .ldo = 256,
                          .math = math});
                    for (int r = 0; r < 256; ++r) {
                        const float want = matrix_element(view, r, 5);
                        const float got = outs[static_cast<std::size_t>((m - 1) * 256 + r)];
                        if (std::isnan(want)) {
                            EXPECT_TRUE(std::isnan(got)) << name(isa) << " row " << r;
                        } else {
                            EXPECT_EQ(got, want) << name(isa) << " row " << r;
                        }
                    }
                }
            }
        }
    }
}

TEST(PackedMatrix, EveryScaleByteDecodesOnEveryIsa) {
    const std::vector<std::uint8_t> codes(256 * 16, 0x22);  // 1.0 in every column
    std::vector<std::uint8_t> scale(256);
    for (std::size_t i = 0; i < scale.size(); ++i) {
        scale[i] = static_cast<std::uint8_t>(i);
    }
    const ops::MatrixView view{WeightFormat::kFp4, ScaleFormat::kE8m0, 256, 32, codes.data(), scale.data()};
    const auto packed = PackedMatrix::pack(view);
    for (const Isa isa : isas_of_this_machine()) {
        const auto got = elements(isa, packed);
        for (int r = 0; r < 255; ++r) {
            EXPECT_EQ(got[static_cast<std::size_t>(r)], ops::from_e8m0(static_cast<std::uint8_t>(r))) << name(isa);
        }
        EXPECT_TRUE(std::isnan(got[255])) << name(isa);
    }
}

TEST(PackedMatrix, KeepsTheReleasedWidth) {
    const RandomMatrix fp4(WeightFormat::kFp4, ScaleFormat::kE8m0, 64, 256, 1);
    const RandomMatrix fp8(WeightFormat::kFp8, ScaleFormat::kE8m0, 64, 256, 1);

    EXPECT_EQ(PackedMatrix::pack(fp4.view()).bytes(), ops::matrix_bytes(fp4.view()));
    EXPECT_EQ(PackedMatrix::pack(fp8.view()).bytes(), 64 * 256 + 64 * 2);
}

}  // namespace
}  // namespace megamoe::cpu
