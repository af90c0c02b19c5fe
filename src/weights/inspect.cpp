#include "weights/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "weights/model_cost.h"

namespace megamoe::weights {
namespace {

// 1234567 -> "1.23 M"
std::string scaled(double value, std::string_view unit) {
    constexpr std::array<std::string_view, 5> kPrefixes{"", "k", "M", "G", "T"};
    std::size_t prefix = 0;
    while (value >= 1000 && prefix + 1 < kPrefixes.size()) {
        value /= 1000;
        ++prefix;
    }
    const std::string_view space = prefix == 0 && unit.empty() ? "" : " ";
    return fmt::format("{:.{}f}{}{}{}", value, prefix == 0 ? 0 : 2, space, kPrefixes[prefix], unit);
}

std::string bytes_text(std::int64_t bytes) {
    return scaled(static_cast<double>(bytes), "B");
}

std::string row(std::string_view label, std::string_view text) {
    return fmt::format("{:<16}{}\n", label, text);
}

std::string_view format_name(ops::WeightFormat format) {
    switch (format) {
        case ops::WeightFormat::kFp4:
            return "FP4";
        case ops::WeightFormat::kFp8:
            return "FP8";
        case ops::WeightFormat::kBf16:
            return "BF16";
        default:
            return "F32";
    }
}

std::string describe_geometry(const ModelGeometry& g) {
    std::array<std::int32_t, 3> layers{};  // by LayerKind
    for (std::int32_t l = 0; l < g.num_layers; ++l) {
        ++layers[static_cast<std::size_t>(g.kind(l))];
    }
    std::string text;
    text +=
        row("layers", fmt::format("{} ({} window, {} CSA, {} HCA), hidden {}, {} streams, vocabulary {}, {} positions",
                                  g.num_layers, layers[0], layers[1], layers[2], g.hidden_size, g.hc_mult, g.vocab_size,
                                  g.max_positions));
    text += row("attention",
                fmt::format("{} heads x {} (rope {}), query rank {}, output {} groups x {}, window {}", g.num_heads,
                            g.head_dim, g.rope_dim, g.q_lora_rank, g.o_groups, g.o_lora_rank, g.window));
    text += row("indexer", fmt::format("{} heads x {}, top {}", g.index_heads, g.index_dim, g.index_topk));
    text += row("experts", fmt::format("{} routed top-{} and 1 shared, width {}, {} layers routed by hash",
                                       g.num_experts, g.top_k, g.expert_inter, g.num_hash_layers));
    return text;
}

KindTotals bytes_in_files(const Checkpoint& checkpoint) {
    KindTotals bytes{};
    for (const auto& [name, tensor] : checkpoint.tensors()) {
        at(bytes, weight_kind(released_name(name))) += static_cast<std::int64_t>(tensor.bytes.size());
    }
    return bytes;
}

std::string describe_files(const V4Weights& weights, const KindTotals& bytes) {
    const Checkpoint& checkpoint = *weights.checkpoint;
    std::map<Dtype, std::int64_t> counts;
    for (const auto& [name, tensor] : checkpoint.tensors()) {
        ++counts[tensor.dtype];
    }
    std::string dtypes;
    for (const auto& [dtype, count] : counts) {
        dtypes += fmt::format("{}{} {}", dtypes.empty() ? "" : ", ", name(dtype), count);
    }
    std::string text;
    text += row("files", fmt::format("{} with {} tensors, {}", checkpoint.files().size(), checkpoint.tensors().size(),
                                     bytes_text(sum(bytes))));
    text += row("tensors", fmt::format("{} in the released layout, {} of MTP layers (skipped)",
                                       expected_tensor_count(weights.geometry), weights.num_mtp_tensors));
    text += row("dtypes", dtypes);
    text += row("expert format", format_name(weights.expert_format));
    return text;
}

std::string describe_sizes(const ModelGeometry& g, const KindTotals& bytes) {
    const KindTotals parameters = count_parameters(g);
    std::string text = row("parameters", fmt::format("{}, {} active for a token (without the embedding table)",
                                                     scaled(static_cast<double>(sum(parameters)), ""),
                                                     scaled(static_cast<double>(touched_by_token(parameters, g)), "")));
    for (const WeightKind kind : kWeightKinds) {
        if (at(bytes, kind) > 0) {
            const double share = 100.0 * static_cast<double>(at(bytes, kind)) / static_cast<double>(sum(bytes));
            text +=
                row(fmt::format("  {}", name(kind)), fmt::format("{:>10} parameters {:>11} {:5.1f} %",
                                                                 scaled(static_cast<double>(at(parameters, kind)), ""),
                                                                 bytes_text(at(bytes, kind)), share));
        }
    }
    return text;
}

std::string describe_costs(const ModelGeometry& g, const KindTotals& bytes) {
    constexpr std::int64_t kShortContext = 4096;
    std::string text =
        row("token reads", fmt::format("{} of weights at batch 1", bytes_text(touched_by_token(bytes, g))));
    std::vector<std::int64_t> contexts{0, kShortContext, g.max_positions};
    std::sort(contexts.begin(), contexts.end());
    contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
    for (const std::int64_t context : contexts) {
        if (context <= g.max_positions) {
            const double attention = attention_flops(g, context);
            const double indexer = indexer_flops(g, context);
            text += row("token computes", fmt::format("{} at context {} (attention {}, indexer {})",
                                                      scaled(linear_flops(g) + attention + indexer, "FLOP"), context,
                                                      scaled(attention, "FLOP"), scaled(indexer, "FLOP")));
        }
    }
    text +=
        row("cache",
            fmt::format("{} bytes a token in BF16, and for each sequence {} of window and {} of float32 state",
                        cache_bytes_per_token(g), bytes_text(cache_window_bytes(g)), bytes_text(cache_state_bytes(g))));
    return text;
}

}  // namespace

std::string describe_model(const V4Weights& weights) {
    const KindTotals bytes = bytes_in_files(*weights.checkpoint);
    return describe_geometry(weights.geometry) + describe_files(weights, bytes) +
           describe_sizes(weights.geometry, bytes) + describe_costs(weights.geometry, bytes);
}

}  // namespace megamoe::weights
