// How the next token is to be chosen, as a client states it. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace megamoe::model {

struct SamplingParams {
    float temperature = 1;                // >= 0; below 1e-6 = greedy
    float top_p = 1;                      // (0, 1]
    std::int32_t top_k = -1;              // -1 = all, or >= 1
    float min_p = 0;                      // [0, 1]
    float repetition_penalty = 1;         // (0, 2], output tokens only
    float presence_penalty = 0;           // [-2, 2]
    float frequency_penalty = 0;          // [-2, 2]
    std::optional<std::uint64_t> seed{};  // absent = drawn at arrival
    std::int32_t max_tokens = 16;         // >= 1
    std::int32_t min_tokens = 0;          // EOS and stop ids are masked until then
    bool ignore_eos = false;
    std::vector<std::int32_t> stop_token_ids{};
    std::vector<std::pair<std::int32_t, float>> logit_bias{};
    std::int32_t num_logprobs = -1;  // -1 = none; 0 = of the chosen token only; n = and the n best
};

struct TokenLogprob {
    std::int32_t token = 0;
    float logprob = 0;
};

}  // namespace megamoe::model
