// The server: OpenAI-compatible HTTP over a Backend. One I/O thread for all connections, one thread that prepares
// prompts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "frontend/api/model_info.h"
#include "frontend/router/backend.h"
#include "frontend/router/rank_router.h"

namespace megamoe::text {
class Tokenizer;
}

namespace megamoe::frontend {

struct ServerOptions {
    std::string host = "127.0.0.1";  // address or name to listen on
    std::int32_t port = 30000;       // 0 = any free one; Server::port() tells
    std::string api_key{};           // empty = open; else a bearer token for everything but health and metrics
    router::BalanceMethod load_balance_method = router::BalanceMethod::kTotalTokens;
    std::int32_t max_connections = 4096;
    std::int64_t max_body_bytes = std::int64_t{8} << 20;
    std::int64_t drain_timeout_ms = 60000;  // how long live requests may take after the first SIGTERM
};

class Server {
  public:
    // Binds, listens and serves; requests are refused with 503 until the backend is ready. Prints nothing to stdout.
    // Error kInvalidArgument: options out of range; kUnavailable: the address cannot be bound (address, reason, next
    // step) Owns  `backend` must outlive the server, and so must whatever calls the sinks of its requests
    [[nodiscard]] static Result<std::unique_ptr<Server>> start(const ServerOptions& options, router::Backend& backend,
                                                               std::shared_ptr<const text::Tokenizer> tokenizer,
                                                               ModelInfo model);
    ~Server();  // stop()

    int port() const;

    // Serves until SIGTERM or SIGINT, then drains: health and new requests answer 503, live ones may finish for
    // drain_timeout_ms, the rest is aborted. A second signal aborts at once. Signals act as usual again when it
    // returns. Error  kUnavailable: the backend failed; the text says how Thread one, not a rank's
    [[nodiscard]] Result<Done> run_until_signal();

    // Drains as after a signal, for at most `drain_ms`; returns when no request is live. Further calls return at once.
    // Thread any but the server's own
    void stop(std::int64_t drain_ms = 0);

  private:
    struct State;
    explicit Server(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace megamoe::frontend
