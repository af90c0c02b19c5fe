#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "frontend/api/fields.h"
#include "frontend/api/message_fields.h"
#include "frontend/api/parse.h"
#include "frontend/api/sampling_fields.h"

namespace megamoe::api {
namespace {

struct EffortWord {
    std::string_view word;
    bool thinking;
    text::Effort effort;
};

constexpr std::array kEfforts{
    EffortWord{"none", false, text::Effort::kDefault}, EffortWord{"minimal", true, text::Effort::kLow},
    EffortWord{"low", true, text::Effort::kLow},       EffortWord{"medium", true, text::Effort::kDefault},
    EffortWord{"high", true, text::Effort::kHigh},     EffortWord{"xhigh", true, text::Effort::kMax},
    EffortWord{"max", true, text::Effort::kMax},
};

void read_effort(Fields& fields, text::ChatOptions& chat) {
    const auto word = fields.text("reasoning_effort", kMaxNameBytes);
    if (!word) {
        return;
    }
    const auto found = std::find_if(kEfforts.begin(), kEfforts.end(), [&](const auto& e) { return e.word == *word; });
    if (found == kEfforts.end()) {
        fields.fail("reasoning_effort", "expected none, minimal, low, medium, high, xhigh or max");
        return;
    }
    chat.thinking = found->thinking;
    chat.effort = found->effort;
}

// chat_template_kwargs: what the family's template takes, refused by name if it is something else.
void read_template_arguments(Fields& fields, text::ChatOptions& chat) {
    auto part = fields.object("chat_template_kwargs");
    if (!part) {
        return;
    }
    for (const auto& [name, value] : fields.find("chat_template_kwargs")->items()) {
        const std::string_view known[] = {"thinking", "enable_thinking", "drop_thinking", "reasoning_effort"};
        if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
            part->fail_at(name, value, "but this chat template only takes thinking, drop_thinking, reasoning_effort");
        }
    }
    read_effort(*part, chat);
    for (const std::string_view name : {"thinking", "enable_thinking"}) {
        chat.thinking = part->flag(name).value_or(chat.thinking);
    }
    chat.drop_thinking = part->flag("drop_thinking").value_or(chat.drop_thinking);
    fields.take_error(*part);
}

// {"thinking":{"type":"enabled"}}, the form of the family's own service.
void read_thinking_object(Fields& fields, text::ChatOptions& chat) {
    auto part = fields.object("thinking");
    if (!part) {
        return;
    }
    const std::string type = part->text("type", kMaxNameBytes).value_or("");
    if (type != "enabled" && type != "disabled") {
        part->fail("type", "expected \"enabled\" or \"disabled\"");
    }
    chat.thinking = type == "enabled";
    fields.take_error(*part);
}

void read_turn_end(Fields& fields, std::vector<text::ChatMessage>& messages) {
    const bool continues = fields.flag("continue_final_message").value_or(false);
    const bool ends_with_assistant = !messages.empty() && messages.back().role == text::Role::kAssistant;
    const bool opens_turn = fields.flag("add_generation_prompt").value_or(true);
    if (!opens_turn && !continues) {
        fields.fail("add_generation_prompt", "which needs continue_final_message = true");
    }
    if (continues && !ends_with_assistant) {
        fields.fail("continue_final_message", "but the last message is not the assistant's");
    }
    if (!continues && ends_with_assistant) {
        fields.fail(fmt::format("messages[{}]", messages.size() - 1),
                    "the last message, must not be the assistant's; continue_final_message = true continues it");
    }
    if (continues && ends_with_assistant) {
        messages.back().without_eos = true;
    }
}

void read_logprobs(Fields& fields, engine::SamplingParams& sampling) {
    const bool wanted = fields.flag("logprobs").value_or(false);
    const auto best = fields.integer("top_logprobs", 0, kMaxLogprobs);
    if (best && *best > 0 && !wanted) {
        fields.fail("top_logprobs", "which needs logprobs = true");
    }
    if (wanted) {
        sampling.num_logprobs = static_cast<std::int32_t>(best.value_or(0));
    }
}

}  // namespace

Parsed<ChatRequest> parse_chat(std::string_view body, const Bounds& bounds) {
    ChatRequest request;
    auto error = read_object(body, [&](Fields& fields) {
        refuse_unsupported(fields);
        request.model = fields.text("model", kMaxNameBytes).value_or("");
        request.messages = read_messages(fields);
        read_turn_end(fields, request.messages);
        read_effort(fields, request.chat);
        read_thinking_object(fields, request.chat);
        read_template_arguments(fields, request.chat);
        request.separate_reasoning = fields.flag("separate_reasoning").value_or(true);
        read_delivery(fields, bounds, request.options);
        // Both names mean the whole answer, reasoning included; the newer one wins.
        const bool is_new = fields.find("max_completion_tokens") != nullptr;
        const FieldNames names{is_new ? "max_completion_tokens" : "max_tokens", "min_tokens", "seed"};
        read_sampling(fields, names, bounds, request.options);
        read_stream_options(fields, request.options);
        read_logprobs(fields, request.options.sampling);
    });
    if (error) {
        return *std::move(error);
    }
    return request;
}

}  // namespace megamoe::api
