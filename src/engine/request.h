// What a client asks of the engine and what it gets back, as plain data. Text, JSON and HTTP are the front end's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/sampling_params.h"

namespace megamoe::engine {

using model::SamplingParams;
using model::TokenLogprob;

// kInvalidArgument with the field's name, value and range; `vocab_size` bounds the ids.
// Spec  serving spec, 9.3
[[nodiscard]] Result<Done> check_sampling(const SamplingParams& params, std::int32_t vocab_size);

struct Request {
    RequestId id{};                    // unique among live requests; the front end makes it
    std::vector<std::int32_t> prompt;  // token ids, >= 1
    SamplingParams sampling{};
    std::optional<std::int32_t> routed_rank{};  // absent = the engine picks
};

enum class FinishReason : std::uint8_t { kNone, kStop, kLength, kAbort, kError };

// One step's news of one request.
struct Update {
    RequestId id{};
    std::int32_t token = -1;                    // -1: none (an abort or an error)
    TokenLogprob logprob{};                     // if asked for
    std::vector<TokenLogprob> top_logprobs{};   // if asked for, best first
    FinishReason finish = FinishReason::kNone;  // not kNone: the last update of this request
    std::int32_t stop_token = -1;               // which id ended it (kStop); the id is also in `token`
    std::int32_t rank = 0;
    Error error{};  // kError
};

// Called on a rank's thread, in token order; must not block. After a last update it is not called again.
using UpdateSink = std::function<void(Update)>;

}  // namespace megamoe::engine
