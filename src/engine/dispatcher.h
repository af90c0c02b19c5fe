// The thread-safe front half of the engine: checks requests, picks their rank, and knows which are alive.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "comm/rank_group.h"
#include "engine/engine_plan.h"
#include "engine/mailbox.h"
#include "engine/request.h"

namespace megamoe::engine {

// Thread  any
class Dispatcher {
  public:
    // Both references must outlive this object.
    Dispatcher(const EnginePlan& plan, comm::RankGroup& group);

    // Checks, books and posts the request, and wakes the ranks.
    // Error as Engine::submit
    [[nodiscard]] Result<Done> submit(Request request, UpdateSink sink);
    void abort(RequestId id);

    // New requests are refused from now on.
    void close();
    void abort_all();
    // Waits until no request is alive, at most `timeout_ms` (-1 = for ever). True: none is.
    bool wait_until_empty(std::int64_t timeout_ms);
    void stop_ranks();

    Mailbox& mailbox(RankId rank) { return *mailboxes_[static_cast<std::size_t>(raw(rank))]; }
    std::vector<RankStats> stats() const;
    void rebase_stats();

  private:
    struct Load {
        std::int64_t tokens = 0;  // prompts of live requests
        std::int64_t requests = 0;
        friend auto operator<=>(const Load&, const Load&) = default;
    };
    struct Booking {
        std::int32_t rank = 0;
        std::int64_t tokens = 0;
    };

    Result<Done> check(const Request& request) const;
    Result<Done> check_room(const Request& request) const;
    std::int32_t least_loaded_rank() const;
    UpdateSink watch(RequestId id, UpdateSink sink);
    void forget(RequestId id);

    const EnginePlan& plan_;
    comm::RankGroup& group_;
    std::vector<std::unique_ptr<Mailbox>> mailboxes_;
    mutable std::mutex mutex_;  // of all below
    std::condition_variable emptied_;
    std::unordered_map<std::uint64_t, Booking> live_;  // by request id
    std::vector<Load> loads_;                          // by rank
    bool closed_ = false;
    std::mt19937_64 seeds_;
};

}  // namespace megamoe::engine
