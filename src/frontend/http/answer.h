// The bytes of one answer on their way out. Knows HTTP framing and backlog, no sockets.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "frontend/http/exchange.h"

namespace megamoe::http {

class Answer final : public Exchange {
  public:
    struct Options {
        bool http_1_0 = false;   // no chunks: the end of a stream is the end of the connection
        bool keep_alive = true;  // the client's wish
        bool head_only = false;  // HEAD: the body is left out
        std::size_t slow_bytes = std::size_t{256} << 10;
    };

    // `wake` is called when there is news for the connection.
    Answer(const Options& options, std::function<void()> wake);

    void respond(Response response) override;
    void begin(Response head) override;
    void send(std::string_view piece) override;
    void finish() override;
    bool is_slow() const override { return backlog() > options_.slow_bytes; }
    void on_drained(std::function<void()> callback) override { drained_ = std::move(callback); }
    void on_disconnect(std::function<void()> callback) override;

    // The connection's side.

    // All bytes that wait; they count as backlog until written().
    std::string take();
    void written();
    bool has_bytes() const { return !waiting_.empty(); }
    // The handler has given all of it.
    bool is_complete() const { return state_ == State::kComplete; }
    bool is_gone() const { return state_ == State::kGone; }
    // Whether the connection may serve another request after this one. Holds from the head on.
    bool keeps_alive() const { return options_.keep_alive; }
    void forbid_keep_alive() { options_.keep_alive = false; }
    // The client is gone: tells the handler, unless the answer is complete.
    void disconnect();
    // The handler dropped the exchange: ends the answer if it did not.
    void abandon();

  private:
    enum class State { kOpen, kStreaming, kComplete, kGone };

    std::size_t backlog() const { return waiting_.size() + in_flight_bytes_; }
    void append_head(const Response& response, bool chunked);
    void complete();

    Options options_;
    std::function<void()> wake_;
    std::function<void()> drained_;
    std::function<void()> disconnected_;
    State state_ = State::kOpen;
    bool was_slow_ = false;
    std::string waiting_;
    std::size_t in_flight_bytes_ = 0;
};

}  // namespace megamoe::http
