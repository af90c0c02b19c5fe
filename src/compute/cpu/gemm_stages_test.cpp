#include "compute/cpu/gemm_stages.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <random>
#include <vector>

#include "compute/ops/formats.h"

namespace megamoe::cpu {
namespace {

TEST(GemmStages, PackingOnceAndRunningTasksGivesTheBitsOfGemm) {
    EXPECT_TRUE(rc::check("any size, both element types", [] {
        const auto rows = *rc::gen::inRange(1, 90);
        const auto cols = *rc::gen::inRange(1, 400);
        const auto outs = *rc::gen::inRange(1, 200);
        const auto math = *rc::gen::element(Math::kF32, Math::kBf16);
        const Isa isa = detect_isa();
        std::mt19937 rng(static_cast<std::uint32_t>(rows * 1000 + cols));
        std::vector<std::uint16_t> codes(static_cast<std::size_t>(outs * cols));
        std::vector<float> a(static_cast<std::size_t>(rows * cols));
        for (auto& code : codes) {
            code = ops::to_bf16(static_cast<float>(rng()) / 2e9F - 1);
        }
        for (float& v : a) {
            v = ops::round_bf16(static_cast<float>(rng()) / 2e9F - 1);
        }
        const auto w = PackedMatrix::pack(
            {.format = ops::WeightFormat::kBf16, .rows = outs, .cols = cols, .weight = codes.data()});
        std::vector<float> want(static_cast<std::size_t>(rows * outs));
        Workers alone(1);
        gemm(isa, alone,
             {.w = &w, .a = a.data(), .lda = cols, .m = rows, .out = want.data(), .ldo = outs, .math = math});

        const Packing packing = packing_for(isa, math, w.format());
        std::vector<std::byte> packed(static_cast<std::size_t>(packing.bytes(rows, cols)));
        for (std::int32_t r = 0; r < rows; ++r) {
            if (r % 2 == 0) {
                pack_row(packing, a.data() + r * cols, cols, r, rows, packed.data());
            } else {
                std::vector<std::uint16_t> row(static_cast<std::size_t>(cols));
                for (std::int32_t i = 0; i < cols; ++i) {
                    row[static_cast<std::size_t>(i)] = ops::to_bf16(a[static_cast<std::size_t>(r * cols + i)]);
                }
                pack_row(packing, row.data(), cols, r, rows, packed.data());
            }
        }
        std::vector<float> got(want.size());
        for (std::int32_t panel = 0; panel < w.num_panels(); panel += kTaskPanels) {
            gemm_task(isa, math, w, panel, packed.data(), rows, false, got.data() + panel * kPanelRows, outs);
        }

        RC_ASSERT(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)) == 0);
    }));
}

}  // namespace
}  // namespace megamoe::cpu
