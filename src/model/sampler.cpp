#include "model/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace megamoe::model {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr float kGreedyTemperature = 1e-6F;

std::uint64_t mix64(std::uint64_t x) {  // the finaliser of SplitMix64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

std::uint64_t row_key(std::uint64_t seed, std::int64_t position) {
    return mix64(mix64(seed) + 0x9E3779B97F4A7C15U * (static_cast<std::uint64_t>(position) + 1));
}

std::uint32_t token_hash(std::uint64_t key, std::int32_t token) {
    return static_cast<std::uint32_t>(mix64(key + 0x9E3779B97F4A7C15U * (static_cast<std::uint64_t>(token) + 1)) >> 32);
}

// u = (h + 1/2) / 2^32 keeps clear of 0 and 1.
double gumbel(std::uint32_t h) {
    return -std::log(-std::log((h + 0.5) * 0x1p-32));
}
const double kMostGumbel = gumbel(0xFFFF'FFFFU);

bool is_greedy(const SamplingParams& params) {
    return params.temperature < kGreedyTemperature || params.top_k == 1;
}

std::int32_t arg_max(std::span<const float> x) {  // the first of equals
    return static_cast<std::int32_t>(std::max_element(x.begin(), x.end()) - x.begin());
}

// log(sum(exp(x))), in float64 and in token order.
double log_sum_exp(std::span<const float> x) {
    const double max = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float v : x) {
        sum += std::exp(v - max);
    }
    return max + std::log(sum);
}

void add_logprobs(std::span<const float> logits, std::int32_t num_logprobs, Sampled& out) {
    const double log_sum = log_sum_exp(logits);
    const auto logprob = [&](std::int32_t id) {
        return static_cast<float>(logits[static_cast<std::size_t>(id)] - log_sum);
    };
    out.logprob = logprob(out.token);
    std::vector<std::int32_t> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    const auto n = std::min<std::ptrdiff_t>(num_logprobs, std::ssize(ids));
    std::partial_sort(ids.begin(), ids.begin() + n, ids.end(), [&](std::int32_t a, std::int32_t b) {
        const float x = logits[static_cast<std::size_t>(a)];
        const float y = logits[static_cast<std::size_t>(b)];
        return x > y || (x == y && a < b);
    });
    for (std::ptrdiff_t i = 0; i < n; ++i) {
        out.top.push_back(
            {.token = ids[static_cast<std::size_t>(i)], .logprob = logprob(ids[static_cast<std::size_t>(i)])});
    }
}

}  // namespace

std::uint32_t hash32(std::uint64_t seed, std::int64_t position, std::int32_t token) {
    return token_hash(row_key(seed, position), token);
}

Result<Sampled> Sampler::sample(const SampleInput& input) {
    const SamplingParams& params = input.params;
    MM_TRY_DONE(process(input));
    Sampled out;
    if (is_greedy(params)) {
        out.token = arg_max(logits_);
        if (params.num_logprobs >= 0) {
            add_logprobs(input.logits, params.num_logprobs, out);
        }
        return out;
    }
    weigh(params.temperature);
    filter(params);
    out.token = draw(input.seed, input.position);
    if (params.num_logprobs >= 0) {
        add_logprobs(logits_, params.num_logprobs, out);
    }
    return out;
}

Result<Done> Sampler::process(const SampleInput& input) {
    const SamplingParams& params = input.params;
    for (std::size_t id = 0; id < input.logits.size(); ++id) {
        if (!(input.logits[id] < std::numeric_limits<float>::infinity())) {  // also true for NaN
            return Error{Errc::kInternal, fmt::format("the model's logit of token {} is {}", id, input.logits[id]), {}};
        }
    }
    logits_.assign(input.logits.begin(), input.logits.end());
    for (const auto& [token, count] : input.output_counts) {
        float& x = logits_[static_cast<std::size_t>(token)];
        x -= params.frequency_penalty * static_cast<float>(count) + params.presence_penalty;
        x = x > 0 ? x / params.repetition_penalty : x * params.repetition_penalty;
    }
    if (input.num_generated < params.min_tokens) {
        if (!params.ignore_eos) {
            logits_[static_cast<std::size_t>(input.eos_id)] = kMasked;
        }
        for (const std::int32_t id : params.stop_token_ids) {
            logits_[static_cast<std::size_t>(id)] = kMasked;
        }
    }
    for (const auto& [token, bias] : params.logit_bias) {
        logits_[static_cast<std::size_t>(token)] += bias;
    }
    max_ = *std::max_element(logits_.begin(), logits_.end());
    if (max_ == kMasked) {
        return Error{Errc::kInternal, "every token is masked: none can be chosen", "lower min_tokens or the biases"};
    }
    return Done{};
}

void Sampler::weigh(float temperature) {
    weights_.resize(logits_.size());
    max_ /= temperature;
    sum_ = 0;
    for (std::size_t id = 0; id < logits_.size(); ++id) {
        logits_[id] /= temperature;
        weights_[id] = std::exp(logits_[id] - max_);
        sum_ += weights_[id];
    }
}

void Sampler::filter(const SamplingParams& params) {
    kept_.clear();
    for (std::size_t id = 0; id < weights_.size(); ++id) {
        if (weights_[id] > 0 && weights_[id] >= params.min_p) {  // the largest weight is 1
            kept_.push_back(static_cast<std::int32_t>(id));
        }
    }
    if (params.top_k < 0 && params.top_p >= 1) {
        return;
    }
    // Sorts block by block, best first, and stops where nothing more is kept.
    const auto better = [this](std::int32_t a, std::int32_t b) {
        const float x = weights_[static_cast<std::size_t>(a)];
        const float y = weights_[static_cast<std::size_t>(b)];
        return x > y || (x == y && a < b);
    };
    const std::ptrdiff_t most =
        params.top_k < 0 ? std::ssize(kept_) : std::min<std::ptrdiff_t>(params.top_k, std::ssize(kept_));
    const double most_before = params.top_p * sum_;
    double before = 0;  // weight of all better tokens
    std::ptrdiff_t sorted = 0;
    for (std::ptrdiff_t rank = 0, block = 64; rank < most; ++rank) {
        if (rank == sorted) {
            sorted = std::min(rank + block, std::ssize(kept_));
            block *= 4;
            std::partial_sort(kept_.begin() + rank, kept_.begin() + sorted, kept_.end(), better);
        }
        if (before > most_before) {
            kept_.resize(static_cast<std::size_t>(rank));
            return;
        }
        before += weights_[static_cast<std::size_t>(kept_[static_cast<std::size_t>(rank)])];
    }
    kept_.resize(static_cast<std::size_t>(most));
}

std::int32_t Sampler::draw(std::uint64_t seed, std::int64_t position) const {
    const std::uint64_t key = row_key(seed, position);
    std::int32_t best_token = -1;
    double best = -std::numeric_limits<double>::infinity();
    for (const std::int32_t token : kept_) {
        const double logit = logits_[static_cast<std::size_t>(token)];  // a constant short of its logprob
        if (logit + kMostGumbel < best) {
            continue;  // no noise could lift it
        }
        const double value = logit + gumbel(token_hash(key, token));
        if (value > best || (value == best && token < best_token)) {
            best = value;
            best_token = token;
        }
    }
    MM_CHECK(best_token >= 0, "kept tokens", kept_.size());
    return best_token;
}

}  // namespace megamoe::model
