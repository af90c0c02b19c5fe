#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "weights/synth.h"

namespace megamoe::weights {
namespace {

// What all released models and all presets share.
ModelGeometry common_geometry() {
    ModelGeometry g;
    g.yarn = {16, 65536, 32, 1};
    g.routed_scale = 1.5;
    g.swiglu_limit = 10;
    g.hc_mult = 4;
    g.hc_iters = 20;
    g.hc_eps = 1e-6F;
    g.rms_eps = 1e-6F;
    g.window = 128;
    return g;
}

// The smallest model that has every branch: the geometry of the golden files.
ModelGeometry tiny() {
    ModelGeometry g = common_geometry();
    g.vocab_size = 512;
    g.hidden_size = 128;
    g.ratios = {0, 4, 16, 4, 16, 0};
    g.num_layers = static_cast<std::int32_t>(g.ratios.size());
    g.num_heads = 8;
    g.head_dim = 64;
    g.rope_dim = 16;
    g.q_lora_rank = 64;
    g.o_groups = 2;
    g.o_lora_rank = 32;
    g.window = 16;
    g.yarn = {4, 64, 32, 1};
    g.max_positions = 512;
    g.index_heads = 16;
    g.index_dim = 32;
    g.index_topk = 6;
    g.num_experts = 16;
    g.top_k = 3;
    g.expert_inter = 64;
    g.num_hash_layers = 2;
    return g;
}

ModelGeometry small() {
    ModelGeometry g = common_geometry();
    g.vocab_size = 4096;
    g.hidden_size = 1024;
    g.ratios = {0, 4, 128, 4};
    g.num_layers = static_cast<std::int32_t>(g.ratios.size());
    g.num_heads = 16;
    g.head_dim = 128;
    g.rope_dim = 64;
    g.q_lora_rank = 512;
    g.o_groups = 4;
    g.o_lora_rank = 256;
    g.yarn = {4, 2048, 32, 1};
    g.max_positions = 8192;
    g.index_heads = 16;
    g.index_dim = 64;
    g.index_topk = 64;
    g.num_experts = 16;
    g.top_k = 4;
    g.expert_inter = 512;
    g.num_hash_layers = 1;
    return g;
}

// Layers of the size of DeepSeek-V4-Flash, one of each kind, with fewer experts and a small vocabulary.
ModelGeometry flash_slice() {
    ModelGeometry g = common_geometry();
    g.vocab_size = 4096;
    g.hidden_size = 4096;
    g.ratios = {0, 4, 128};
    g.num_layers = static_cast<std::int32_t>(g.ratios.size());
    g.num_heads = 64;
    g.head_dim = 512;
    g.rope_dim = 64;
    g.q_lora_rank = 1024;
    g.o_groups = 8;
    g.o_lora_rank = 1024;
    g.max_positions = 1048576;
    g.index_heads = 64;
    g.index_dim = 128;
    g.index_topk = 512;
    g.num_experts = 16;
    g.top_k = 6;
    g.expert_inter = 2048;
    g.num_hash_layers = 1;
    return g;
}

}  // namespace

std::span<const SynthPreset> synth_presets() {
    static const std::array kPresets{
        SynthPreset{"tiny", "6 layers, 3.4 M parameters, 3 MB: every branch of the model, for tests", tiny()},
        SynthPreset{"small", "4 layers, 132 M parameters, 98 MB: large enough to time", small()},
        SynthPreset{"flash-slice", "3 layers of DeepSeek-V4-Flash with 16 experts, 1.7 G parameters, 1.15 GB",
                    flash_slice()},
    };
    return kPresets;
}

Result<ModelGeometry> find_synth_preset(std::string_view name) {
    std::string known;
    for (const SynthPreset& preset : synth_presets()) {
        if (preset.name == name) {
            return preset.geometry;
        }
        known += fmt::format("{}{}", known.empty() ? "" : ", ", preset.name);
    }
    return invalid(fmt::format("no preset {}", name), fmt::format("known are {}", known));
}

}  // namespace megamoe::weights
