#include "weights/synth_router.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace megamoe::weights {
namespace {

constexpr double kMaxProbability = 0.98;  // of one expert: its quantile must be finite
constexpr double kGateSpread = 1.0;       // deviation of a gate logit over tokens

// How much of the embedding's lean is left in a router's input, whose layers before added their outputs: 1 in the first
// layer, 0.8 in the last one of the models measured (4 and 6 layers; outputs are scaled to depth).
constexpr double kLeanLeft = 0.9;

std::string layer_name(std::int32_t layer, const char* part) {
    return fmt::format("layers.{}.ffn.gate.{}", layer, part);
}

// Scales `weights` to probabilities that sum to `total`, none above kMaxProbability.
void scale_to_probabilities(std::span<double> weights, double total) {
    if (total >= kMaxProbability * static_cast<double>(weights.size())) {
        std::fill(weights.begin(), weights.end(), total / static_cast<double>(weights.size()));
        return;
    }
    std::vector<double*> open;  // not at the cap
    for (double& w : weights) {
        open.push_back(&w);
    }
    for (double left = total;;) {
        const double sum =
            std::accumulate(open.begin(), open.end(), 0.0, [](double s, const double* w) { return s + *w; });
        const double factor = left / sum;
        const auto capped =
            std::partition(open.begin(), open.end(), [&](const double* w) { return *w * factor <= kMaxProbability; });
        if (capped == open.end()) {
            std::for_each(open.begin(), open.end(), [&](double* w) { *w *= factor; });
            return;
        }
        std::for_each(capped, open.end(), [&](double* w) { *w = kMaxProbability; });
        left -= kMaxProbability * static_cast<double>(open.end() - capped);
        open.erase(capped, open.end());
    }
}

double score(double logit) {
    return std::sqrt(portable_log(1 + portable_exp(logit)));
}

}  // namespace

bool embeddings_lean(const SynthOptions& options) {
    return options.router_skew_sigma > 0 && options.router_drift > 0;
}

std::int32_t domain_of(std::int64_t token, std::int32_t vocab_size) {
    return static_cast<std::int32_t>(token * kSynthDomains / vocab_size);
}

float DomainDirections::at(std::int32_t domain, std::int64_t channel) const {
    // Rows of a Walsh matrix times common signs: orthogonal over any multiple of kSynthDomains channels.
    static_assert(std::has_single_bit(static_cast<std::uint32_t>(kSynthDomains)));
    const auto walsh =
        static_cast<unsigned>(std::popcount(static_cast<std::uint64_t>(channel) & static_cast<unsigned>(domain)));
    return ((walsh ^ signs_.bits(channel)) & 1U) != 0 ? -1.0F : 1.0F;
}

SynthRouter::SynthRouter(const SynthOptions& options, std::int32_t layer)
    : num_experts_(options.geometry.num_experts),
      top_k_(options.geometry.top_k),
      vocab_size_(options.geometry.vocab_size),
      leaning_(embeddings_lean(options)),
      gate_noise_(options.seed, layer_name(layer, "weight")),
      table_noise_(options.seed, layer_name(layer, "tid2eid")),
      directions_(options.seed),
      probability_(static_cast<std::size_t>(kSynthDomains) * static_cast<std::size_t>(num_experts_)),
      shift_(probability_.size()),
      bias_(static_cast<std::size_t>(num_experts_)) {
    choose_probabilities(options, SynthRandom(options.seed, layer_name(layer, "popularity")));
    choose_gate();
}

void SynthRouter::choose_probabilities(const SynthOptions& options, const SynthRandom& popularity) {
    const double own = options.router_drift;
    const double common = std::sqrt(1 - own * own);
    for (std::int32_t d = 0; d < kSynthDomains; ++d) {
        for (std::int32_t e = 0; e < num_experts_; ++e) {
            const double mixed = common * popularity.normal(e) + own * popularity.normal((d + 1) * num_experts_ + e);
            probability_[index(d, e)] = portable_exp(options.router_skew_sigma * mixed);
        }
        scale_to_probabilities({&probability_[index(d, 0)], static_cast<std::size_t>(num_experts_)}, top_k_);
    }
}

void SynthRouter::choose_gate() {
    if (top_k_ == num_experts_) {
        return;  // nothing to choose
    }
    double mean_bias = 0;
    for (std::int32_t e = 0; e < num_experts_; ++e) {
        double mean_threshold = 0;  // of the logit, above which the expert is chosen
        for (std::int32_t d = 0; d < kSynthDomains; ++d) {
            shift_[index(d, e)] = -kGateSpread * normal_quantile(1 - probability(d, e));
            mean_threshold -= shift_[index(d, e)] / kSynthDomains;
        }
        for (std::int32_t d = 0; d < kSynthDomains; ++d) {
            shift_[index(d, e)] += mean_threshold;
        }
        bias_[static_cast<std::size_t>(e)] = static_cast<float>(-score(mean_threshold));
        mean_bias -= score(mean_threshold) / num_experts_;
    }
    for (float& b : bias_) {
        b -= static_cast<float>(mean_bias);
    }
}

void SynthRouter::draw_experts(std::int64_t token, std::span<std::int64_t> experts) const {
    const std::int32_t domain = domain_of(token, vocab_size_);
    const std::int64_t first_draw = token * (num_experts_ + 1);
    std::vector<std::int32_t> order(static_cast<std::size_t>(num_experts_));
    std::iota(order.begin(), order.end(), 0);
    for (std::int32_t i = num_experts_ - 1; i > 0; --i) {  // a shuffle, so that any set of experts can come up
        const auto other = static_cast<std::size_t>(table_noise_.uniform(first_draw + i) * (i + 1));
        std::swap(order[static_cast<std::size_t>(i)], order[other]);
    }
    // Systematic sampling: probabilities laid end to end, and a pick wherever start, start + 1, ... falls.
    double next = table_noise_.uniform(first_draw);
    double end = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < order.size() && count < experts.size(); ++i) {
        end += probability(domain, order[i]);
        const bool needed = order.size() - i == experts.size() - count;  // rounding may leave the last pick short
        if (end > next || needed) {
            experts[count++] = order[i];
            next += 1;
        }
    }
}

void SynthRouter::fill_gate_row(std::int32_t expert, std::span<float> row) const {
    const auto width = static_cast<double>(row.size());
    const double lean = leaning_ ? std::sqrt(kLean) * kLeanLeft : 0;
    const double deviation = kGateSpread / std::sqrt(width * (1 - lean * lean));
    for (std::size_t c = 0; c < row.size(); ++c) {
        const auto channel = static_cast<std::int64_t>(c);
        row[c] = static_cast<float>(deviation) *
                 gate_noise_.normal(expert * static_cast<std::int64_t>(row.size()) + channel);
    }
    if (!leaning_) {
        return;
    }
    for (std::int32_t d = 0; d < kSynthDomains; ++d) {
        double along = 0;  // noise must not prefer a domain by itself
        for (std::size_t c = 0; c < row.size(); ++c) {
            along += row[c] * directions_.at(d, static_cast<std::int64_t>(c));
        }
        const auto correction = static_cast<float>((shift_[index(d, expert)] / lean - along) / width);
        for (std::size_t c = 0; c < row.size(); ++c) {
            row[c] += correction * directions_.at(d, static_cast<std::int64_t>(c));
        }
    }
}

}  // namespace megamoe::weights
