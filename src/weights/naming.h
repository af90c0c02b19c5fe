// Tensor names: from the transformers spelling to the released one, and from a released name to what the tensor is for.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace megamoe::weights {

// The released name of a tensor; released and unknown names come back as they are. Stacked experts keep a name of their
// own: layers.N.ffn.experts.gate_up_proj.weight (and .scale), layers.N.ffn.experts.down_proj.weight.
// Same  released_name(released_name(x)) == released_name(x)
// Spec  model spec, 2.1 and 2.2
std::string released_name(std::string_view name);

enum class WeightKind : std::uint8_t {
    kRoutedExperts,
    kSharedExperts,
    kAttention,   // projections, their norms, sinks
    kCompressor,  // of the attention
    kIndexer,     // its own compressor too
    kHyper,       // mHC
    kRouter,      // gate matrix and bias
    kHashTables,  // tid2eid
    kNorms,       // before attention, before MoE, before the head
    kEmbedding,
    kHead,
    kMtp,
    kOther,
};

inline constexpr std::array kWeightKinds{
    WeightKind::kRoutedExperts, WeightKind::kSharedExperts, WeightKind::kAttention, WeightKind::kCompressor,
    WeightKind::kIndexer,       WeightKind::kHyper,         WeightKind::kRouter,    WeightKind::kHashTables,
    WeightKind::kNorms,         WeightKind::kEmbedding,     WeightKind::kHead,      WeightKind::kMtp,
    WeightKind::kOther,
};

std::string_view name(WeightKind kind);  // "routed experts"

WeightKind weight_kind(std::string_view released_name);

}  // namespace megamoe::weights
