// Between the requests of the I/O thread and the engine's threads: hands out ids and ranks, brings updates back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/result.h"
#include "frontend/router/backend.h"
#include "frontend/router/rank_router.h"

namespace megamoe::router {

class UpdateListener {
  public:
    virtual ~UpdateListener() = default;
    // In the order of the engine; `tag` is the one given to submit(). Not called after cancel() or after a last update.
    virtual void on_update(std::int32_t tag, engine::Update update) = 0;
};

// A request is live from submit() to its last update, so a cancelled one still counts until the engine lets go of it.
// Thread  the I/O thread, constructor and destructor included
class Dispatcher {
  public:
    // In  post  runs a task on the I/O thread, from any thread, and none once this is gone. Updates that arrive
    //           together come in one task, so that a fast engine does not flood the loop.
    Dispatcher(Backend& backend, BalanceMethod method, std::int32_t num_ranks,
               std::function<void(std::function<void()>)> post);
    ~Dispatcher();
    Dispatcher(const Dispatcher&) = delete;
    Dispatcher& operator=(const Dispatcher&) = delete;

    // Sets id and rank; `request.routed_rank` is the client's wish.
    // Error as Backend::submit; kInvalidArgument: no such rank
    [[nodiscard]] Result<RequestId> submit(engine::Request request, std::shared_ptr<UpdateListener> listener,
                                           std::int32_t tag);
    // Ends a request of which nobody wants to hear any more. Unknown and finished ids are ignored.
    void cancel(RequestId id);
    // Asks the engine to end a request; its last update arrives as usual.
    void abort(RequestId id) { backend_.abort(id); }

    std::size_t num_live() const { return live_.size(); }
    const RankRouter& rank_router() const { return router_; }
    // Called whenever the last live request is gone.
    void on_idle(std::function<void()> callback) { idle_ = std::move(callback); }

  private:
    struct Inbox;
    struct Live {
        std::shared_ptr<UpdateListener> listener;  // null: cancelled
        std::int32_t tag = 0;
        std::int32_t rank = 0;
        std::int64_t tokens = 0;  // as counted by router_
    };

    void drain();
    void deliver(engine::Update update);

    Backend& backend_;
    RankRouter router_;
    std::shared_ptr<Inbox> inbox_;
    std::unordered_map<std::uint64_t, Live> live_;
    std::uint64_t next_id_ = 1;
    std::function<void()> idle_;
};

}  // namespace megamoe::router
