#include <utility>

#include "frontend/api/fields.h"
#include "frontend/api/parse.h"
#include "frontend/api/prompt_fields.h"
#include "frontend/api/sampling_fields.h"

namespace megamoe::api {
namespace {

void read_input(Fields& fields, const Bounds& bounds, GenerateRequest& request) {
    const bool has_text = fields.find("text") != nullptr;
    const bool has_ids = fields.find("input_ids") != nullptr;
    if (has_text == has_ids) {
        fields.fail(has_text ? "text" : "input_ids", "but exactly one of text and input_ids must be given");
        return;
    }
    Prompts input = read_prompts(fields, has_text ? "text" : "input_ids", bounds.vocab_size);
    const bool is_text = !input.prompts.empty() && std::holds_alternative<std::string>(input.prompts.front());
    if (fields.ok() && is_text != has_text) {
        fields.fail(has_text ? "text" : "input_ids", has_text ? "expected strings" : "expected token ids");
    }
    request.prompts = std::move(input.prompts);
    request.is_batch = input.is_batch;
}

void read_logprobs(Fields& fields, GenerateRequest& request) {
    const bool wanted = fields.flag("return_logprob").value_or(false);
    const auto best = fields.integer("top_logprobs_num", 0, kMaxLogprobs).value_or(0);
    request.logprob_texts = fields.flag("return_text_in_logprobs").value_or(false);
    if (wanted) {
        request.options.sampling.num_logprobs = static_cast<std::int32_t>(best);
    }
}

}  // namespace

Parsed<GenerateRequest> parse_generate(std::string_view body, const Bounds& bounds) {
    GenerateRequest request;
    auto error = read_object(body, [&](Fields& fields) {
        refuse_unsupported(fields);
        read_delivery(fields, bounds, request.options);
        read_input(fields, bounds, request);
        read_logprobs(fields, request);
        request.options.max_tokens = kDefaultNewTokens;
        if (auto sampling = fields.object("sampling_params")) {
            refuse_unsupported(*sampling);
            read_sampling(*sampling, kNativeNames, bounds, request.options);
            fields.take_error(*sampling);
        }
    });
    if (error) {
        return *std::move(error);
    }
    return request;
}

}  // namespace megamoe::api
