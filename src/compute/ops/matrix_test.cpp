#include "compute/ops/matrix.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace megamoe::ops {
namespace {

TEST(MatrixElement, Fp4DecodesTheExampleOfTheSpec) {
    std::vector<std::uint8_t> weight(16);
    weight[0] = 0x52;
    weight[1] = 0xC1;
    const std::array<std::uint8_t, 1> scale{126};
    const MatrixView m{WeightFormat::kFp4, ScaleFormat::kE8m0, 1, 32, weight.data(), scale.data()};

    EXPECT_EQ(matrix_element(m, 0, 0), 0.5F);
    EXPECT_EQ(matrix_element(m, 0, 1), 1.5F);
    EXPECT_EQ(matrix_element(m, 0, 2), 0.25F);
    EXPECT_EQ(matrix_element(m, 0, 3), -1.0F);
    EXPECT_EQ(matrix_element(m, 0, 4), 0.0F);
    EXPECT_EQ(matrix_bytes(m), 17);
}

TEST(MatrixElement, Fp8UsesTheScaleOfItsBlockAndShortLastBlocks) {
    const std::int32_t rows = 130;
    const std::int32_t cols = 200;
    const std::vector<std::uint8_t> weight(static_cast<std::size_t>(rows * cols), 0x38);  // 1.0
    const std::array<float, 4> scale{1, 2, 3, 4};
    const MatrixView m{WeightFormat::kFp8, ScaleFormat::kF32, rows, cols, weight.data(), scale.data()};

    EXPECT_EQ(matrix_element(m, 127, 127), 1.0F);
    EXPECT_EQ(matrix_element(m, 127, 128), 2.0F);
    EXPECT_EQ(matrix_element(m, 128, 127), 3.0F);
    EXPECT_EQ(matrix_element(m, 129, 199), 4.0F);
    EXPECT_EQ(matrix_bytes(m), rows * cols + 16);
}

TEST(MatrixElement, ReadsElementsThatAreNotAligned) {
    std::array<char, 9> bytes{};
    const float value = 3.25F;
    std::copy_n(reinterpret_cast<const char*>(&value), 4, bytes.data() + 5);
    const MatrixView m{WeightFormat::kF32, ScaleFormat::kNone, 1, 2, bytes.data() + 1, nullptr};

    EXPECT_EQ(matrix_element(m, 0, 1), 3.25F);
    EXPECT_EQ(matrix_bytes(m), 8);
}

}  // namespace
}  // namespace megamoe::ops
