#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/model_geometry.h"

namespace megamoe {
namespace {

// A float as the short decimal that reads back as the same float (1e-06, not 9.999999974752427e-07).
double short_decimal(float x) {
    return nlohmann::json::parse(fmt::format("{}", x)).get<double>();
}

}  // namespace

std::string to_config_json(const ModelGeometry& g) {
    std::vector<std::int32_t> ratios = g.ratios;
    ratios.insert(ratios.end(), static_cast<std::size_t>(g.num_mtp_layers), 0);
    const nlohmann::ordered_json config{
        {"architectures", {"DeepseekV4ForCausalLM"}},
        {"model_type", "deepseek_v4"},
        {"vocab_size", g.vocab_size},
        {"hidden_size", g.hidden_size},
        {"num_hidden_layers", g.num_layers},
        {"num_attention_heads", g.num_heads},
        {"num_key_value_heads", 1},
        {"head_dim", g.head_dim},
        {"qk_rope_head_dim", g.rope_dim},
        {"q_lora_rank", g.q_lora_rank},
        {"o_groups", g.o_groups},
        {"o_lora_rank", g.o_lora_rank},
        {"sliding_window", g.window},
        {"compress_ratios", ratios},
        {"compress_rope_theta", g.compress_rope_theta},
        {"rope_theta", g.rope_theta},
        {"rope_scaling",
         {{"type", "yarn"},
          {"factor", g.yarn.factor},
          {"original_max_position_embeddings", g.yarn.original_max_position},
          {"beta_fast", g.yarn.beta_fast},
          {"beta_slow", g.yarn.beta_slow}}},
        {"max_position_embeddings", g.max_positions},
        {"index_n_heads", g.index_heads},
        {"index_head_dim", g.index_dim},
        {"index_topk", g.index_topk},
        {"n_routed_experts", g.num_experts},
        {"num_experts_per_tok", g.top_k},
        {"n_shared_experts", 1},
        {"moe_intermediate_size", g.expert_inter},
        {"scoring_func", "sqrtsoftplus"},
        {"topk_method", "noaux_tc"},
        {"norm_topk_prob", true},
        {"routed_scaling_factor", g.routed_scale},
        {"num_hash_layers", g.num_hash_layers},
        {"swiglu_limit", short_decimal(g.swiglu_limit)},
        {"hidden_act", "silu"},
        {"hc_mult", g.hc_mult},
        {"hc_sinkhorn_iters", g.hc_iters},
        {"hc_eps", short_decimal(g.hc_eps)},
        {"rms_norm_eps", short_decimal(g.rms_eps)},
        {"num_nextn_predict_layers", g.num_mtp_layers},
        {"tie_word_embeddings", false},
        {"attention_bias", false},
        {"attention_dropout", 0.0},
        {"initializer_range", 0.02},
        {"bos_token_id", g.bos_id},
        {"eos_token_id", g.eos_id},
        {"torch_dtype", "bfloat16"},
        {"expert_dtype", "fp4"},
        {"quantization_config",
         {{"quant_method", "fp8"},
          {"fmt", "e4m3"},
          {"activation_scheme", "dynamic"},
          {"scale_fmt", "ue8m0"},
          {"weight_block_size", {128, 128}}}},
    };
    return config.dump(2) + "\n";
}

}  // namespace megamoe
