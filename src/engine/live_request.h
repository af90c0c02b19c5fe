// One accepted request on its rank: what was asked, the tokens so far, and the cache it holds while it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "engine/request.h"
#include "kv/sequence.h"
#include "model/sampler.h"

namespace megamoe::engine {

struct LiveRequest {
    RequestId id{};
    SamplingParams sampling;
    std::uint64_t seed = 0;
    std::vector<std::int32_t> tokens;  // prompt, then output
    std::int32_t num_prompt = 0;
    model::TokenCounts output_counts;
    std::optional<kv::Sequence> sequence;  // from its first chunk until it ends or is retracted

    std::int32_t num_tokens() const { return static_cast<std::int32_t>(tokens.size()); }
    std::int32_t num_generated() const { return num_tokens() - num_prompt; }
    std::int32_t num_left() const { return sampling.max_tokens - num_generated(); }
    // Tokens in the cache: the position of the next one to feed, and the only source of positions.
    std::int32_t num_committed() const { return sequence ? sequence->length() : 0; }
    // Tokens to feed before the next one can be chosen. After a retraction the output is fed again like a prompt.
    std::int32_t num_pending() const { return num_tokens() - num_committed(); }
};

}  // namespace megamoe::engine
