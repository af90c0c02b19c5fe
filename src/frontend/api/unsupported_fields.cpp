// The fields that mean something to other servers and would silently be missed here, in one table.
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "frontend/api/fields.h"

namespace megamoe::api {
namespace {

using nlohmann::json;

bool never(const json&) {
    return false;
}

bool is_false(const json& value) {
    return value == false;
}

bool is_true(const json& value) {
    return value == true;
}

bool is_zero(const json& value) {
    return value == 0;
}

bool is_one(const json& value) {
    return value == 1;
}

bool is_empty(const json& value) {
    return (value.is_array() || value.is_object() || value.is_string()) &&
           (value.is_string() ? value == "" : value.empty());
}

bool is_none_or_auto(const json& value) {
    return value == "none" || value == "auto";
}

bool is_text_format(const json& value) {
    return value.is_object() && value.size() == 1 && value.contains("type") && value["type"] == "text";
}

bool is_text_only(const json& value) {
    return value.is_array() && value.size() == 1 && value[0] == "text";
}

bool is_minus_one(const json& value) {
    return value == -1;
}

struct Unsupported {
    std::string_view name;
    bool (*is_harmless)(const json& value);  // this value asks for nothing
};

constexpr std::array kUnsupported{
    // tools
    Unsupported{"tools", is_empty},
    Unsupported{"tool_choice", is_none_or_auto},
    Unsupported{"functions", is_empty},
    Unsupported{"function_call", is_none_or_auto},
    // constrained output
    Unsupported{"response_format", is_text_format},
    Unsupported{"structured_outputs", is_empty},
    Unsupported{"guided_json", never},
    Unsupported{"guided_regex", is_empty},
    Unsupported{"guided_choice", is_empty},
    Unsupported{"guided_grammar", is_empty},
    Unsupported{"json_schema", is_empty},
    Unsupported{"regex", is_empty},
    Unsupported{"ebnf", is_empty},
    Unsupported{"structural_tag", is_empty},
    Unsupported{"stop_regex", is_empty},
    Unsupported{"bad_words", is_empty},
    Unsupported{"allowed_token_ids", is_empty},
    Unsupported{"logits_processors", is_empty},
    Unsupported{"custom_logit_processor", is_empty},
    // other ways to search or to end
    Unsupported{"use_beam_search", is_false},
    Unsupported{"length_penalty", is_one},
    Unsupported{"priority", is_zero},
    Unsupported{"thinking_token_budget", never},
    // other views of the prompt
    Unsupported{"echo", is_false},
    Unsupported{"suffix", is_empty},
    Unsupported{"prompt_logprobs", never},
    Unsupported{"logprob_start_len", is_minus_one},
    Unsupported{"truncate_prompt_tokens", never},
    Unsupported{"prompt_embeds", never},
    Unsupported{"input_embeds", never},
    Unsupported{"return_hidden_states", is_false},
    // other chat templates
    Unsupported{"chat_template", is_empty},
    Unsupported{"documents", is_empty},
    Unsupported{"stream_reasoning", is_true},
    // other kinds of data, other services
    Unsupported{"modalities", is_text_only},
    Unsupported{"audio", never},
    Unsupported{"image_data", is_empty},
    Unsupported{"video_data", is_empty},
    Unsupported{"audio_data", is_empty},
    Unsupported{"prediction", never},
    Unsupported{"web_search_options", never},
    Unsupported{"lora_path", is_empty},
    Unsupported{"session_params", is_empty},
};

}  // namespace

void refuse_unsupported(Fields& fields) {
    for (const Unsupported& field : kUnsupported) {
        const json* const value = fields.find(field.name);
        if (value != nullptr && !field.is_harmless(*value)) {
            fields.fail(field.name, "which is not supported by this server; leave it out");
        }
    }
}

}  // namespace megamoe::api
