// The small requests: tokenize, detokenize, abort.
#include <utility>

#include "frontend/api/fields.h"
#include "frontend/api/message_fields.h"
#include "frontend/api/parse.h"

namespace megamoe::api {
namespace {

template <class Request, class Read>
Parsed<Request> parse(std::string_view body, const Read& read) {
    Request request;
    if (auto error = read_object(body, [&](Fields& fields) { read(fields, request); })) {
        return *std::move(error);
    }
    return request;
}

}  // namespace

Parsed<TokenizeRequest> parse_tokenize(std::string_view body) {
    return parse<TokenizeRequest>(body, [](Fields& fields, TokenizeRequest& request) {
        request.model = fields.text("model", kMaxNameBytes).value_or("");
        request.prompt = fields.text("prompt", kAnyBytes);
        if (fields.find("messages") != nullptr) {
            request.messages = read_messages(fields);
        }
        if (request.prompt.has_value() == !request.messages.empty()) {
            fields.fail("prompt", "but exactly one of prompt and messages must be given");
        }
    });
}

Parsed<DetokenizeRequest> parse_detokenize(std::string_view body, const Bounds& bounds) {
    return parse<DetokenizeRequest>(body, [&](Fields& fields, DetokenizeRequest& request) {
        request.model = fields.text("model", kMaxNameBytes).value_or("");
        request.skip_special = fields.flag("skip_special_tokens").value_or(true);
        auto tokens = fields.ids("tokens", bounds.vocab_size);
        if (!tokens) {
            fields.fail("tokens", "expected a list of token ids");
        }
        request.tokens = std::move(tokens).value_or(std::vector<std::int32_t>());
    });
}

Parsed<AbortRequest> parse_abort(std::string_view body) {
    return parse<AbortRequest>(body, [](Fields& fields, AbortRequest& request) {
        request.rid = fields.text("rid", kMaxNameBytes).value_or("");
        request.all = fields.flag("abort_all").value_or(false);
        if (request.rid.empty() && !request.all) {
            fields.fail("rid", "but one of rid and abort_all must be given");
        }
    });
}

}  // namespace megamoe::api
