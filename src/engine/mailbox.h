// What other threads leave for a rank, and what the rank shows them. The rank never waits on it.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/request.h"

namespace megamoe::engine {

struct Arrival {
    Request request;
    std::uint64_t seed = 0;
    UpdateSink sink;
};
struct Abort {
    RequestId id{};
};
struct Stop {};  // leave the loop when all ranks have it and nobody has work
using Command = std::variant<Arrival, Abort, Stop>;

// Thread  any, but take(), publish() and close(): the rank's
class Mailbox {
  public:
    // False: the rank is gone, the command was not taken. The caller wakes the ranks afterwards.
    [[nodiscard]] bool post(Command command);
    std::vector<Command> take();
    // No command is taken any more. Requests that were still in the box end with kError.
    void close(std::int32_t rank, const Error& why);

    void publish(const RankStats& stats);
    // Counters since rebase(); arrivals in the box count as waiting.
    RankStats stats() const;
    void rebase();

  private:
    mutable std::mutex mutex_;
    std::vector<Command> commands_;
    bool closed_ = false;
    RankStats stats_;
    RankStats base_;
};

}  // namespace megamoe::engine
