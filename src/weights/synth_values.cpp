#include "weights/synth_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace megamoe::weights {

SynthValues::SynthValues(const SynthOptions& options) : options_(options), directions_(options.seed) {
    for (std::int32_t l = 0; l < options.geometry.num_layers; ++l) {
        routers_.emplace_back(options, l);
    }
}

void SynthValues::fill_row(const TensorSpec& spec, std::int64_t row, std::span<float> values) const {
    if (spec.name == "embed.weight") {
        return fill_embedding(row, values);
    }
    const bool router = weight_kind(spec.name) == WeightKind::kRouter;
    if (router && spec.name.ends_with(".weight")) {
        return router_of(spec).fill_gate_row(static_cast<std::int32_t>(row), values);
    }
    if (router) {
        for (std::size_t e = 0; e < values.size(); ++e) {
            values[e] = router_of(spec).bias(static_cast<std::int32_t>(e));
        }
        return;
    }
    const SynthRandom random(options_.seed, spec.name);
    const Normal normal = distribution(spec);
    const auto mean = static_cast<float>(normal.mean);
    const auto deviation = static_cast<float>(normal.deviation);
    const std::int64_t first = row * static_cast<std::int64_t>(values.size());
    for (std::size_t c = 0; c < values.size(); ++c) {
        values[c] = mean + deviation * random.normal(first + static_cast<std::int64_t>(c));
    }
}

void SynthValues::fill_table_row(const TensorSpec& spec, std::int64_t token, std::span<std::int64_t> experts) const {
    router_of(spec).draw_experts(token, experts);
}

SynthValues::Normal SynthValues::distribution(const TensorSpec& spec) const {
    const std::string& name = spec.name;
    const auto cols = static_cast<double>(spec.shape.back());
    const bool hyper = weight_kind(name) == WeightKind::kHyper;
    if (name.ends_with("norm.weight")) {
        return {1, 0.1};
    }
    if (name.ends_with("attn_sink")) {
        return {0, 1};
    }
    if (name.ends_with(".ape") || (hyper && name.ends_with("base"))) {
        return {0, 0.5};
    }
    if (hyper && name.ends_with("scale")) {
        return {1, 0.16};  // stays positive: draws end at 6 deviations
    }
    if (hyper) {
        return {0, 0.5 / std::sqrt(cols)};
    }
    if (name == "head.weight") {
        return {0, 2 / std::sqrt(cols)};  // logits of deviation 2: neither uniform nor certain
    }
    // What a layer adds to the streams shrinks with depth, so that all layers together add about what the embedding is.
    const bool adds_to_streams = name.ends_with("wo_b.weight") || name.ends_with("w2.weight");
    return {0, 1 / std::sqrt(cols * (adds_to_streams ? 2.0 * options_.geometry.num_layers : 1.0))};
}

void SynthValues::fill_embedding(std::int64_t token, std::span<float> values) const {
    const SynthRandom random(options_.seed, "embed.weight");
    const double lean = embeddings_lean(options_) ? SynthRouter::kLean : 0;
    const auto noise = static_cast<float>(std::sqrt(1 - lean));
    const auto along = static_cast<float>(std::sqrt(lean));
    const std::int32_t domain = domain_of(token, options_.geometry.vocab_size);
    const std::int64_t first = token * static_cast<std::int64_t>(values.size());
    for (std::size_t c = 0; c < values.size(); ++c) {
        const auto channel = static_cast<std::int64_t>(c);
        values[c] = noise * random.normal(first + channel) + along * directions_.at(domain, channel);
    }
}

const SynthRouter& SynthValues::router_of(const TensorSpec& spec) const {
    const char* digits = spec.name.data() + std::string_view("layers.").size();
    std::size_t layer = 0;
    std::from_chars(digits, spec.name.data() + spec.name.size(), layer);
    return routers_[layer];
}

}  // namespace megamoe::weights
