// The choice of the next token from a row of logits.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "model/sampling_params.h"

namespace megamoe::model {

// How often each token stands in the output so far. Prompt tokens do not count.
using TokenCounts = std::unordered_map<std::int32_t, std::int32_t>;

struct SampleInput {
    std::span<const float> logits;  // [V], as the model gave them
    const SamplingParams& params;
    const TokenCounts& output_counts;
    std::int32_t num_generated = 0;  // output tokens so far
    std::int64_t position = 0;       // absolute position that the chosen token will have
    std::uint64_t seed = 0;          // of the request; params.seed is not read
    std::int32_t eos_id = 0;
};

struct Sampled {
    std::int32_t token = 0;
    float logprob = 0;                // if asked for; -inf for a token that only the changes below made possible
    std::vector<TokenLogprob> top{};  // the num_logprobs best, best first
};

// Order of work: NaN check; frequency and presence, then repetition penalties; min_tokens mask; logit_bias; then either
// the largest logit (greedy: temperature below 1e-6 or top_k 1), or: divide by temperature, softmax, top_k, top_p and
// min_p jointly on that distribution, draw. Equal values: the lower token id wins.
//
// Logprobs are the log-softmax after temperature and before the filters; of a greedy row, that of the model's own
// logits. The draw adds Gumbel noise from a counter, hash(seed, position, token), so it depends on nothing else.
//
// Not a pure function in form only: the object holds scratch memory.
class Sampler {
  public:
    // Error kInternal, of this row alone: a NaN or +inf logit (token named), or every token is masked
    // Cost  O(V), plus a partial sort up to the last token that top_k or top_p keeps
    // Same  depends on `input` alone: not on earlier calls, batch row, rank or step
    // Spec  serving spec, 12
    [[nodiscard]] Result<Sampled> sample(const SampleInput& input);

  private:
    Result<Done> process(const SampleInput& input);
    void weigh(float temperature);
    void filter(const SamplingParams& params);
    std::int32_t draw(std::uint64_t seed, std::int64_t position) const;

    std::vector<float> logits_;       // [V] processed; after weigh() divided by temperature
    std::vector<float> weights_;      // [V] exp(logit - max)
    std::vector<std::int32_t> kept_;  // ids that passed the filters
    float max_ = 0;                   // of logits_
    double sum_ = 0;                  // of weights_
};

// Uniform over 32 bits; the counter behind the draw.
std::uint32_t hash32(std::uint64_t seed, std::int64_t position, std::int32_t token);

}  // namespace megamoe::model
