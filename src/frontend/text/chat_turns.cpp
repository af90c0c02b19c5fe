#include "frontend/text/chat_turns.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

namespace megamoe::text {
namespace {

bool is_user_side(Role role) {
    return role == Role::kUser || role == Role::kDeveloper;
}

using CallOrder = std::unordered_map<std::string_view, std::size_t>;  // call id -> place

CallOrder order_of(const std::vector<ToolCall>& calls) {
    CallOrder order;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        if (!calls[i].id.empty()) {
            order.insert_or_assign(calls[i].id, i);
        }
    }
    return order;
}

// Results change places among themselves only; one with an unknown id goes where the first call's goes.
void sort_tool_results(std::vector<TurnBlock>& blocks, const CallOrder& order) {
    std::vector<TurnBlock> results;
    std::copy_if(blocks.begin(), blocks.end(), std::back_inserter(results),
                 [](const TurnBlock& block) { return block.is_tool_result; });
    const auto place = [&](const TurnBlock& result) {
        const auto found = order.find(result.tool_call_id);
        return found == order.end() ? 0 : found->second;
    };
    std::stable_sort(results.begin(), results.end(),
                     [&](const TurnBlock& a, const TurnBlock& b) { return place(a) < place(b); });
    auto next = results.begin();
    for (TurnBlock& block : blocks) {
        if (block.is_tool_result) {
            block = *next++;
        }
    }
}

void sort_all_tool_results(std::vector<Turn>& turns) {
    CallOrder order;
    for (Turn& turn : turns) {
        if (turn.role == Role::kAssistant && !turn.message->tool_calls.empty()) {
            order = order_of(turn.message->tool_calls);
        } else if (turn.role == Role::kUser) {
            sort_tool_results(turn.blocks, order);
        }
    }
}

}  // namespace

std::vector<Turn> merge_turns(std::span<const ChatMessage> messages) {
    std::vector<Turn> turns;
    for (const ChatMessage& message : messages) {
        const bool is_tool = message.role == Role::kTool;
        if (!is_tool && message.role != Role::kUser) {
            turns.push_back({message.role, &message, {}, message.task});
            continue;
        }
        const bool after_user = !turns.empty() && turns.back().role == Role::kUser;
        const bool joins = after_user && (is_tool || !turns.back().task);
        if (!joins) {
            turns.push_back({Role::kUser, &message, {}, is_tool ? std::nullopt : message.task});
        }
        turns.back().blocks.push_back({is_tool, message.tool_call_id, message.content});
    }
    sort_all_tool_results(turns);
    return turns;
}

void forget_old_turns(std::vector<Turn>& turns) {
    const auto last_user = turns.begin() + std::max(last_user_turn(turns), 0);
    const auto kept =
        std::remove_if(turns.begin(), last_user, [](const Turn& turn) { return turn.role == Role::kDeveloper; });
    turns.erase(kept, last_user);
}

std::int32_t last_user_turn(std::span<const Turn> turns) {
    const auto last =
        std::find_if(turns.rbegin(), turns.rend(), [](const Turn& turn) { return is_user_side(turn.role); });
    return static_cast<std::int32_t>(turns.rend() - last) - 1;
}

}  // namespace megamoe::text
