#include "engine/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace megamoe::engine {

Dispatcher::Dispatcher(const EnginePlan& plan, comm::RankGroup& group)
    : plan_(plan), group_(group), loads_(static_cast<std::size_t>(plan.num_ranks)), seeds_(std::random_device{}()) {
    for (std::int32_t r = 0; r < plan.num_ranks; ++r) {
        mailboxes_.push_back(std::make_unique<Mailbox>());
    }
}

Result<Done> Dispatcher::submit(Request request, UpdateSink sink) {
    MM_TRY_DONE(check(request));
    {
        // Booked and posted under one lock: an abort that finds the booking comes after the arrival.
        const std::lock_guard lock(mutex_);
        MM_TRY_DONE(check_room(request));
        const RequestId id = request.id;
        const Booking booking{.rank = request.routed_rank.value_or(least_loaded_rank()),
                              .tokens = std::ssize(request.prompt)};
        Arrival arrival{.request = std::move(request), .seed = 0, .sink = watch(id, std::move(sink))};
        arrival.seed = arrival.request.sampling.seed.value_or(seeds_());
        if (!arrival.request.sampling.seed) {
            log::debug(fmt::format("request={:#x} seed={} drawn", raw(id), arrival.seed));
        }
        if (!mailbox(RankId{booking.rank}).post(std::move(arrival))) {
            return Error{Errc::kUnavailable, fmt::format("rank {} has ended", booking.rank), "restart the server"};
        }
        live_.emplace(raw(id), booking);
        Load& load = loads_[static_cast<std::size_t>(booking.rank)];
        load.tokens += booking.tokens;
        load.requests += 1;
    }
    group_.wake();
    return Done{};
}

Result<Done> Dispatcher::check(const Request& request) const {
    const std::int64_t num_prompt = std::ssize(request.prompt);
    if (num_prompt == 0) {
        return invalid("the prompt has no tokens");
    }
    MM_TRY_DONE(check_sampling(request.sampling, plan_.vocab_size));
    for (const std::int32_t token : request.prompt) {
        if (token < 0 || token >= plan_.vocab_size) {
            return invalid(
                fmt::format("the prompt has token {}, the vocabulary has ids 0 to {}", token, plan_.vocab_size - 1));
        }
    }
    if (num_prompt + request.sampling.max_tokens > plan_.context_length) {
        return Error{
            Errc::kInvalidArgument,
            fmt::format("the prompt has {} tokens and max_tokens is {}, together {}; the context holds {}", num_prompt,
                        request.sampling.max_tokens, num_prompt + request.sampling.max_tokens, plan_.context_length),
            "shorten the prompt or lower max_tokens"};
    }
    if (num_prompt > plan_.pools.token_capacity) {
        return Error{Errc::kInvalidArgument,
                     fmt::format("the prompt has {} tokens, the cache of a rank holds {}", num_prompt,
                                 plan_.pools.token_capacity),
                     "shorten the prompt, or start the server with more cache"};
    }
    if (request.routed_rank && (*request.routed_rank < 0 || *request.routed_rank >= plan_.num_ranks)) {
        return invalid(
            fmt::format("routed_rank is {}, there are ranks 0 to {}", *request.routed_rank, plan_.num_ranks - 1));
    }
    return Done{};
}

Result<Done> Dispatcher::check_room(const Request& request) const {
    if (const std::optional<Error> failure = group_.failure()) {
        return Error{Errc::kUnavailable, failure->what, "restart the server"};
    }
    if (closed_) {
        return Error{Errc::kUnavailable, "the engine is shutting down", "send the request to another server"};
    }
    if (std::ssize(live_) >= plan_.max_live) {
        return Error{Errc::kResourceExhausted, fmt::format("the queue is full: {} requests run or wait", live_.size()),
                     "retry later"};
    }
    if (live_.contains(raw(request.id))) {
        return invalid(fmt::format("request id {:#x} is in use", raw(request.id)));
    }
    return Done{};
}

std::int32_t Dispatcher::least_loaded_rank() const {
    return static_cast<std::int32_t>(std::min_element(loads_.begin(), loads_.end()) - loads_.begin());
}

// Frees the id before the client hears of the end, so that it may use it again at once.
UpdateSink Dispatcher::watch(RequestId id, UpdateSink sink) {
    return [this, id, sink = std::move(sink)](Update update) {
        if (update.finish != FinishReason::kNone) {
            forget(id);
        }
        sink(std::move(update));
    };
}

void Dispatcher::forget(RequestId id) {
    const std::lock_guard lock(mutex_);
    const auto it = live_.find(raw(id));
    Load& load = loads_[static_cast<std::size_t>(it->second.rank)];
    load.tokens -= it->second.tokens;
    load.requests -= 1;
    live_.erase(it);
    if (live_.empty()) {
        emptied_.notify_all();
    }
}

void Dispatcher::abort(RequestId id) {
    {
        const std::lock_guard lock(mutex_);
        const auto it = live_.find(raw(id));
        if (it == live_.end() || !mailbox(RankId{it->second.rank}).post(Abort{id})) {
            return;
        }
    }
    group_.wake();
}

void Dispatcher::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
}

void Dispatcher::abort_all() {
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, booking] : live_) {
            // A closed mailbox has ended its requests already.
            (void)mailbox(RankId{booking.rank}).post(Abort{RequestId{id}});
        }
    }
    group_.wake();
}

bool Dispatcher::wait_until_empty(std::int64_t timeout_ms) {
    std::unique_lock lock(mutex_);
    const auto empty = [this] { return live_.empty(); };
    if (timeout_ms < 0) {
        emptied_.wait(lock, empty);
        return true;
    }
    return emptied_.wait_for(lock, std::chrono::milliseconds(timeout_ms), empty);
}

void Dispatcher::stop_ranks() {
    for (const auto& box : mailboxes_) {
        (void)box->post(Stop{});  // a rank that has ended needs no telling
    }
    group_.wake();
}

std::vector<RankStats> Dispatcher::stats() const {
    std::vector<RankStats> out;
    for (const auto& box : mailboxes_) {
        out.push_back(box->stats());
    }
    return out;
}

void Dispatcher::rebase_stats() {
    for (const auto& box : mailboxes_) {
        box->rebase();
    }
}

}  // namespace megamoe::engine
