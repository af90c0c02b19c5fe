// The first half of the chat encoding: from messages as clients send them to the turns that are rendered.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/text/chat_encoder.h"

namespace megamoe::text {

// A piece of a user turn.
struct TurnBlock {
    bool is_tool_result = false;
    std::string_view tool_call_id;
    std::string_view text;
};

// One message, or several user and tool messages made one. Owns  nothing: views into the messages
struct Turn {
    Role role = Role::kUser;               // never kTool
    const ChatMessage* message = nullptr;  // of a user turn that began with a tool result: that tool message
    std::vector<TurnBlock> blocks;         // of a user turn
    std::optional<Task> task;
};

// Tool results join the user turn beside them, in the order of the calls they answer.
//
// Spec  model spec, 6.3, steps 1 and 2
std::vector<Turn> merge_turns(std::span<const ChatMessage> messages);

// Takes out the developer turns before the last user turn. (Earlier reasoning is left out when rendering.)
// Spec  model spec, 6.3, step 4
void forget_old_turns(std::vector<Turn>& turns);

// Index of the last user or developer turn; -1 = none.
std::int32_t last_user_turn(std::span<const Turn> turns);

}  // namespace megamoe::text
