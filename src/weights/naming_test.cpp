#include "weights/naming.h"

#include <gtest/gtest.h>

#include <set>

#include "weights/testing_names.h"
#include "weights/v4_schema.h"

namespace megamoe::weights {
namespace {

using testing::kGlobalSpellings;
using testing::kLayerSpellings;
using testing::Spelling;

// Every kind of layer once, with both routings.
ModelGeometry small_geometry() {
    ModelGeometry g;
    g.vocab_size = 8;
    g.hidden_size = 32;
    g.num_layers = 3;
    g.num_heads = 2;
    g.head_dim = 16;
    g.q_lora_rank = 8;
    g.o_groups = 2;
    g.o_lora_rank = 4;
    g.ratios = {0, 4, 128};
    g.index_heads = 2;
    g.index_dim = 8;
    g.num_experts = 4;
    g.top_k = 2;
    g.expert_inter = 32;
    g.num_hash_layers = 1;
    g.hc_mult = 4;
    return g;
}

TEST(Naming, LeavesReleasedNamesAsTheyAre) {
    const ModelGeometry g = small_geometry();
    std::vector<TensorSpec> specs = global_tensors(g);
    for (std::int32_t l = 0; l < g.num_layers; ++l) {
        for (const auto& list : {layer_tensors(g, l), expert_tensors(g, l, 3)}) {
            specs.insert(specs.end(), list.begin(), list.end());
        }
    }
    for (const TensorSpec& spec : specs) {
        EXPECT_EQ(released_name(spec.name), spec.name);
        EXPECT_NE(weight_kind(spec.name), WeightKind::kOther) << spec.name;
        if (spec.quantised()) {
            EXPECT_EQ(released_name(spec.scale_name()), spec.scale_name());
            EXPECT_EQ(weight_kind(spec.scale_name()), weight_kind(spec.name));
        }
    }
}

TEST(Naming, TranslatesEveryTransformersName) {
    for (const Spelling& s : kGlobalSpellings) {
        EXPECT_EQ(released_name(s.transformers), s.released);
    }
    for (const Spelling& s : kLayerSpellings) {
        const std::string released = "layers.17." + std::string(s.released);

        EXPECT_EQ(released_name("model.layers.17." + std::string(s.transformers)), released);
        EXPECT_EQ(released_name(released), released);
    }
}

TEST(Naming, TranslatesVariantsThatSomeReleasesUse) {
    const std::string layer = "model.layers.2.";
    EXPECT_EQ(released_name(layer + "self_attn.compressor.indexer.weights_proj.weight"),
              "layers.2.attn.indexer.weights_proj.weight");
    EXPECT_EQ(released_name(layer + "mlp.experts.12.gate_proj.weight"), "layers.2.ffn.experts.12.w1.weight");
    EXPECT_EQ(released_name(layer + "mlp.experts.12.up_proj.weight_scale_inv"), "layers.2.ffn.experts.12.w3.scale");
    EXPECT_EQ(released_name(layer + "mlp.experts.gate_up_proj.weight_scale_inv"),
              "layers.2.ffn.experts.gate_up_proj.scale");
    EXPECT_EQ(released_name("layers.2.self_attn.q_a_proj.weight"), "layers.2.attn.wq_a.weight");
}

TEST(Naming, LeavesUnknownNamesRecognisable) {
    for (const char* name : {"", "layers", "layers.", "layers.x.attn.sinks", "layers.3", "layers.3.",
                             "vision.tower.weight", "layers.1.attn.kv_projection.weight"}) {
        EXPECT_EQ(released_name(name), name);
        if (std::string_view(name).find("attn") == std::string_view::npos) {
            EXPECT_EQ(weight_kind(name), WeightKind::kOther) << name;
        }
    }
}

TEST(Naming, SeesMtpBeforeAnythingElse) {
    EXPECT_EQ(weight_kind("mtp.0.ffn.experts.3.w1.weight"), WeightKind::kMtp);
    EXPECT_EQ(weight_kind(released_name("model.mtp.0.norm.weight")), WeightKind::kMtp);
}

TEST(Naming, TellsTheIndexersCompressorFromTheAttentions) {
    EXPECT_EQ(weight_kind("layers.1.attn.compressor.ape"), WeightKind::kCompressor);
    EXPECT_EQ(weight_kind("layers.1.attn.indexer.compressor.ape"), WeightKind::kIndexer);
    EXPECT_EQ(weight_kind("layers.1.ffn.gate.tid2eid"), WeightKind::kHashTables);
    EXPECT_EQ(weight_kind("layers.1.ffn.gate.bias"), WeightKind::kRouter);
}

TEST(Naming, GivesEveryKindAWordOfItsOwn) {
    std::set<std::string_view> words;
    for (const WeightKind kind : kWeightKinds) {
        words.insert(name(kind));
    }
    EXPECT_EQ(words.size(), kWeightKinds.size());
}

}  // namespace
}  // namespace megamoe::weights
