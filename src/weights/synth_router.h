// The router of one synthetic layer: which experts are popular, and parameters that make tokens choose them that often.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/model_geometry.h"
#include "weights/synth.h"
#include "weights/synth_random.h"

namespace megamoe::weights {

// Domain of a token id: the vocabulary in kSynthDomains ranges of (nearly) equal size.
std::int32_t domain_of(std::int64_t token, std::int32_t vocab_size);

// Whether embeddings carry their domain: only if it can matter.
bool embeddings_lean(const SynthOptions& options);

// What tells a router the domain of a token in layers that do not route by token id: each domain is a direction of the
// hidden space, and the embeddings of its tokens lean towards it. The directions are orthogonal, with entries +-1.
class DomainDirections {
  public:
    explicit DomainDirections(std::uint64_t seed) : signs_(seed, "domains") {}

    float at(std::int32_t domain, std::int64_t channel) const;

  private:
    SynthRandom signs_;
};

class SynthRouter {
  public:
    // How far an embedding leans towards its domain when the popular set drifts: the share of its square along it.
    static constexpr double kLean = 0.25;

    SynthRouter(const SynthOptions& options, std::int32_t layer);

    // Probability that a token of `domain` picks `expert`; over all experts it sums to top_k.
    double probability(std::int32_t domain, std::int32_t expert) const { return probability_[index(domain, expert)]; }

    // For hash layers: top_k distinct experts, each with its probability exactly.
    void draw_experts(std::int64_t token, std::span<std::int64_t> experts) const;

    // For score layers. A token picks an expert if score + bias is among the top_k, nearly the same as if it were above
    // a fixed threshold. The score's input is about normal, so its quantile at the wanted probability gives the bias; a
    // part of the gate row along the domains' directions moves that quantile from one domain to another.
    float bias(std::int32_t expert) const { return bias_[static_cast<std::size_t>(expert)]; }
    void fill_gate_row(std::int32_t expert, std::span<float> row) const;

  private:
    std::size_t index(std::int32_t domain, std::int32_t expert) const {
        return static_cast<std::size_t>(domain) * static_cast<std::size_t>(num_experts_) +
               static_cast<std::size_t>(expert);
    }
    void choose_probabilities(const SynthOptions& options, const SynthRandom& popularity);
    void choose_gate();

    std::int32_t num_experts_;
    std::int32_t top_k_;
    std::int32_t vocab_size_;
    bool leaning_;
    SynthRandom gate_noise_;
    SynthRandom table_noise_;
    DomainDirections directions_;
    std::vector<double> probability_;  // [domains, experts]
    std::vector<double> shift_;        // [domains, experts], of the gate logit
    std::vector<float> bias_;          // [experts]
};

}  // namespace megamoe::weights
