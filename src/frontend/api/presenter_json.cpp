#include "frontend/api/presenter_json.h"

#include <fmt/format.h>

#include <utility>

#include "frontend/http/sse.h"
#include "frontend/text/utf8.h"

namespace megamoe::api {

using engine::FinishReason;

std::string dump(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json finish_word(FinishReason reason) {
    switch (reason) {
        case FinishReason::kStop:
            return "stop";
        case FinishReason::kLength:
            return "length";
        case FinishReason::kAbort:
            return "abort";
        case FinishReason::kError:
            return "error";
        case FinishReason::kNone:
            break;
    }
    return nullptr;
}

Json matched_value(const Matched& matched) {
    if (const auto* const token = std::get_if<std::int32_t>(&matched)) {
        return *token;
    }
    if (const auto* const stop = std::get_if<std::string>(&matched)) {
        return *stop;
    }
    return nullptr;
}

Json usage_json(const Usage& usage) {
    return {{"prompt_tokens", usage.prompt_tokens},
            {"completion_tokens", usage.completion_tokens},
            {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
            {"prompt_tokens_details", {{"cached_tokens", 0}}},
            {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}}};
}

std::string token_text(const text::Tokenizer& tokenizer, std::int32_t token) {
    return text::repair_utf8(tokenizer.token_bytes(token));
}

EventWriter::EventWriter(const AnswerHead& head, std::string_view object, const GenerationOptions& options)
    : begin_(fmt::format(R"(data: {{"id":{},"object":"{}","created":{},"model":{},"choices":[)", dump(head.id), object,
                         head.created, dump(head.model))),
      include_usage_(options.include_usage),
      continuous_usage_(options.continuous_usage) {}

void EventWriter::add(const Json& choice, const Usage& usage, std::string& out) const {
    out += begin_;
    out += dump(choice);
    out += ']';
    if (continuous_usage_) {
        out += ",\"usage\":";
        out += dump(usage_json(usage));
    } else if (include_usage_) {
        out += ",\"usage\":null";
    }
    out += "}\n\n";
}

void EventWriter::add_usage(const Usage& total, std::string& out) const {
    if (include_usage_) {
        out += begin_;
        out += "],\"usage\":";
        out += dump(usage_json(total));
        out += "}\n\n";
    }
}

std::string whole_answer(const AnswerHead& head, std::string_view object, Json choices, const Usage& total) {
    return dump({{"id", head.id},
                 {"object", object},
                 {"created", head.created},
                 {"model", head.model},
                 {"choices", std::move(choices)},
                 {"usage", usage_json(total)}});
}

}  // namespace megamoe::api
