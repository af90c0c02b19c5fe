// Messages of a chat -> the prompt text of the DeepSeek-V4 family. Knows neither JSON requests nor tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontend/text/byte_range.h"
#include "frontend/text/prompt_constants.h"

namespace megamoe::text {

enum class Role : std::uint8_t { kSystem, kDeveloper, kUser, kAssistant, kTool, kLatestReminder };
enum class Task : std::uint8_t { kAction, kQuery, kAuthority, kDomain, kTitle, kReadUrl };
enum class Effort : std::uint8_t { kDefault, kLow, kHigh, kMax };

// "system", "developer", "user", "assistant", "tool", "latest_reminder".
std::optional<Role> parse_role(std::string_view name);
// "action", "query", "authority", "domain", "title", "read_url".
std::optional<Task> parse_task(std::string_view name);
// "none" and "" -> kDefault, "low", "high", "max".
std::optional<Effort> parse_effort(std::string_view name);

// One element of list-form content.
struct ContentPart {
    std::string type;  // "text" or another type, of which only the name is shown
    std::string text;  // of type "text"
};

// List-form content as one string: texts joined by a blank line, other parts as "[Unsupported TYPE]".
std::string join_parts(std::span<const ContentPart> parts);

struct ToolCall {
    std::string id;  // matched with ChatMessage::tool_call_id
    std::string name;
    std::string arguments;  // JSON text of an object; anything else is shown as one raw parameter "arguments"
};

struct ChatMessage {
    Role role = Role::kUser;
    std::string content{};               // UTF-8
    std::string reasoning{};             // assistant
    std::vector<ToolCall> tool_calls{};  // assistant
    std::string tool_call_id{};          // tool
    std::vector<std::string> tools{};  // system, developer: JSON text of each `function` object, shown behind `content`
    std::string response_format{};     // system, developer: JSON text, shown behind the tools; empty = none
    std::optional<Task> task{};        // user above all: ask for this internal task instead of an answer
    bool without_eos = false;          // assistant: leave the turn open
};

struct ChatOptions {
    bool thinking = false;
    bool drop_thinking = true;  // forget the reasoning before the last user turn; tools switch it off
    Effort effort = Effort::kDefault;
};

struct ChatPrompt {
    std::string text;
    std::vector<ByteRange>
        literal;  // what came from the messages; for Tokenizer::encode, so that it cannot act as markup
};

// In    messages   >= 1, in order; the generation prompt follows from the last one
//       constants  texts that ship with the checkpoint; null = it has none
// Error kInvalidArgument: no messages, empty developer content, tools or response_format that are not JSON;
//       kFailedPrecondition: tools, a response format or an effort level need `constants`
// Spec  model spec, 6.3 to 6.6
[[nodiscard]] Result<ChatPrompt> render_chat(std::span<const ChatMessage> messages, const ChatOptions& options,
                                             const PromptConstants* constants);
// Its text alone.
[[nodiscard]] Result<std::string> encode_chat(std::span<const ChatMessage> messages, const ChatOptions& options,
                                              const PromptConstants* constants);

}  // namespace megamoe::text
