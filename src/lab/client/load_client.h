// The load generator: replays requests against a server over many concurrent streams, on one thread.
// It does not aggregate: what it returns is one record a request. It never retries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/client/request_record.h"
#include "lab/client/response_reader.h"
#include "lab/client/target.h"

namespace megamoe::lab {

struct PlannedRequest {
    std::string id;
    std::string body;
    bool measured = true;
    std::uint32_t asked_in = 0;
    std::uint32_t asked_out = 0;
};

struct Progress {
    std::int64_t finished = 0;  // whatever the outcome
    std::int64_t failed = 0;
    std::int64_t total = 0;
    std::int64_t in_flight = 0;
    std::int64_t output_tokens = 0;
    double elapsed_s = 0;
};

struct PassOptions {
    // Row k is released at start + release_ns[k]; rows behind the list together with its last one. Empty: all at once.
    std::vector<std::int64_t> release_ns;
    // Requests in flight at most; 0 = no bound. A released row waits for a slot.
    std::int32_t max_concurrency = 0;
    bool open_loop = false;  // t_sched is the release time, even if the row then waits for a slot
    bool reuse_connections = true;
    ReadOptions read;
    std::int64_t connect_timeout_ms = 30000;
    std::int64_t idle_timeout_ms = 0;  // without one byte; 0 = no limit
    std::int64_t total_timeout_ms = std::int64_t{21600} * 1000;
    double max_error_rate = 0;                         // beyond it, and after 32 requests, the rest is skipped
    std::function<void(const Progress&)> on_progress;  // about once a second
};

// Was the client the limit? Spec  bench.md 8.6
struct SelfCheck {
    double loop_lag_p99_ms = 0;
    double loop_lag_max_ms = 0;
    double cpu_share = 0;  // of the thread's wall time
    std::int64_t involuntary_switches = 0;
    std::int64_t coalesced_events = 0;
    std::int64_t events = 0;
    std::int64_t connections = 0;
    std::int64_t tcp_retransmits = 0;
    std::int64_t peak_rss_bytes = 0;
};

struct PassResult {
    std::vector<RequestRecord> records;  // as the requests were given
    std::int64_t t_begin_ns = 0;
    std::int64_t t_end_ns = 0;
    bool interrupted = false;
    bool gave_up = false;  // max_error_rate was exceeded
    SelfCheck self;
};

class LoadClient {
  public:
    // Resolves the target's host. Sends nothing.
    // Error kUnavailable: the name has no address
    [[nodiscard]] static Result<LoadClient> create(const Target& target, const std::string& endpoint);
    LoadClient(LoadClient&&) noexcept;
    ~LoadClient();

    // Opens connections before a clock runs, at most 256 at a time. Those that fail are opened again when needed.
    void open_connections(std::int32_t count, std::int64_t timeout_ms);

    // Runs one pass to its end; connections stay open for the next one. Ctrl-C (see core/interrupt.h) stops the
    // dispatch and gives the requests in flight five seconds.
    PassResult run(const std::vector<PlannedRequest>& requests, const PassOptions& options);

  private:
    struct State;
    explicit LoadClient(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace megamoe::lab
