#include "frontend/api/message_fields.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace megamoe::api {
namespace {

using nlohmann::json;

std::string read_parts(Fields& message, const json& parts) {
    std::vector<text::ContentPart> texts;
    for (const json& part : parts) {
        const std::string where = fmt::format("content[{}]", texts.size());
        if (!part.is_object()) {
            message.fail_at(where, part, "expected an object with type and text");
            return {};
        }
        Fields fields(part, message.path() + where + ".");
        const std::string type = fields.text("type", kAnyBytes).value_or("");
        if (type != "text") {
            fields.fail("type", "but only \"text\" is supported");
        }
        auto content = fields.text("text", kAnyBytes);
        if (!content) {
            fields.fail("text", "expected a string");
        }
        message.take_error(fields);
        texts.push_back({type, std::move(content).value_or("")});
    }
    return text::join_parts(texts);
}

std::string read_content(Fields& message) {
    const json* const content = message.find("content");
    if (content == nullptr) {
        message.fail("content", "expected a string or a list of text parts");
        return {};
    }
    if (content->is_array()) {
        return read_parts(message, *content);
    }
    return message.text("content", kAnyBytes).value_or("");
}

text::ChatMessage read_message(Fields& fields) {
    text::ChatMessage message;
    const std::string name = fields.text("role", kAnyBytes).value_or("");
    const auto role = text::parse_role(name);
    if (!role || *role == text::Role::kTool) {
        fields.fail("role", "expected system, developer, user or assistant");
    }
    for (const std::string_view unsupported : {"tool_calls", "function_call", "tools"}) {
        const json* const value = fields.find(unsupported);
        if (value != nullptr && !value->empty()) {
            fields.fail(unsupported, "which is not supported by this server; leave it out");
        }
    }
    message.role = role.value_or(text::Role::kUser);
    message.content = read_content(fields);
    if (message.role == text::Role::kAssistant) {
        message.reasoning = fields.text("reasoning_content", kAnyBytes).value_or("");
    }
    return message;
}

}  // namespace

std::vector<text::ChatMessage> read_messages(Fields& fields) {
    const json* const list = fields.find("messages");
    if (list == nullptr || !list->is_array() || list->empty()) {
        fields.fail("messages", "expected a list with at least one message");
        return {};
    }
    std::vector<text::ChatMessage> messages;
    for (const json& item : *list) {
        const std::string where = fmt::format("messages[{}]", messages.size());
        if (!item.is_object()) {
            fields.fail_at(where, item, "expected an object with role and content");
            return {};
        }
        Fields part(item, where + ".");
        messages.push_back(read_message(part));
        fields.take_error(part);
        if (!fields.ok()) {
            return {};
        }
    }
    return messages;
}

}  // namespace megamoe::api
