// Encodes chats, for comparison with a checkpoint's own encoder: encode_chat_lines MODEL_DIR.
// In: a JSON object a line, {"messages": [as the OpenAI API has them], "thinking", "drop_thinking", "effort"}.
// Out: the prompt as a JSON string a line; null for one that is refused.
#include <fmt/core.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "frontend/text/chat_encoder.h"

namespace megamoe::text {
namespace {

using nlohmann::ordered_json;

std::string content_of(const ordered_json& message) {
    const ordered_json content = message.value("content", ordered_json());
    if (!content.is_array()) {
        return content.is_string() ? content.get<std::string>() : "";
    }
    std::vector<ContentPart> parts;
    for (const ordered_json& part : content) {
        parts.push_back({part.at("type").get<std::string>(), part.value("text", std::string())});
    }
    return join_parts(parts);
}

ChatMessage read_message(const ordered_json& json) {
    ChatMessage message;
    message.role = parse_role(json.at("role").get<std::string>()).value();
    message.content = content_of(json);
    message.reasoning = json.value("reasoning_content", std::string());
    message.tool_call_id = json.value("tool_call_id", std::string());
    message.without_eos = json.value("wo_eos", false);
    if (json.contains("task")) {
        message.task = parse_task(json["task"].get<std::string>()).value();
    }
    for (const ordered_json& call : json.value("tool_calls", ordered_json::array())) {
        message.tool_calls.push_back({call.value("id", std::string()),
                                      call.at("function").at("name").get<std::string>(),
                                      call.at("function").at("arguments").get<std::string>()});
    }
    for (const ordered_json& tool : json.value("tools", ordered_json::array())) {
        message.tools.push_back(tool.at("function").dump());
    }
    if (json.contains("response_format")) {
        message.response_format = json["response_format"].dump();
    }
    return message;
}

ordered_json encode_line(const ordered_json& line, const PromptConstants& constants) {
    std::vector<ChatMessage> messages;
    for (const ordered_json& message : line.at("messages")) {
        messages.push_back(read_message(message));
    }
    const ChatOptions options{.thinking = line.at("thinking").get<bool>(),
                              .drop_thinking = line.at("drop_thinking").get<bool>(),
                              .effort = parse_effort(line.at("effort").get<std::string>()).value()};
    const auto prompt = encode_chat(messages, options, &constants);
    return prompt ? ordered_json(prompt.value()) : ordered_json();
}

int run(const std::string& model_dir) {
    const auto constants = load_prompt_constants(model_dir);
    if (!constants) {
        fmt::print(stderr, "{}\n", to_string(constants.error()));
        return 1;
    }
    for (std::string line; std::getline(std::cin, line);) {
        std::cout << encode_line(ordered_json::parse(line), constants.value()).dump() << '\n';
    }
    return 0;
}

}  // namespace
}  // namespace megamoe::text

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "usage: encode_chat_lines MODEL_DIR\n");
        return 2;
    }
    return megamoe::text::run(argv[1]);
}
