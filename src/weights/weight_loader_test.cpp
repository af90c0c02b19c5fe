#include "weights/weight_loader.h"

#include <gtest/gtest.h>

#include "compute/ops/formats.h"
#include "weights/safetensors_writer.h"
#include "weights/testing_files.h"

namespace megamoe::weights {
namespace {

using testing::TempDir;

// FP8 experts stacked as transformers stacks them: codes and scales count up, so that every view can be told apart.
std::shared_ptr<const Checkpoint> stacked_fp8(const TempDir& dir, const ModelGeometry& g) {
    const std::int64_t experts = g.num_experts;
    const std::int64_t blocks = (g.hidden_size + 127) / 128;
    const std::int64_t gate_blocks = (2 * std::int64_t{g.expert_inter} + 127) / 128;
    const std::string prefix = "model.layers.0.mlp.experts.";
    const std::vector<TensorPlan> plans{
        {prefix + "gate_up_proj", Dtype::kF8E4m3, {experts, 2 * std::int64_t{g.expert_inter}, g.hidden_size}},
        {prefix + "gate_up_proj_scale_inv", Dtype::kF8E8m0, {experts, gate_blocks, blocks}},
        {prefix + "down_proj", Dtype::kF8E4m3, {experts, g.hidden_size, g.expert_inter}},
        {prefix + "down_proj_scale_inv", Dtype::kF8E8m0, {experts, blocks, (g.expert_inter + 127) / 128}},
    };
    auto writer = SafetensorsWriter::create(dir.file("f"), plans);
    EXPECT_TRUE(writer);
    for (const TensorPlan& plan : plans) {
        std::int64_t count = 1;
        for (const std::int64_t size : plan.shape) {
            count *= size;
        }
        std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] =
                plan.dtype == Dtype::kF8E4m3 ? static_cast<std::uint8_t>(i % 113) : static_cast<std::uint8_t>(120 + i);
        }
        EXPECT_TRUE(writer.value().append(std::as_bytes(std::span(bytes))));
    }
    EXPECT_TRUE(writer.value().finish());
    return Checkpoint::open_file(dir.file("f")).value();
}

ModelGeometry expert_geometry(std::int32_t inter) {
    ModelGeometry g;
    g.num_layers = 1;
    g.hidden_size = 192;  // ends in a block of 64
    g.expert_inter = inter;
    g.num_experts = 3;
    return g;
}

TEST(WeightLoader, CutsStackedFp8ExpertsAndTheirScales) {
    const TempDir dir;
    const ModelGeometry g = expert_geometry(128);
    const auto checkpoint = stacked_fp8(dir, g);
    WeightLoader loader(*checkpoint, g);
    std::vector<ExpertWeights> experts;

    loader.experts(0, experts);

    ASSERT_TRUE(loader.finish()) << loader.finish().error().what;
    EXPECT_EQ(loader.finish().value(), ops::WeightFormat::kFp8);
    EXPECT_FALSE(loader.as_released());
    const auto code = [](std::int64_t index) { return ops::from_e4m3(static_cast<std::uint8_t>(index % 113)); };
    const auto scale = [](std::int64_t index) { return ops::from_e8m0(static_cast<std::uint8_t>(120 + index)); };
    // Expert 2, row 5, column 150. gate_up: 256 rows of 192, scales 2 x 2; down: 192 rows of 128, scales 2 x 1.
    EXPECT_EQ(ops::matrix_element(experts[2].w1, 5, 150), code((2 * 256 + 5) * 192 + 150) * scale(2 * 4 + 1));
    EXPECT_EQ(ops::matrix_element(experts[2].w3, 5, 150), code((2 * 256 + 133) * 192 + 150) * scale(2 * 4 + 2 + 1));
    EXPECT_EQ(ops::matrix_element(experts[2].w2, 150, 5), code((2 * 192 + 150) * 128 + 5) * scale(2 * 2 + 1));
}

TEST(WeightLoader, RefusesStackedFp8WhoseScalesSpanGateAndUp) {
    const TempDir dir;
    const ModelGeometry g = expert_geometry(64);
    const auto checkpoint = stacked_fp8(dir, g);
    WeightLoader loader(*checkpoint, g);
    std::vector<ExpertWeights> experts;

    loader.experts(0, experts);

    ASSERT_FALSE(loader.finish());
    EXPECT_NE(loader.finish().error().what.find("FP8 with 64 gate rows"), std::string::npos);
}

}  // namespace
}  // namespace megamoe::weights
