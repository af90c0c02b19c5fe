// HTTP/1.1 over plain TCP: one thread runs the listener, all connections and all handlers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "frontend/http/exchange.h"

namespace megamoe::http {

struct ListenOptions {
    std::string host = "127.0.0.1";
    std::int32_t port = 0;  // 0 = any free one
    std::int32_t max_connections = 4096;
    std::int64_t max_header_bytes = std::int64_t{16} << 10;
    std::int64_t max_body_bytes = std::int64_t{8} << 20;
    std::int64_t stream_buffer_bytes = std::int64_t{256} << 10;  // beyond it a stream counts as slow
    std::int64_t idle_timeout_ms = 120000;                       // between requests; longer than the usual clients'
    std::int64_t header_timeout_ms = 15000;                      // from a request's first byte to the end of its head
    std::int64_t body_timeout_ms = 30000;                        // without one byte of the body
    std::int64_t write_timeout_ms = 60000;                       // without the client taking one byte
    std::int64_t linger_ms = 2000;                               // after the last answer, for the client to read it
};

class HttpServer {
  public:
    // Binds and listens, so that clients may connect; they are answered from serve() on.
    // Error kInvalidArgument: port out of range; kUnavailable: the address cannot be resolved or bound
    [[nodiscard]] static Result<std::unique_ptr<HttpServer>> listen(const ListenOptions& options);
    ~HttpServer();  // shutdown(0)

    // Starts the I/O thread. Call once.
    void serve(Handler handler);

    int port() const;
    const std::string& address() const;  // "127.0.0.1:30000"

    // Runs `task` on the I/O thread, in order; never after shutdown(). Thread: any.
    void post(std::function<void()> task);
    void post_after(std::int64_t delay_ms, std::function<void()> task);

    // Refuses new connections, lets answers under way be written for up to `flush_ms`, closes everything, joins the
    // thread. Idempotent. Thread: any but the I/O thread.
    void shutdown(std::int64_t flush_ms);

  private:
    struct State;
    explicit HttpServer(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace megamoe::http
