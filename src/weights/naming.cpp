#include "weights/naming.h"

#include <optional>
#include <span>

namespace megamoe::weights {
namespace {

struct Rename {
    std::string_view from;  // whole components, as transformers spells them
    std::string_view to;
};

constexpr Rename kGlobals[] = {
    {"lm_head", "head"},
    {"embed_tokens", "embed"},
    {"hc_head.hc_fn", "hc_head_fn"},
    {"hc_head.hc_base", "hc_head_base"},
    {"hc_head.hc_scale", "hc_head_scale"},
};

// First pass, after `layers.N.`
constexpr Rename kBlocks[] = {
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"attn_hc.fn", "hc_attn_fn"},
    {"attn_hc.base", "hc_attn_base"},
    {"attn_hc.scale", "hc_attn_scale"},
    {"ffn_hc.fn", "hc_ffn_fn"},
    {"ffn_hc.base", "hc_ffn_base"},
    {"ffn_hc.scale", "hc_ffn_scale"},
    {"self_attn", "attn"},
    {"mlp", "ffn"},
};

// Second pass, after `layers.N.attn.`. The first rule that fits counts: the indexer is nested under the compressor.
constexpr Rename kAttention[] = {
    {"sinks", "attn_sink"},
    {"q_a_proj", "wq_a"},
    {"q_a_norm", "q_norm"},
    {"q_b_proj", "wq_b"},
    {"kv_proj", "wkv"},
    {"o_a_proj", "wo_a"},
    {"o_b_proj", "wo_b"},
    {"compressor.indexer.q_b_proj", "indexer.wq_b"},
    {"compressor.indexer.scorer.weights_proj", "indexer.weights_proj"},
    {"compressor.indexer.weights_proj", "indexer.weights_proj"},
    {"compressor.indexer.kv_proj", "indexer.compressor.wkv"},
    {"compressor.indexer.gate_proj", "indexer.compressor.wgate"},
    {"compressor.indexer.position_bias", "indexer.compressor.ape"},
    {"compressor.indexer.kv_norm", "indexer.compressor.norm"},
    {"compressor.kv_proj", "compressor.wkv"},
    {"compressor.gate_proj", "compressor.wgate"},
    {"compressor.position_bias", "compressor.ape"},
    {"compressor.kv_norm", "compressor.norm"},
};

// Second pass, after `layers.N.ffn.`. A parameter without `.weight` gets one, so that its scale is found beside it.
constexpr Rename kFfn[] = {
    {"gate.e_score_correction_bias", "gate.bias"},
    {"experts.gate_up_proj_scale_inv", "experts.gate_up_proj.scale"},
    {"experts.down_proj_scale_inv", "experts.down_proj.scale"},
};

// Second pass, after `layers.N.ffn.shared_experts.` or `layers.N.ffn.experts.E.`
constexpr Rename kExpert[] = {
    {"gate_proj", "w1"},
    {"up_proj", "w3"},
    {"down_proj", "w2"},
};

bool skip(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) {
        return false;
    }
    text.remove_prefix(prefix.size());
    return true;
}

bool skip_number(std::string_view& text) {
    const auto digits = text.find_first_not_of("0123456789");
    if (digits == 0 || digits == text.npos || text[digits] != '.') {
        return false;
    }
    text.remove_prefix(digits + 1);
    return true;
}

std::string apply(std::span<const Rename> rules, std::string_view text) {
    for (const Rename& rule : rules) {
        std::string_view rest = text;
        if (skip(rest, rule.from) && (rest.empty() || rest.front() == '.')) {
            return std::string(rule.to).append(rest);
        }
    }
    return std::string(text);
}

// Applies `rules` to what follows `prefix`.
std::string apply_after(std::string_view prefix, std::span<const Rename> rules, std::string_view text) {
    return std::string(prefix) + apply(rules, text.substr(prefix.size()));
}

std::string rename_ffn(const std::string& text) {
    std::string_view rest = text;
    if (skip(rest, "ffn.shared_experts.") || (skip(rest, "ffn.experts.") && skip_number(rest))) {
        return apply_after(std::string_view(text).substr(0, text.size() - rest.size()), kExpert, text);
    }
    if (text == "ffn.experts.gate_up_proj" || text == "ffn.experts.down_proj") {
        return text + ".weight";
    }
    return apply_after("ffn.", kFfn, text);
}

std::string rename_in_layer(std::string_view text) {
    const std::string block = apply(kBlocks, text);
    if (block.starts_with("attn.")) {
        return apply_after("attn.", kAttention, block);
    }
    return block.starts_with("ffn.") ? rename_ffn(block) : block;
}

}  // namespace

std::string released_name(std::string_view name) {
    skip(name, "model.");
    std::string_view rest = name;
    std::string renamed = skip(rest, "layers.") && skip_number(rest)
                              ? std::string(name.substr(0, name.size() - rest.size())) + rename_in_layer(rest)
                              : apply(kGlobals, name);
    constexpr std::string_view kScaleInv = ".weight_scale_inv";
    if (renamed.ends_with(kScaleInv)) {
        renamed.replace(renamed.size() - kScaleInv.size(), kScaleInv.size(), ".scale");
    }
    return renamed;
}

std::string_view name(WeightKind kind) {
    constexpr std::array<std::string_view, kWeightKinds.size()> kNames{
        "routed experts", "shared experts", "attention", "compressor", "indexer", "mHC",   "router",
        "hash tables",    "norms",          "embedding", "head",       "MTP",     "other",
    };
    return kNames[static_cast<std::size_t>(kind)];
}

WeightKind weight_kind(std::string_view released_name) {
    std::string_view rest = released_name;
    if (skip(rest, "mtp.")) {
        return WeightKind::kMtp;
    }
    if (!(skip(rest, "layers.") && skip_number(rest))) {
        return rest.starts_with("hc_head_") ? WeightKind::kHyper
               : rest == "embed.weight"     ? WeightKind::kEmbedding
               : rest == "head.weight"      ? WeightKind::kHead
               : rest == "norm.weight"      ? WeightKind::kNorms
                                            : WeightKind::kOther;
    }
    constexpr std::pair<std::string_view, WeightKind> kPrefixes[] = {
        {"ffn.experts.", WeightKind::kRoutedExperts},
        {"ffn.shared_experts.", WeightKind::kSharedExperts},
        {"ffn.gate.tid2eid", WeightKind::kHashTables},
        {"ffn.gate.", WeightKind::kRouter},
        {"attn.indexer.", WeightKind::kIndexer},
        {"attn.compressor.", WeightKind::kCompressor},
        {"attn.", WeightKind::kAttention},
        {"hc_", WeightKind::kHyper},
        {"attn_norm.", WeightKind::kNorms},
        {"ffn_norm.", WeightKind::kNorms},
    };
    for (const auto& [prefix, kind] : kPrefixes) {
        if (rest.starts_with(prefix)) {
            return kind;
        }
    }
    return WeightKind::kOther;
}

}  // namespace megamoe::weights
