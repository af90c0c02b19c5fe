#include <utility>

#include "frontend/api/info_json.h"
#include "frontend/api/parse.h"
#include "frontend/api/work.h"

namespace megamoe::api {

http::Response tokenize_response(std::string_view body, const WorkContext& context) {
    const auto parsed = parse_tokenize(body);
    if (const auto* const error = std::get_if<ApiError>(&parsed)) {
        return to_response(*error);
    }
    const auto& request = std::get<TokenizeRequest>(parsed);
    if (const auto error = check_model(request.model, context.model)) {
        return to_response(*error);
    }
    auto tokens = request.prompt ? Parsed<std::vector<std::int32_t>>(context.tokenizer->encode(*request.prompt))
                                 : encode_messages(request.messages, {}, context);
    if (const auto* const error = std::get_if<ApiError>(&tokens)) {
        return to_response(*error);
    }
    return {.body = tokens_json(std::get<std::vector<std::int32_t>>(tokens), context.model.context_length)};
}

http::Response detokenize_response(std::string_view body, const WorkContext& context) {
    const auto parsed = parse_detokenize(body, {context.model.vocab_size, context.model.num_ranks});
    if (const auto* const error = std::get_if<ApiError>(&parsed)) {
        return to_response(*error);
    }
    const auto& request = std::get<DetokenizeRequest>(parsed);
    if (const auto error = check_model(request.model, context.model)) {
        return to_response(*error);
    }
    return {.body = text_json("prompt", context.tokenizer->decode(request.tokens, request.skip_special))};
}

}  // namespace megamoe::api
