#include "engine/mailbox.h"

#include <algorithm>
#include <utility>

namespace megamoe::engine {

bool Mailbox::post(Command command) {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
        commands_.push_back(std::move(command));
    }
    return !closed_;
}

std::vector<Command> Mailbox::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(commands_, {});
}

void Mailbox::close(std::int32_t rank, const Error& why) {
    std::vector<Command> left;
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        left.swap(commands_);
    }
    for (Command& command : left) {  // without the lock: a sink may call the engine
        if (auto* arrival = std::get_if<Arrival>(&command)) {
            arrival->sink({.id = arrival->request.id, .finish = FinishReason::kError, .rank = rank, .error = why});
        }
    }
}

void Mailbox::publish(const RankStats& stats) {
    const std::lock_guard lock(mutex_);
    stats_ = stats;
}

RankStats Mailbox::stats() const {
    const std::lock_guard lock(mutex_);
    RankStats out = stats_;
    out.waiting += static_cast<std::int32_t>(std::count_if(
        commands_.begin(), commands_.end(), [](const Command& c) { return std::holds_alternative<Arrival>(c); }));
    for (const auto counter : {&RankStats::prompt_tokens, &RankStats::generated_tokens, &RankStats::extend_steps,
                               &RankStats::decode_steps, &RankStats::idle_steps, &RankStats::retractions}) {
        out.*counter -= base_.*counter;
    }
    return out;
}

void Mailbox::rebase() {
    const std::lock_guard lock(mutex_);
    base_ = stats_;
}

}  // namespace megamoe::engine
