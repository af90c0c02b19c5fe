// The fields that several request kinds share. Internal to the parsers.
#pragma once

#include "frontend/api/fields.h"
#include "frontend/api/request_types.h"

namespace megamoe::api {

// What the endpoints name differently: OpenAI's word or the native one.
struct FieldNames {
    std::string_view max_tokens;
    std::string_view min_tokens;
    std::string_view seed;
};

inline constexpr std::int64_t kMaxLogprobs = 20;        // best tokens a position
inline constexpr std::int32_t kDefaultMaxTokens = 16;   // OpenAI's, for plain completions only
inline constexpr std::int32_t kDefaultNewTokens = 128;  // the native endpoint's usual one

inline constexpr FieldNames kOpenAiNames{"max_tokens", "min_tokens", "seed"};
inline constexpr FieldNames kNativeNames{"max_new_tokens", "min_new_tokens", "sampling_seed"};

// Sampling, length and stop fields of `fields` into `options`.
void read_sampling(Fields& fields, const FieldNames& names, const Bounds& bounds, GenerationOptions& options);
// stream, rid and rank, which stand at the top of every request.
void read_delivery(Fields& fields, const Bounds& bounds, GenerationOptions& options);
// OpenAI's stream_options; needs `stream` first.
void read_stream_options(Fields& fields, GenerationOptions& options);

}  // namespace megamoe::api
