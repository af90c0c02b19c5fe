#include "weights/v4_weights.h"

#include <gtest/gtest.h>

#include <functional>

#include "compute/ops/formats.h"
#include "weights/naming.h"
#include "weights/safetensors_writer.h"
#include "weights/testing_files.h"
#include "weights/testing_geometries.h"
#include "weights/testing_names.h"
#include "weights/v4_schema.h"

namespace megamoe::weights {
namespace {

using ops::ScaleFormat;
using ops::WeightFormat;
using testing::read_file;
using testing::TempDir;
using testing::write_file;

constexpr const char* kTiny = "tests/golden/tiny-b";

struct OwnedTensor {
    Dtype dtype{};
    std::vector<std::int64_t> shape;
    std::string bytes;
};
using Tensors = std::map<std::string, OwnedTensor>;

Tensors read_tensors(const std::string& dir) {
    const auto checkpoint = Checkpoint::open(dir);
    EXPECT_TRUE(checkpoint);
    Tensors tensors;
    for (const auto& [name, t] : checkpoint.value()->tensors()) {
        tensors[name] = {t.dtype, t.shape, std::string(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size())};
    }
    return tensors;
}

// A checkpoint folder with tiny-b's config and these tensors.
void write_checkpoint(const TempDir& dir, const Tensors& tensors) {
    write_file(dir.file("config.json"), read_file(std::string(kTiny) + "/config.json"));
    std::vector<TensorPlan> plans;
    for (const auto& [name, t] : tensors) {
        plans.push_back({name, t.dtype, t.shape});
    }
    auto writer = SafetensorsWriter::create(dir.file("model.safetensors"), plans);
    ASSERT_TRUE(writer);
    for (const auto& [name, t] : tensors) {
        ASSERT_TRUE(writer.value().append(std::as_bytes(std::span(t.bytes))));
    }
    ASSERT_TRUE(writer.value().finish());
}

// What loading tiny-b says after `change`.
std::string error_after(const std::function<void(Tensors&)>& change) {
    const TempDir dir;
    Tensors tensors = read_tensors(kTiny);
    change(tensors);
    write_checkpoint(dir, tensors);
    const auto weights = load_v4(dir.path());
    return weights ? "loaded" : weights.error().what;
}

void expect_contains(const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << "in: " << text << "\nexpected: " << part;
}

std::string bytes_of(const std::vector<float>& values, Dtype dtype) {
    std::string bytes;
    for (const float v : values) {
        const std::uint16_t half = ops::to_bf16(v);
        const auto* data =
            dtype == Dtype::kF32 ? reinterpret_cast<const char*>(&v) : reinterpret_cast<const char*>(&half);
        bytes.append(data, dtype == Dtype::kF32 ? sizeof(v) : sizeof(half));
    }
    return bytes;
}

// A matrix as plain values: what a dequantised checkpoint stores.
OwnedTensor dequantised(const ops::MatrixView& m, Dtype dtype) {
    std::vector<float> values;
    for (std::int32_t r = 0; r < m.rows; ++r) {
        for (std::int32_t c = 0; c < m.cols; ++c) {
            values.push_back(ops::matrix_element(m, r, c));
        }
    }
    return {dtype, {m.rows, m.cols}, bytes_of(values, dtype)};
}

void expect_equal(const ops::MatrixView& a, const ops::MatrixView& b, const std::string& what) {
    ASSERT_EQ(a.rows, b.rows) << what;
    ASSERT_EQ(a.cols, b.cols) << what;
    for (std::int32_t r = 0; r < a.rows; ++r) {
        for (std::int32_t c = 0; c < a.cols; ++c) {
            ASSERT_EQ(ops::matrix_element(a, r, c), ops::matrix_element(b, r, c)) << what << " " << r << "," << c;
        }
    }
}

// Walks two models side by side. Exact: BF16 and F32 hold every FP8 and FP4 value.
void expect_same_model(const V4Weights& a, const V4Weights& b) {
    class Collector : public TensorVisitor {
      public:
        void matrix(const TensorSpec& spec, ops::MatrixView& m) override { matrices.emplace(spec.name, m); }
        void vector(const TensorSpec& spec, FloatVector& v) override { vectors.emplace(spec.name, v); }
        void table(const TensorSpec& spec, std::vector<std::int16_t>& t) override { tables.emplace(spec.name, t); }

        void walk(V4Weights w) {
            visit_globals(w.geometry, w, *this);
            for (std::int32_t l = 0; l < w.geometry.num_layers; ++l) {
                LayerWeights& layer = w.layers[static_cast<std::size_t>(l)];
                visit_layer(w.geometry, l, layer, *this);
                for (std::int32_t e = 0; e < w.geometry.num_experts; ++e) {
                    visit_expert(w.geometry, l, e, layer.experts[static_cast<std::size_t>(e)], *this);
                }
            }
        }
        std::map<std::string, ops::MatrixView> matrices;
        std::map<std::string, FloatVector> vectors;
        std::map<std::string, std::vector<std::int16_t>> tables;
    };
    Collector left;
    Collector right;
    left.walk(a);
    right.walk(b);
    EXPECT_EQ(left.vectors, right.vectors);
    EXPECT_EQ(left.tables, right.tables);
    ASSERT_EQ(left.matrices.size(), right.matrices.size());
    for (const auto& [name, m] : left.matrices) {
        expect_equal(m, right.matrices.at(name), name);
    }
}

// tiny-b as transformers would name it, experts stacked: packed as they are, or dequantised to BF16.
Tensors transformers_form(const V4Weights& tiny, const Tensors& released, bool packed) {
    Tensors tensors;
    for (const auto& [name, t] : released) {
        if (weight_kind(name) != WeightKind::kRoutedExperts) {
            tensors[testing::transformers_name(name)] = t;
        }
    }
    for (std::size_t l = 0; l < tiny.layers.size(); ++l) {
        const std::string experts = "layers." + std::to_string(l) + ".ffn.experts.";
        const auto stack = [&](const std::string& to, const std::vector<std::string>& parts,
                               const std::string& suffix) {
            OwnedTensor stacked;
            std::int64_t rows = 0;
            for (std::size_t e = 0; e < tiny.layers[l].experts.size(); ++e) {
                rows = 0;
                for (const std::string& part : parts) {
                    OwnedTensor t = released.at(experts + std::to_string(e) + part + suffix);
                    if (!packed) {
                        const ExpertWeights& expert = tiny.layers[l].experts[e];
                        t = dequantised(part == ".w1"   ? expert.w1
                                        : part == ".w3" ? expert.w3
                                                        : expert.w2,
                                        Dtype::kBf16);
                    }
                    rows += t.shape[0];
                    stacked.dtype = t.dtype;
                    stacked.shape = {static_cast<std::int64_t>(e) + 1, rows, t.shape[1]};
                    stacked.bytes += t.bytes;
                }
            }
            tensors[testing::transformers_name(experts + to + suffix)] = stacked;
        };
        stack("gate_up_proj", {".w1", ".w3"}, ".weight");
        stack("down_proj", {".w2"}, ".weight");
        if (packed) {
            stack("gate_up_proj", {".w1", ".w3"}, ".scale");
            stack("down_proj", {".w2"}, ".scale");
        }
    }
    return tensors;
}

TEST(V4Weights, CountsTheTensorsOfTheKnownModels) {
    EXPECT_EQ(expected_tensor_count(testing::flash_geometry()), 67612);
    EXPECT_EQ(expected_tensor_count(testing::pro_geometry()), 142773);
    EXPECT_EQ(expected_tensor_count(parse_model_geometry(read_file("tests/golden/tiny-b/config.json")).value()), 786);
    EXPECT_EQ(expected_tensor_count(parse_model_geometry(read_file("models/mini/config.json")).value()), 1373);
}

TEST(V4Weights, LoadsTheMiniModel) {
    const auto loaded = load_v4("models/mini");

    ASSERT_TRUE(loaded) << loaded.error().what;
    const V4Weights& w = *loaded.value();
    EXPECT_EQ(w.expert_format, WeightFormat::kFp4);
    EXPECT_EQ(w.num_mtp_tensors, 0);
    EXPECT_EQ(w.layers.size(), 6U);
    EXPECT_EQ(w.embed.rows, 4096);
    EXPECT_EQ(w.layers[0].token_experts.size(), 4096U * 4);
    EXPECT_TRUE(w.layers[0].gate_bias.empty());
    EXPECT_EQ(w.layers[2].gate_bias.size(), 32U);
    EXPECT_EQ(w.layers[2].experts.size(), 32U);
    EXPECT_EQ(w.layers[2].compressor.ape.size(), 128U * 128);
    EXPECT_EQ(w.layers[1].indexer.compressor.ape.size(), 4U * 128);
    EXPECT_EQ(w.layers[0].compressor.wkv.weight, nullptr);
}

TEST(V4Weights, ReadsValuesThroughItsViews) {
    const auto loaded = load_v4(kTiny);
    ASSERT_TRUE(loaded) << loaded.error().what;
    const Tensors raw = read_tensors(kTiny);
    const auto& w2 = loaded.value()->layers[4].experts[7].w2;
    const auto& codes = raw.at("layers.4.ffn.experts.7.w2.weight").bytes;
    const auto& scales = raw.at("layers.4.ffn.experts.7.w2.scale").bytes;

    EXPECT_EQ(w2.scale_format, ScaleFormat::kE8m0);
    const auto code = static_cast<std::uint8_t>(codes[5 * 32 + 10]);  // row 5 of 64 columns, columns 20 and 21
    const float scale = ops::from_e8m0(static_cast<std::uint8_t>(scales[5 * 2]));
    EXPECT_EQ(ops::matrix_element(w2, 5, 20), ops::from_e2m1(code & 15) * scale);
    EXPECT_EQ(ops::matrix_element(w2, 5, 21), ops::from_e2m1(static_cast<std::uint8_t>(code >> 4)) * scale);
}

TEST(V4Weights, LoadsTheTransformersFormWithPackedExperts) {
    const TempDir dir;
    const auto tiny = load_v4(kTiny);
    ASSERT_TRUE(tiny);
    write_checkpoint(dir, transformers_form(*tiny.value(), read_tensors(kTiny), /*packed=*/true));

    const auto loaded = load_v4(dir.path());

    ASSERT_TRUE(loaded) << loaded.error().what;
    EXPECT_EQ(loaded.value()->expert_format, WeightFormat::kFp4);
    expect_same_model(*tiny.value(), *loaded.value());
}

TEST(V4Weights, LoadsTheTransformersFormWithDequantisedExperts) {
    const TempDir dir;
    const auto tiny = load_v4(kTiny);
    ASSERT_TRUE(tiny);
    write_checkpoint(dir, transformers_form(*tiny.value(), read_tensors(kTiny), /*packed=*/false));

    const auto loaded = load_v4(dir.path());

    ASSERT_TRUE(loaded) << loaded.error().what;
    EXPECT_EQ(loaded.value()->expert_format, WeightFormat::kBf16);
    expect_same_model(*tiny.value(), *loaded.value());
}

TEST(V4Weights, LoadsDequantisedDenseMatrices) {
    for (const Dtype dtype : {Dtype::kBf16, Dtype::kF32}) {
        const TempDir dir;
        const auto tiny = load_v4(kTiny);
        ASSERT_TRUE(tiny);
        Tensors tensors = read_tensors(kTiny);
        tensors["layers.1.attn.wq_b.weight"] = dequantised(tiny.value()->layers[1].wq_b, dtype);
        tensors.erase("layers.1.attn.wq_b.scale");
        tensors["embed.weight"] = dequantised(tiny.value()->embed, dtype);
        write_checkpoint(dir, tensors);

        const auto loaded = load_v4(dir.path());

        ASSERT_TRUE(loaded) << loaded.error().what;
        expect_same_model(*tiny.value(), *loaded.value());
    }
}

TEST(V4Weights, LoadsFp8ScalesInFloat32) {
    const TempDir dir;
    const auto tiny = load_v4(kTiny);
    ASSERT_TRUE(tiny);
    Tensors tensors = read_tensors(kTiny);
    OwnedTensor& scale = tensors.at("layers.1.attn.wq_b.scale");
    std::vector<float> values;
    for (const char byte : scale.bytes) {
        values.push_back(ops::from_e8m0(static_cast<std::uint8_t>(byte)));
    }
    scale = {Dtype::kF32, scale.shape, bytes_of(values, Dtype::kF32)};
    write_checkpoint(dir, tensors);

    const auto loaded = load_v4(dir.path());

    ASSERT_TRUE(loaded) << loaded.error().what;
    EXPECT_EQ(loaded.value()->layers[1].wq_b.scale_format, ScaleFormat::kF32);
    expect_same_model(*tiny.value(), *loaded.value());
}

TEST(V4Weights, AcceptsTheOtherDtypesOfPackedFp4AndTables) {
    EXPECT_EQ(error_after([](Tensors& tensors) {
                  for (auto& [name, t] : tensors) {
                      if (weight_kind(name) == WeightKind::kRoutedExperts && t.dtype == Dtype::kI8) {
                          t.dtype = Dtype::kF4;
                          t.shape.back() *= 2;
                      }
                  }
                  OwnedTensor& table = tensors.at("layers.0.ffn.gate.tid2eid");
                  std::string narrow;
                  for (std::size_t i = 0; i < table.bytes.size(); i += 8) {
                      narrow += table.bytes.substr(i, 4);
                  }
                  table = {Dtype::kI32, table.shape, narrow};
              }),
              "loaded");
}

TEST(V4Weights, ListsAllMissingTensorsAtOnce) {
    const std::string text = error_after([](Tensors& tensors) {
        for (int e = 0; e < 16; ++e) {
            tensors.erase("layers.2.ffn.experts." + std::to_string(e) + ".w3.weight");
        }
        tensors.erase("layers.1.attn.compressor.ape");
        tensors.erase("layers.0.attn.wkv.scale");
    });

    expect_contains(text,
                    "18 tensors are missing: layers.0.attn.wkv.scale, layers.1.attn.compressor.ape, "
                    "layers.2.ffn.experts.0.w3.weight");
    expect_contains(text, "and 8 more");
}

TEST(V4Weights, ReportsAWrongShapeWithFileFoundAndExpected) {
    const std::string text = error_after([](Tensors& tensors) {
        tensors.at("layers.3.attn.wq_a.weight").shape = {128, 64};
        tensors.at("norm.weight").shape = {64, 2};
    });

    expect_contains(text, "model.safetensors: tensor layers.3.attn.wq_a.weight has shape [128,64], expected [64,128]");
    expect_contains(text, "tensor norm.weight has shape [64,2], expected [128]");
}

TEST(V4Weights, RefusesFormatsByName) {
    struct Case {
        const char* tensor;
        Dtype dtype;
        const char* expected;
    };
    const Case cases[] = {
        {"layers.0.attn.wq_a.weight", Dtype::kF8E5m2, "has dtype F8_E5M2, expected F8_E4M3, BF16 or F32"},
        {"layers.0.attn.wq_a.weight", Dtype::kI8, "has dtype I8, expected F8_E4M3, BF16 or F32"},
        {"layers.0.attn.wq_a.scale", Dtype::kU8, "has dtype U8, expected F8_E8M0 or F32"},
        {"layers.0.ffn.experts.0.w1.weight", Dtype::kBool, "has dtype BOOL, expected packed FP4"},
        {"layers.0.ffn.experts.0.w1.scale", Dtype::kU8, "has dtype U8, expected F8_E8M0"},
        {"embed.weight", Dtype::kF16, "has dtype F16, expected BF16 or F32"},
        {"norm.weight", Dtype::kF16, "has dtype F16, expected BF16 or F32"},
        {"hc_head_fn", Dtype::kI32, "has dtype I32, expected F32"},
        {"layers.0.ffn.gate.tid2eid", Dtype::kF64, "has dtype F64, expected I64 or I32"},
    };
    for (const Case& c : cases) {
        expect_contains(error_after([&](Tensors& tensors) { tensors.at(c.tensor).dtype = c.dtype; }), c.expected);
    }
}

TEST(V4Weights, RefusesExpertsOfTwoFormats) {
    expect_contains(
        error_after([](Tensors& tensors) {
            tensors["layers.1.ffn.experts.3.w1.weight"] = {Dtype::kBf16, {64, 128}, std::string(64 * 128 * 2, 0)};
        }),
        "layers.1.ffn.experts.3.w1.weight has dtype BF16, another format than the first routed expert");
}

TEST(V4Weights, ChecksTheRangeOfHashTables) {
    const auto set_entry = [](std::size_t index, std::int64_t expert) {
        return [=](Tensors& tensors) {
            std::memcpy(tensors.at("layers.1.ffn.gate.tid2eid").bytes.data() + index * 8, &expert, 8);
        };
    };
    expect_contains(error_after(set_entry(3 * 100, 16)),
                    "layers.1.ffn.gate.tid2eid sends token 100 to expert 16 of 16");
    expect_contains(error_after(set_entry(3 * 511 + 2, -1)), "sends token 511 to expert -1 of 16");
    expect_contains(error_after([&](Tensors& tensors) {
                        set_entry(30, 5)(tensors);
                        set_entry(31, 5)(tensors);
                    }),
                    "sends token 10 to expert 5 twice");
}

TEST(V4Weights, SkipsMtpAndUnknownTensors) {
    const TempDir dir;
    Tensors tensors = read_tensors(kTiny);
    tensors["mtp.0.norm.weight"] = tensors.at("norm.weight");
    tensors["mtp.0.ffn.gate.bias"] = tensors.at("layers.3.ffn.gate.bias");
    tensors["vision.weight"] = tensors.at("norm.weight");
    write_checkpoint(dir, tensors);

    const auto loaded = load_v4(dir.path());

    ASSERT_TRUE(loaded) << loaded.error().what;
    EXPECT_EQ(loaded.value()->num_mtp_tensors, 2);
}

TEST(V4Weights, RefusesOneWeightUnderTwoNames) {
    expect_contains(error_after([](Tensors& tensors) { tensors["model.norm.weight"] = tensors.at("norm.weight"); }),
                    "is the same weight as model.norm.weight");
}

TEST(V4Weights, ReportsAFolderWithoutConfig) {
    const TempDir dir;

    const auto loaded = load_v4(dir.path());

    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, Errc::kNotFound);
    expect_contains(loaded.error().what, "config.json: No such file");
}

}  // namespace
}  // namespace megamoe::weights
