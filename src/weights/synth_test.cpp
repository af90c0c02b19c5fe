#include "weights/synth.h"

#include <gtest/gtest.h>

#include <cmath>

#include "weights/model_cost.h"
#include "weights/testing_files.h"
#include "weights/v4_schema.h"
#include "weights/v4_weights.h"

namespace megamoe::weights {
namespace {

using testing::read_file;
using testing::TempDir;
using testing::write_file;

SynthOptions tiny_options() {
    SynthOptions options;
    options.geometry = find_synth_preset("tiny").value();
    options.seed = 11;
    return options;
}

std::uint64_t fnv(std::string_view bytes) {
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (const char c : bytes) {
        hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001B3U;
    }
    return hash;
}

void expect_contains(const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << "in: " << text << "\nexpected: " << part;
}

TEST(Synth, WritesACheckpointThatLoads) {
    for (const char* preset : {"tiny", "small"}) {
        const TempDir dir;
        SynthOptions options;
        options.geometry = find_synth_preset(preset).value();
        options.router_skew_sigma = 1;
        options.router_drift = 0.5;

        ASSERT_TRUE(write_synthetic_checkpoint(options, dir.path()));

        const auto loaded = load_v4(dir.path());
        ASSERT_TRUE(loaded) << loaded.error().what;
        EXPECT_EQ(loaded.value()->geometry, options.geometry);
        EXPECT_EQ(loaded.value()->expert_format, ops::WeightFormat::kFp4);
        EXPECT_EQ(loaded.value()->checkpoint->files().size(), 1U);
        std::int64_t bytes = 0;
        for (const auto& [name, tensor] : loaded.value()->checkpoint->tensors()) {
            bytes += static_cast<std::int64_t>(tensor.bytes.size());
        }
        EXPECT_EQ(bytes, sum(count_bytes(options.geometry)));
    }
}

TEST(Synth, GivesTheSameBytesOnEveryMachine) {
    const TempDir dir;
    SynthOptions options = tiny_options();
    options.router_skew_sigma = 1;
    options.router_drift = 0.6;

    ASSERT_TRUE(write_synthetic_checkpoint(options, dir.path()));

    // Changes only if somebody changes what a seed means: then say so where users will read it.
    EXPECT_EQ(fnv(read_file(dir.file("model.safetensors"))), 4874345221412780261U);
}

TEST(Synth, DoesNotLetShardsChangeATensor) {
    const TempDir one_dir;
    const TempDir many_dir;
    SynthOptions options = tiny_options();
    ASSERT_TRUE(write_synthetic_checkpoint(options, one_dir.path()));
    options.max_shard_bytes = 500'000;
    ASSERT_TRUE(write_synthetic_checkpoint(options, many_dir.path()));

    const auto one = load_v4(one_dir.path());
    const auto many = load_v4(many_dir.path());

    ASSERT_TRUE(one);
    ASSERT_TRUE(many) << many.error().what;
    EXPECT_GE(many.value()->checkpoint->files().size(), 6U);
    for (const std::string& file : many.value()->checkpoint->files()) {
        EXPECT_LT(std::filesystem::file_size(file), 600'000U);  // the header on top
    }
    for (const auto& [name, tensor] : one.value()->checkpoint->tensors()) {
        const Tensor* other = many.value()->checkpoint->find(name);
        ASSERT_NE(other, nullptr) << name;
        EXPECT_EQ(other->shape, tensor.shape);
        EXPECT_TRUE(std::equal(tensor.bytes.begin(), tensor.bytes.end(), other->bytes.begin(), other->bytes.end()))
            << name;
    }
}

TEST(Synth, AlignsEveryTensorToItsElements) {
    const TempDir dir;
    ASSERT_TRUE(write_synthetic_checkpoint(tiny_options(), dir.path()));
    const auto checkpoint = Checkpoint::open(dir.path());
    ASSERT_TRUE(checkpoint);
    for (const auto& [name, tensor] : checkpoint.value()->tensors()) {
        const std::uintptr_t width = tensor.dtype == Dtype::kI64    ? 8
                                     : tensor.dtype == Dtype::kF32  ? 4
                                     : tensor.dtype == Dtype::kBf16 ? 2
                                                                    : 1;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.bytes.data()) % width, 0U) << name;
    }
}

TEST(Synth, LeavesNoParameterConstant) {
    const TempDir dir;
    ASSERT_TRUE(write_synthetic_checkpoint(tiny_options(), dir.path()));
    const auto loaded = load_v4(dir.path());
    ASSERT_TRUE(loaded);
    for (const LayerWeights& layer : loaded.value()->layers) {
        for (const FloatVector* v : {&layer.attn_norm, &layer.ffn_norm, &layer.hc_attn.base, &layer.hc_ffn.scale,
                                     &layer.attn_sink, &layer.q_norm, &layer.kv_norm}) {
            ASSERT_GT(v->size(), 1U);
            EXPECT_NE(v->front(), v->back());
        }
        for (const float s : layer.hc_attn.scale) {
            EXPECT_GT(s, 0);
        }
    }
}

TEST(Synth, KeepsMatricesAtTheirIntendedSize) {
    const TempDir dir;
    ASSERT_TRUE(write_synthetic_checkpoint(tiny_options(), dir.path()));
    const auto loaded = load_v4(dir.path());
    ASSERT_TRUE(loaded);
    V4Weights weights = *loaded.value();
    class Checker : public TensorVisitor {
      public:
        void matrix(const TensorSpec& spec, ops::MatrixView& m) override {
            double square = 0;
            for (std::int32_t r = 0; r < m.rows; ++r) {
                for (std::int32_t c = 0; c < m.cols; ++c) {
                    square += std::pow(ops::matrix_element(m, r, c), 2) / m.rows / m.cols;
                }
            }
            const bool adds_to_streams = spec.name.ends_with("wo_b.weight") || spec.name.ends_with("w2.weight");
            const double fan_in = adds_to_streams ? m.cols * 2.0 * num_layers : m.cols;
            const double gain = spec.name == "embed.weight"                    ? std::sqrt(m.cols)
                                : spec.name == "head.weight"                   ? 2
                                : weight_kind(spec.name) == WeightKind::kHyper ? 0.5
                                                                               : 1;
            EXPECT_NEAR(std::sqrt(square * fan_in) / gain, 1, 0.07)
                << spec.name;  // a few hundred draws; FP4 rounds too
        }
        void vector(const TensorSpec& spec, FloatVector& v) override {
            for (const float x : v) {
                EXPECT_LT(std::abs(x), 6) << spec.name;
            }
        }
        void table(const TensorSpec&, std::vector<std::int16_t>&) override {}

        const double num_layers = 6;
    };
    Checker checker;
    visit_globals(weights.geometry, weights, checker);
    for (std::int32_t l = 0; l < weights.geometry.num_layers; ++l) {
        LayerWeights& layer = weights.layers[static_cast<std::size_t>(l)];
        visit_layer(weights.geometry, l, layer, checker);
        visit_expert(weights.geometry, l, 7, layer.experts[7], checker);
    }
}

TEST(Synth, RefusesAFolderThatHoldsACheckpoint) {
    for (const char* file :
         {"config.json", "model.safetensors", "model.safetensors.index.json", "x-00001.safetensors"}) {
        const TempDir dir;
        write_file(dir.file(file), "");

        const auto done = write_synthetic_checkpoint(tiny_options(), dir.path());

        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, Errc::kFailedPrecondition);
        expect_contains(done.error().what, file);
    }
}

TEST(Synth, RefusesOptionsOutOfRange) {
    const TempDir dir;
    const auto error_with = [&](const std::function<void(SynthOptions&)>& change) {
        SynthOptions options = tiny_options();
        change(options);
        const auto done = write_synthetic_checkpoint(options, dir.path());
        return done ? "written" : done.error().what;
    };
    expect_contains(error_with([](auto& o) { o.router_skew_sigma = -1; }), "router skew -1 must be between 0 and 4");
    expect_contains(error_with([](auto& o) { o.router_skew_sigma = std::nan(""); }), "router skew nan");
    expect_contains(error_with([](auto& o) { o.router_drift = 1.5; }), "router drift 1.5 must be between 0 and 1");
    expect_contains(error_with([](auto& o) { o.max_shard_bytes = 0; }), "shard size 0 must be positive");
    expect_contains(error_with([](auto& o) { o.geometry.vocab_size = 511; }), "vocab_size 511 is below 512");
    expect_contains(error_with([](auto& o) { o.geometry.hidden_size = 100; }), "hidden_size 100");
    expect_contains(error_with([](auto& o) { o.geometry.top_k = 17; }), "num_experts_per_tok 17 exceeds");
    EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(Synth, ReportsAFolderThatCannotBeMade) {
    const TempDir dir;
    write_file(dir.file("file"), "");

    EXPECT_FALSE(write_synthetic_checkpoint(tiny_options(), dir.file("file/inside")));
}

TEST(Synth, HasPresetsOfTheStatedSizes) {
    const auto parameters = [](const char* name) {
        return static_cast<double>(sum(count_parameters(find_synth_preset(name).value())));
    };
    EXPECT_NEAR(parameters("tiny") / 1e6, 3.4, 0.06);
    EXPECT_NEAR(parameters("small") / 1e6, 132, 0.5);
    EXPECT_NEAR(static_cast<double>(sum(count_bytes(find_synth_preset("flash-slice").value()))) / 1e9, 1.15, 0.006);
    for (const SynthPreset& preset : synth_presets()) {
        EXPECT_TRUE(parse_model_geometry(to_config_json(preset.geometry))) << preset.name;
    }
}

TEST(Synth, NamesTheKnownPresets) {
    const auto preset = find_synth_preset("huge");

    ASSERT_FALSE(preset);
    EXPECT_EQ(to_string(preset.error()), "no preset huge (known are tiny, small, flash-slice)");
}

}  // namespace
}  // namespace megamoe::weights
