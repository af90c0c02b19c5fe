#include "weights/synth_encode.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "compute/ops/matrix.h"
#include "weights/synth_random.h"

namespace megamoe::weights {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<float> random_rows(std::int64_t count, double deviation) {
    const SynthRandom random(1, "rows");
    std::vector<float> rows(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = static_cast<float>(deviation) * random.normal(static_cast<std::int64_t>(i));
    }
    return rows;
}

TEST(SynthEncode, StaysWithinHalfAStepOfFp8) {
    EXPECT_TRUE(rc::check([] {
        const auto num_rows = *rc::gen::inRange(1, 129);
        const auto cols = *rc::gen::inRange(1, 300);
        const std::vector<float> rows =
            random_rows(std::int64_t{num_rows} * cols, std::exp2(*rc::gen::inRange(-20, 20)));
        Bytes codes;
        Bytes scales;

        encode_fp8(rows, cols, codes, scales);

        RC_ASSERT(codes.size() == rows.size());
        RC_ASSERT(static_cast<int>(scales.size()) == (cols + 127) / 128);
        const ops::MatrixView view{
            ops::WeightFormat::kFp8, ops::ScaleFormat::kE8m0, num_rows, cols, codes.data(), scales.data()};
        for (std::int32_t r = 0; r < num_rows; ++r) {
            for (std::int32_t c = 0; c < cols; ++c) {
                const float x = rows[static_cast<std::size_t>(r * cols + c)];
                const float scale = std::exp2f(
                    static_cast<float>(std::to_integer<int>(scales[static_cast<std::size_t>(c / 128)])) - 127);
                const float error = std::abs(ops::matrix_element(view, r, c) - x);
                RC_ASSERT(error <= std::abs(x) / 16 + scale * 0x1p-10F);  // 3 bits after the leading one; subnormals
            }
        }
    }));
}

TEST(SynthEncode, StaysWithinHalfAStepOfFp4) {
    EXPECT_TRUE(rc::check([] {
        const auto num_rows = *rc::gen::inRange(1, 20);
        const auto cols = 32 * *rc::gen::inRange(1, 5);
        const std::vector<float> rows =
            random_rows(std::int64_t{num_rows} * cols, std::exp2(*rc::gen::inRange(-20, 20)));
        Bytes codes;
        Bytes scales;

        encode_fp4(rows, cols, codes, scales);

        RC_ASSERT(codes.size() * 2 == rows.size());
        RC_ASSERT(scales.size() * 32 == rows.size());
        const ops::MatrixView view{
            ops::WeightFormat::kFp4, ops::ScaleFormat::kE8m0, num_rows, cols, codes.data(), scales.data()};
        for (std::int32_t r = 0; r < num_rows; ++r) {
            for (std::int32_t c = 0; c < cols; ++c) {
                const auto i = static_cast<std::size_t>(r * cols + c);
                const float scale = std::exp2f(static_cast<float>(std::to_integer<int>(scales[i / 32])) - 127);
                const float step = std::abs(rows[i]) > 4 * scale ? 2 : std::abs(rows[i]) > 2 * scale ? 1 : 0.5F;
                RC_ASSERT(std::abs(ops::matrix_element(view, r, c) - rows[i]) <= step / 2 * scale);
            }
        }
    }));
}

TEST(SynthEncode, UsesTheWholeRange) {
    Bytes codes;
    Bytes scales;
    std::vector<float> group(32, 0.0F);
    group[5] = -6;  // fits exactly at scale 1

    encode_fp4(group, 32, codes, scales);

    EXPECT_EQ(scales[0], std::byte{127});
    EXPECT_EQ(codes[2], std::byte{0xF0});  // column 5 is the high nibble of byte 2
}

TEST(SynthEncode, GivesZerosAValidScale) {
    Bytes codes;
    Bytes scales;

    encode_fp8(std::vector<float>(64, 0.0F), 64, codes, scales);

    EXPECT_EQ(codes, Bytes(64));
    EXPECT_NE(scales[0], std::byte{255});
}

}  // namespace
}  // namespace megamoe::weights
