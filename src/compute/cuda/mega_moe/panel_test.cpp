#include "compute/cuda/mega_moe/panel.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "compute/cuda/mega_moe/heuristics.h"
#include "compute/ops/formats.h"

namespace megamoe::cuda {
namespace {

// The permutation instruction: byte i of the result is byte (selector >> 4 i) & 7 of {b, a}.
std::uint32_t byte_perm(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
    const std::uint64_t bytes = (std::uint64_t{b} << 32) | a;
    std::uint32_t out = 0;
    for (unsigned i = 0; i < 4; ++i) {
        out |= static_cast<std::uint32_t>((bytes >> (((selector >> (4 * i)) & 7U) * 8)) & 0xFFU) << (8 * i);
    }
    return out;
}

TEST(Panel, APackedWordUnfoldsToTheCodesThatWentIn) {
    for (int offset = 0; offset <= kMaxOffset; ++offset) {
        std::array<std::uint8_t, 8> table{};
        for (std::uint8_t v = 0; v < 8; ++v) {
            table[v] = ops::to_e4m3(std::ldexp(ops::from_e2m1(v), offset - 8));
        }
        const auto word_of = [&](std::size_t at) {
            return static_cast<std::uint32_t>(table[at] | table[at + 1] << 8 | table[at + 2] << 16 |
                                              table[at + 3] << 24);
        };
        for (std::uint32_t seed = 0; seed < 500; ++seed) {
            std::array<std::uint32_t, 8> codes{};
            std::uint32_t word = 0;
            for (std::int32_t n = 0; n < 8; ++n) {
                codes[static_cast<std::size_t>(n)] = (seed * 2654435761U >> (3 * n)) % 16;
                word |= place_code(n, codes[static_cast<std::size_t>(n)]);
            }
            const std::uint32_t select = word & 0x77777777U;
            const std::uint32_t low = byte_perm(word_of(0), word_of(4), select) | (word & 0x80808080U);
            const std::uint32_t high = byte_perm(word_of(0), word_of(4), select >> 16) | ((word << 4) & 0x80808080U);
            for (unsigned n = 0; n < 8; ++n) {
                const auto byte = static_cast<std::uint8_t>((n < 4 ? low : high) >> (8 * (n % 4)));
                const float want = std::ldexp(ops::from_e2m1(static_cast<std::uint8_t>(codes[n])), offset - 8);
                ASSERT_EQ(ops::from_e4m3(byte), want) << "offset " << offset << " code " << codes[n];
            }
        }
    }
}

TEST(Panel, ThreadsOfAWarpgroupCoverATileOnce) {
    std::set<std::pair<std::int32_t, std::int32_t>> elements;
    std::set<std::int32_t> words;
    for (std::int32_t thread = 0; thread < 128; ++thread) {
        for (std::int32_t step = 0; step < 4; ++step) {
            for (std::int32_t half = 0; half < 2; ++half) {
                words.insert(code_word_offset(thread, step, half));
                for (std::int32_t nibble = 0; nibble < 8; ++nibble) {
                    elements.emplace(tile_row(thread, half), tile_col(thread, step, nibble));
                }
            }
        }
    }
    EXPECT_EQ(elements.size(), std::size_t{kTileRows} * kPanelCols);
    EXPECT_EQ(words.size(), 1024U);
    EXPECT_EQ(*words.rbegin(), panel_layout(ExpertFormat::kMxfp4).tile_codes - 4);
}

TEST(Panel, AFirstLayerPanelHoldsGateAndUpOfTheSameChannels) {
    std::set<std::int32_t> gates;
    for (std::int32_t row = 0; row < kPanelRows; ++row) {
        const SourceRow r = source_row(1, 3, row);
        EXPECT_GE(r.row, 3 * kPanelChannels);
        EXPECT_LT(r.row, 4 * kPanelChannels);
        if (r.matrix == 1) {
            gates.insert(r.row);
            const SourceRow up = source_row(1, 3, row + 8);
            EXPECT_EQ(up.matrix, 3);
            EXPECT_EQ(up.row, r.row);
        }
    }
    EXPECT_EQ(gates.size(), std::size_t{kPanelChannels});
}

TEST(Panel, WeightsStayUnderFourAndAQuarterBits) {
    const double bits = 8.0 * panel_layout(ExpertFormat::kMxfp4).bytes / (kPanelRows * kPanelCols);
    EXPECT_LT(bits, 4.25);
}

TEST(Panel, DeepCodesRoundToTheNearestOfTheSmallestGrid) {
    EXPECT_EQ(round_deep_code(7, 1), 5U);    // 6 / 2 = 3
    EXPECT_EQ(round_deep_code(15, 2), 11U);  // -6 / 4 = -1.5
    EXPECT_EQ(round_deep_code(1, 3), 0U);
    EXPECT_EQ(round_deep_code(0, 5), 0U);
}

TEST(Heuristics, MoreRowsAreNeverExpectedToTakeLessTime) {
    for (const mega::Shape shape :
         {mega::Shape{1, 32, 6, 4096, 2048, 8192}, mega::Shape{8, 384, 6, 7168, 3072, 8192}}) {
        double last = 0;
        for (std::int32_t rows = 1; rows <= 8192; rows += 7) {
            const MegaMoeConfig config = choose_config(shape, rows);
            const double mean = static_cast<double>(rows) * shape.num_ranks * shape.top_k / shape.num_experts;
            const double clocks = expected_panel_clocks(config.tokens, mean);
            EXPECT_GE(clocks, 0.999 * last) << rows;
            EXPECT_GE(config.lag, 1);
            last = clocks;
        }
    }
}

TEST(Heuristics, NoRowsStillGetAValidBlock) {
    EXPECT_GT(choose_config({1, 32, 6, 4096, 2048, 8192}, 0).tokens, 0);
}

}  // namespace
}  // namespace megamoe::cuda
