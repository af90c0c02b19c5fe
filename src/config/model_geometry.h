// The sizes and constants of one V4 model, as its config.json states them. Plain data: parsed, checked once, then
// read-only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace megamoe {

struct YarnScaling {
    double factor = 1;
    std::int32_t original_max_position = 0;
    double beta_fast = 32;
    double beta_slow = 1;

    friend bool operator==(const YarnScaling&, const YarnScaling&) = default;
};

// What attention sees besides its window.
enum class LayerKind : std::uint8_t {
    kWindow,  // ratio 0
    kCsa,     // ratio 4: compressed entries picked by the indexer
    kHca,     // ratio above 4: all compressed entries
};

// Symbols in brackets are those of the model spec.
struct ModelGeometry {
    std::int32_t vocab_size = 0;       // [V]
    std::int32_t hidden_size = 0;      // [H]
    std::int32_t num_layers = 0;       // [L], without MTP
    std::int32_t num_heads = 0;        // [N]
    std::int32_t head_dim = 0;         // [D]
    std::int32_t rope_dim = 0;         // [R], the last channels of a head
    std::int32_t q_lora_rank = 0;      // [Q]
    std::int32_t o_groups = 0;         // [G]
    std::int32_t o_lora_rank = 0;      // [O], per group
    std::int32_t window = 0;           // [W], counts the query token itself
    std::vector<std::int32_t> ratios;  // [r], one a main layer: 0, 4 or above 4
    double rope_theta = 10000;
    double compress_rope_theta = 160000;
    YarnScaling yarn;
    std::int32_t max_positions = 0;
    std::int32_t index_heads = 0;   // [M]
    std::int32_t index_dim = 0;     // [J]
    std::int32_t index_topk = 0;    // [T]
    std::int32_t num_experts = 0;   // [E]
    std::int32_t top_k = 0;         // [K]
    std::int32_t expert_inter = 0;  // [I]
    double routed_scale = 1;
    std::int32_t num_hash_layers = 0;
    float swiglu_limit = 0;    // [c]
    std::int32_t hc_mult = 0;  // [X]
    std::int32_t hc_iters = 0;
    float hc_eps = 0;
    float rms_eps = 0;
    std::int32_t num_mtp_layers = 0;
    std::int32_t bos_id = 0;
    std::int32_t eos_id = 1;

    LayerKind kind(std::int32_t layer) const {
        const auto r = ratios[static_cast<std::size_t>(layer)];
        return r == 0 ? LayerKind::kWindow : r == 4 ? LayerKind::kCsa : LayerKind::kHca;
    }
    bool hash_routed(std::int32_t layer) const { return layer < num_hash_layers; }
    std::int32_t plain_dim() const { return head_dim - rope_dim; }  // [P]

    friend bool operator==(const ModelGeometry&, const ModelGeometry&) = default;
};

// Reads the text of a config.json (not the path: the caller owns I/O), in the released spelling (compress_ratios,
// rope_scaling, num_hash_layers, qk_rope_head_dim) or the one transformers saves (layer_types with compress_rates,
// rope_parameters, mlp_layer_types, partial_rotary_factor). Where both stand, the released spelling wins.
//
// Error kInvalidArgument: not JSON; a field is missing or has the wrong type; a value is outside what the family allows
//       (ratio 1..3, heads not divisible by o_groups, top_k > experts, index_dim no power of two, ...). All problems at
//       once.
// Spec  model spec, 1.2 and 1.3
[[nodiscard]] Result<ModelGeometry> parse_model_geometry(std::string_view config_json);

// The same as config.json text in the released form, for synthetic checkpoints. parse(to_config_json(g)) == g.
std::string to_config_json(const ModelGeometry& geometry);

}  // namespace megamoe
