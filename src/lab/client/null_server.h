// A server with a known token schedule and known faults, to calibrate and test the client. It has no model: tokens are
// words.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace megamoe::lab {

struct NullServerOptions {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;  // 0: any free one
    double ttft_ms = 0;      // request read to first token
    double gap_ms = 0;       // between chunks, on an absolute schedule
    std::uint32_t tokens_per_chunk = 1;
    bool role_chunk = false;                // an event without text before the first token
    bool usage = true;                      // false: never counts tokens, even when asked to
    std::uint32_t split_bytes = 0;          // cut what is written into pieces of this size; 0: whole
    std::int64_t hold_until_streams = 0;    // no first token before so many requests have been open at once
    std::uint32_t extra_prompt_tokens = 0;  // as a server with a BOS would count
    // Faults by request number, counted from 1 over generation requests; 0: never.
    std::int64_t fail_every = 0;     // HTTP 500
    std::int64_t error_every = 0;    // an error event after the first token
    std::int64_t short_every = 0;    // one token too few
    std::int64_t cut_every = 0;      // the connection closes in the middle
    std::int64_t swallow_every = 0;  // no answer at all
    std::int64_t close_after = 0;    // connections serve so many requests, then close without a word
};

struct NullServerStats {
    std::int64_t requests = 0;  // generations begun
    std::int64_t tokens = 0;
    std::int64_t peak_streams = 0;
    std::int64_t connections = 0;
};

class NullServer {
  public:
    // Listens and serves on a thread of its own. Words of a prompt text, or ids, are its tokens.
    // Error kUnavailable: the port is taken
    [[nodiscard]] static Result<std::unique_ptr<NullServer>> start(const NullServerOptions& options);
    ~NullServer();

    std::uint16_t port() const;
    NullServerStats stats() const;
    // The body of the last generation request.
    std::string last_body() const;

  private:
    struct State;
    explicit NullServer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace megamoe::lab
