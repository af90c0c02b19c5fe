#include "frontend/text/chat_encoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "frontend/text/chat_turns.h"
#include "frontend/text/python_json.h"

namespace megamoe::text {
namespace {

constexpr std::string_view kBos = "<｜begin▁of▁sentence｜>";
constexpr std::string_view kEos = "<｜end▁of▁sentence｜>";
constexpr std::string_view kUser = "<｜User｜>";
constexpr std::string_view kAssistant = "<｜Assistant｜>";
constexpr std::string_view kLatestReminder = "<｜latest_reminder｜>";
constexpr std::string_view kThink = "<think>";
constexpr std::string_view kEndThink = "</think>";

struct TaskToken {
    std::string_view name;
    std::string_view token;
};

// In the order of Task.
constexpr std::array kTasks{
    TaskToken{"action", "<｜action｜>"}, TaskToken{"query", "<｜query｜>"}, TaskToken{"authority", "<｜authority｜>"},
    TaskToken{"domain", "<｜domain｜>"}, TaskToken{"title", "<｜title｜>"}, TaskToken{"read_url", "<｜read_url｜>"},
};

// In the order of Role.
constexpr std::array<std::string_view, 6> kRoles{"system", "developer", "user", "assistant", "tool", "latest_reminder"};

Error needs_constants(std::string_view what) {
    return {Errc::kFailedPrecondition,
            fmt::format("{} cannot be put into the prompt: the model directory has no usable encoding/encoding_dsv4.py",
                        what),
            "serve a checkpoint that ships its encoding folder, or leave it out of the request"};
}

// A prompt in the making, which remembers what in it was not ours.
class Prompt {
  public:
    Prompt& markup(std::string_view text) {
        prompt_.text += text;
        return *this;
    }

    Prompt& literal(std::string_view text) {
        const std::size_t begin = prompt_.text.size();
        prompt_.text += text;
        std::vector<ByteRange>& ranges = prompt_.literal;
        if (text.empty()) {
            return *this;
        }
        if (!ranges.empty() && ranges.back().end == begin) {
            ranges.back().end = prompt_.text.size();
        } else {
            ranges.push_back({begin, prompt_.text.size()});
        }
        return *this;
    }

    ChatPrompt take() && { return std::move(prompt_); }

  private:
    ChatPrompt prompt_;
};

class Renderer {
  public:
    Renderer(std::span<const Turn> turns, const ChatOptions& options, const PromptConstants* constants)
        : turns_(turns),
          last_user_(last_user_turn(turns)),
          thinking_(options.thinking),
          drop_thinking_(options.drop_thinking),
          effort_(options.effort),
          constants_(constants) {}

    Result<ChatPrompt> run() && {
        prompt_.markup(kBos);
        MM_TRY_DONE(render_effort());
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(turns_.size()); ++i) {
            MM_TRY_DONE(render_turn(i));
            render_transition(i);
        }
        return std::move(prompt_).take();
    }

  private:
    const Turn& turn(std::int32_t index) const { return turns_[static_cast<std::size_t>(index)]; }

    Result<Done> render_effort() {
        if (!thinking_ || effort_ == Effort::kDefault || effort_ == Effort::kLow) {
            return Done{};
        }
        if (constants_ == nullptr) {
            return needs_constants(effort_ == Effort::kHigh ? "reasoning effort high" : "reasoning effort max");
        }
        prompt_.markup(effort_ == Effort::kHigh ? constants_->effort_high : constants_->effort_max);
        return Done{};
    }

    Result<Done> render_turn(std::int32_t index) {
        const ChatMessage& message = *turn(index).message;
        switch (turn(index).role) {
            case Role::kSystem:
                prompt_.literal(message.content);
                return render_appendices(message);
            case Role::kDeveloper:
                if (message.content.empty()) {
                    return invalid("a developer message has no content");
                }
                prompt_.markup(kUser).literal(message.content);
                return render_appendices(message);
            case Role::kLatestReminder:
                prompt_.markup(kLatestReminder).literal(message.content);
                return Done{};
            case Role::kAssistant:
                render_assistant(index);
                return Done{};
            case Role::kUser:
            case Role::kTool:
                render_user(turn(index));
                return Done{};
        }
        return Done{};
    }

    Result<Done> render_appendices(const ChatMessage& message) {
        if (!message.tools.empty()) {
            MM_TRY_DONE(render_tools(message.tools));
        }
        if (!message.response_format.empty()) {
            if (constants_ == nullptr) {
                return needs_constants("response_format");
            }
            MM_TRY(const std::string schema, printed(message.response_format, "response_format"));
            prompt_.markup("\n\n").markup(constants_->response_format_head).literal(schema);
        }
        return Done{};
    }

    Result<Done> render_tools(const std::vector<std::string>& tools) {
        if (constants_ == nullptr) {
            return needs_constants("tools");
        }
        prompt_.markup("\n\n").markup(constants_->tools_head);
        for (std::size_t i = 0; i < tools.size(); ++i) {
            MM_TRY(const std::string schema, printed(tools[i], fmt::format("tools[{}]", i)));
            prompt_.markup(i > 0 ? "\n" : "").literal(schema);
        }
        prompt_.markup(constants_->tools_tail);
        return Done{};
    }

    static Result<std::string> printed(const std::string& json, std::string_view what) {
        auto text = to_python_json(json);
        return text ? Result<std::string>(std::move(*text))
                    : invalid(fmt::format("{} is not valid JSON, or nested deeper than {}", what, kMaxJsonDepth));
    }

    void render_user(const Turn& user) {
        prompt_.markup(kUser);
        for (std::size_t i = 0; i < user.blocks.size(); ++i) {
            prompt_.markup(i > 0 ? "\n\n" : "");
            const TurnBlock& block = user.blocks[i];
            if (block.is_tool_result) {
                prompt_.markup("<tool_result>").literal(block.text).markup("</tool_result>");
            } else {
                prompt_.literal(block.text);
            }
        }
    }

    void render_assistant(std::int32_t index) {
        const ChatMessage& message = *turn(index).message;
        const bool answers_task = index > 0 && turn(index - 1).task.has_value();
        if (thinking_ && !answers_task && (!drop_thinking_ || index > last_user_)) {
            prompt_.literal(message.reasoning).markup(kEndThink);
        }
        prompt_.literal(message.content);
        render_tool_calls(message.tool_calls);
        prompt_.markup(message.without_eos ? "" : kEos);
    }

    void render_tool_calls(const std::vector<ToolCall>& calls) {
        if (calls.empty()) {
            return;
        }
        prompt_.markup("\n\n<｜DSML｜tool_calls>\n");
        for (const ToolCall& call : calls) {
            prompt_.markup("<｜DSML｜invoke name=\"").literal(call.name).markup("\">\n");
            render_arguments(call.arguments);
            prompt_.markup("\n</｜DSML｜invoke>\n");
        }
        prompt_.markup("</｜DSML｜tool_calls>");
    }

    void render_arguments(const std::string& arguments) {
        const auto members =
            python_json_members(arguments).value_or(std::vector{JsonMember{"arguments", arguments, true}});
        for (std::size_t i = 0; i < members.size(); ++i) {
            prompt_.markup(i > 0 ? "\n" : "")
                .markup("<｜DSML｜parameter name=\"")
                .literal(members[i].key)
                .markup(members[i].is_string ? "\" string=\"true\">" : "\" string=\"false\">")
                .literal(members[i].value)
                .markup("</｜DSML｜parameter>");
        }
    }

    // What lies between a turn and the answer to it.
    void render_transition(std::int32_t index) {
        const bool is_last = index + 1 == static_cast<std::int32_t>(turns_.size());
        if (!is_last && turn(index + 1).role != Role::kAssistant && turn(index + 1).role != Role::kLatestReminder) {
            return;
        }
        if (const std::optional<Task> task = turn(index).task) {
            if (*task == Task::kAction) {
                prompt_.markup(kAssistant).markup(thinking_ ? kThink : kEndThink);
            }
            prompt_.markup(kTasks[static_cast<std::size_t>(*task)].token);
        } else if (turn(index).role == Role::kUser || turn(index).role == Role::kDeveloper) {
            const bool thinks = thinking_ && (!drop_thinking_ || index >= last_user_);
            prompt_.markup(kAssistant).markup(thinks ? kThink : kEndThink);
        }
    }

    std::span<const Turn> turns_;
    std::int32_t last_user_;
    bool thinking_;
    bool drop_thinking_;
    Effort effort_;
    const PromptConstants* constants_;
    Prompt prompt_;
};

bool has_tools(const Turn& turn) {
    return turn.role != Role::kUser && !turn.message->tools.empty();
}

}  // namespace

std::optional<Role> parse_role(std::string_view name) {
    const auto found = std::find(kRoles.begin(), kRoles.end(), name);
    return found == kRoles.end() ? std::nullopt : std::optional(static_cast<Role>(found - kRoles.begin()));
}

std::optional<Task> parse_task(std::string_view name) {
    const auto found =
        std::find_if(kTasks.begin(), kTasks.end(), [&](const TaskToken& task) { return task.name == name; });
    return found == kTasks.end() ? std::nullopt : std::optional(static_cast<Task>(found - kTasks.begin()));
}

std::optional<Effort> parse_effort(std::string_view name) {
    if (name.empty() || name == "none") {
        return Effort::kDefault;
    }
    return name == "low"    ? std::optional(Effort::kLow)
           : name == "high" ? std::optional(Effort::kHigh)
           : name == "max"  ? std::optional(Effort::kMax)
                            : std::nullopt;
}

std::string join_parts(std::span<const ContentPart> parts) {
    std::string joined;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        joined += i > 0 ? "\n\n" : "";
        joined += parts[i].type == "text" ? parts[i].text : fmt::format("[Unsupported {}]", parts[i].type);
    }
    return joined;
}

Result<ChatPrompt> render_chat(std::span<const ChatMessage> messages, const ChatOptions& options,
                               const PromptConstants* constants) {
    if (messages.empty()) {
        return invalid("messages is empty", "send at least one message");
    }
    std::vector<Turn> turns = merge_turns(messages);
    ChatOptions effective = options;
    effective.drop_thinking = options.drop_thinking && std::none_of(turns.begin(), turns.end(), has_tools);
    if (effective.thinking && effective.drop_thinking) {
        forget_old_turns(turns);
    }
    return Renderer(turns, effective, constants).run();
}

Result<std::string> encode_chat(std::span<const ChatMessage> messages, const ChatOptions& options,
                                const PromptConstants* constants) {
    MM_TRY(ChatPrompt prompt, render_chat(messages, options, constants));
    return std::move(prompt.text);
}

}  // namespace megamoe::text
