#include <utility>

#include "frontend/api/fields.h"
#include "frontend/api/parse.h"
#include "frontend/api/prompt_fields.h"
#include "frontend/api/sampling_fields.h"

namespace megamoe::api {

Parsed<CompletionRequest> parse_completion(std::string_view body, const Bounds& bounds) {
    CompletionRequest request;
    auto error = read_object(body, [&](Fields& fields) {
        GenerationOptions& options = request.options;
        refuse_unsupported(fields);
        request.model = fields.text("model", kMaxNameBytes).value_or("");
        read_delivery(fields, bounds, options);
        if (!fields.has("max_tokens")) {  // null asks for all that the context leaves
            options.max_tokens = kDefaultMaxTokens;
        }
        read_sampling(fields, kOpenAiNames, bounds, options);
        read_stream_options(fields, options);
        if (const auto logprobs = fields.integer("logprobs", 0, kMaxLogprobs)) {
            options.sampling.num_logprobs = static_cast<std::int32_t>(*logprobs);
        }
        request.prompts = read_prompts(fields, "prompt", bounds.vocab_size).prompts;
    });
    if (error) {
        return *std::move(error);
    }
    return request;
}

}  // namespace megamoe::api
