// For tests: the two spellings of every tensor suffix, written out as in the model spec, 2.1 and 2.2.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace megamoe::weights::testing {

struct Spelling {
    std::string_view released;
    std::string_view transformers;
};

inline constexpr Spelling kGlobalSpellings[] = {
    {"embed.weight", "model.embed_tokens.weight"}, {"head.weight", "lm_head.weight"},
    {"norm.weight", "model.norm.weight"},          {"hc_head_fn", "model.hc_head.hc_fn"},
    {"hc_head_base", "model.hc_head.hc_base"},     {"hc_head_scale", "model.hc_head.hc_scale"},
};

// After `layers.N.` and `model.layers.N.`
inline constexpr Spelling kLayerSpellings[] = {
    {"attn_norm.weight", "input_layernorm.weight"},
    {"ffn_norm.weight", "post_attention_layernorm.weight"},
    {"hc_attn_fn", "attn_hc.fn"},
    {"hc_attn_base", "attn_hc.base"},
    {"hc_attn_scale", "attn_hc.scale"},
    {"hc_ffn_fn", "ffn_hc.fn"},
    {"hc_ffn_base", "ffn_hc.base"},
    {"hc_ffn_scale", "ffn_hc.scale"},
    {"attn.attn_sink", "self_attn.sinks"},
    {"attn.wq_a.weight", "self_attn.q_a_proj.weight"},
    {"attn.wq_a.scale", "self_attn.q_a_proj.weight_scale_inv"},
    {"attn.q_norm.weight", "self_attn.q_a_norm.weight"},
    {"attn.wq_b.weight", "self_attn.q_b_proj.weight"},
    {"attn.wq_b.scale", "self_attn.q_b_proj.weight_scale_inv"},
    {"attn.wkv.weight", "self_attn.kv_proj.weight"},
    {"attn.wkv.scale", "self_attn.kv_proj.weight_scale_inv"},
    {"attn.kv_norm.weight", "self_attn.kv_norm.weight"},
    {"attn.wo_a.weight", "self_attn.o_a_proj.weight"},
    {"attn.wo_a.scale", "self_attn.o_a_proj.weight_scale_inv"},
    {"attn.wo_b.weight", "self_attn.o_b_proj.weight"},
    {"attn.wo_b.scale", "self_attn.o_b_proj.weight_scale_inv"},
    {"attn.compressor.wkv.weight", "self_attn.compressor.kv_proj.weight"},
    {"attn.compressor.wgate.weight", "self_attn.compressor.gate_proj.weight"},
    {"attn.compressor.ape", "self_attn.compressor.position_bias"},
    {"attn.compressor.norm.weight", "self_attn.compressor.kv_norm.weight"},
    {"attn.indexer.wq_b.weight", "self_attn.compressor.indexer.q_b_proj.weight"},
    {"attn.indexer.wq_b.scale", "self_attn.compressor.indexer.q_b_proj.weight_scale_inv"},
    {"attn.indexer.weights_proj.weight", "self_attn.compressor.indexer.scorer.weights_proj.weight"},
    {"attn.indexer.compressor.wkv.weight", "self_attn.compressor.indexer.kv_proj.weight"},
    {"attn.indexer.compressor.wgate.weight", "self_attn.compressor.indexer.gate_proj.weight"},
    {"attn.indexer.compressor.ape", "self_attn.compressor.indexer.position_bias"},
    {"attn.indexer.compressor.norm.weight", "self_attn.compressor.indexer.kv_norm.weight"},
    {"ffn.gate.weight", "mlp.gate.weight"},
    {"ffn.gate.bias", "mlp.gate.e_score_correction_bias"},
    {"ffn.gate.tid2eid", "mlp.gate.tid2eid"},
    {"ffn.shared_experts.w1.weight", "mlp.shared_experts.gate_proj.weight"},
    {"ffn.shared_experts.w1.scale", "mlp.shared_experts.gate_proj.weight_scale_inv"},
    {"ffn.shared_experts.w3.weight", "mlp.shared_experts.up_proj.weight"},
    {"ffn.shared_experts.w3.scale", "mlp.shared_experts.up_proj.weight_scale_inv"},
    {"ffn.shared_experts.w2.weight", "mlp.shared_experts.down_proj.weight"},
    {"ffn.shared_experts.w2.scale", "mlp.shared_experts.down_proj.weight_scale_inv"},
    {"ffn.experts.gate_up_proj.weight", "mlp.experts.gate_up_proj"},
    {"ffn.experts.gate_up_proj.scale", "mlp.experts.gate_up_proj_scale_inv"},
    {"ffn.experts.down_proj.weight", "mlp.experts.down_proj"},
    {"ffn.experts.down_proj.scale", "mlp.experts.down_proj_scale_inv"},
};

// The transformers spelling of a released name; empty if it has none (routed experts one by one).
inline std::string transformers_name(std::string_view released) {
    for (const Spelling& s : kGlobalSpellings) {
        if (released == s.released) {
            return std::string(s.transformers);
        }
    }
    const auto dot = released.find('.', std::string_view("layers.").size());
    for (const Spelling& s : kLayerSpellings) {
        if (released.substr(dot + 1) == s.released) {
            return "model." + std::string(released.substr(0, dot + 1)) + std::string(s.transformers);
        }
    }
    return {};
}

}  // namespace megamoe::weights::testing
