#include "frontend/router/dispatcher.h"

#include <mutex>
#include <utility>
#include <vector>

namespace megamoe::router {

// What the engine's threads have reported. Sinks keep it alive, so that a late one finds it closed and not gone.
struct Dispatcher::Inbox {
    std::mutex mutex;
    std::vector<engine::Update> updates;
    bool scheduled = false;          // a task that empties it is on its way
    std::function<void()> schedule;  // empty: closed
};

Dispatcher::Dispatcher(Backend& backend, BalanceMethod method, std::int32_t num_ranks,
                       std::function<void(std::function<void()>)> post)
    : backend_(backend), router_(method, num_ranks), inbox_(std::make_shared<Inbox>()) {
    inbox_->schedule = [this, post = std::move(post)] { post([this] { drain(); }); };
}

Dispatcher::~Dispatcher() {
    const std::lock_guard lock(inbox_->mutex);
    inbox_->schedule = nullptr;
}

Result<RequestId> Dispatcher::submit(engine::Request request, std::shared_ptr<UpdateListener> listener,
                                     std::int32_t tag) {
    const auto prompt_tokens = static_cast<std::int64_t>(request.prompt.size());
    MM_TRY(const std::int32_t rank, router_.dispatch(prompt_tokens, request.routed_rank));
    const RequestId id{next_id_++};
    request.id = id;
    request.routed_rank = rank;
    live_[raw(id)] = Live{std::move(listener), tag, rank, prompt_tokens};
    const auto accepted = backend_.submit(std::move(request), [inbox = inbox_](engine::Update update) {
        const std::lock_guard lock(inbox->mutex);
        if (inbox->schedule) {
            inbox->updates.push_back(std::move(update));
            if (!std::exchange(inbox->scheduled, true)) {
                inbox->schedule();
            }
        }
    });
    if (!accepted) {
        live_.erase(raw(id));
        router_.finish(rank, prompt_tokens);
        return accepted.error();
    }
    return id;
}

void Dispatcher::cancel(RequestId id) {
    const auto found = live_.find(raw(id));
    if (found != live_.end() && found->second.listener) {
        found->second.listener = nullptr;
        backend_.abort(id);
    }
}

void Dispatcher::drain() {
    std::vector<engine::Update> updates;
    {
        const std::lock_guard lock(inbox_->mutex);
        updates.swap(inbox_->updates);
        inbox_->scheduled = false;
    }
    for (engine::Update& update : updates) {
        deliver(std::move(update));
    }
}

void Dispatcher::deliver(engine::Update update) {
    const auto found = live_.find(raw(update.id));
    if (found == live_.end()) {
        return;
    }
    Live& live = found->second;
    const auto listener = live.listener;
    const std::int32_t tag = live.tag;
    if (update.token >= 0) {
        live.tokens += 1;
        router_.grow(live.rank);
    }
    if (update.finish != engine::FinishReason::kNone) {
        router_.finish(live.rank, live.tokens);
        live_.erase(found);
    }
    if (listener) {
        listener->on_update(tag, std::move(update));
    }
    if (live_.empty() && idle_) {
        idle_();
    }
}

}  // namespace megamoe::router
