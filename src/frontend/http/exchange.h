// The answering end of one HTTP request, as a handler sees it.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "frontend/http/message.h"

namespace megamoe::http {

// Either respond() once, or begin(), any number of send(), finish(). A handler may do so later, as long as it keeps the
// exchange; one that drops it unanswered answers 500. Once the client is gone all of this is ignored.
// Thread  the server's I/O thread only
class Exchange {
  public:
    virtual ~Exchange() = default;

    // The whole answer.
    virtual void respond(Response response) = 0;

    // The head of an answer of unknown length; its `body` is not used.
    virtual void begin(Response head) = 0;
    // One more piece of it. Never blocks: what the client does not take waits in memory, so ask is_slow() first.
    virtual void send(std::string_view piece) = 0;
    virtual void finish() = 0;

    // More waits to be sent than the server's stream buffer holds: keep what is new together until on_drained calls.
    virtual bool is_slow() const = 0;
    // Called each time the client has caught up after is_slow() was true.
    virtual void on_drained(std::function<void()> callback) = 0;

    // Called once if the client closes or stalls before the answer is complete. A client that closes its sending half
    // counts as gone: that looks the same as a full close until somebody writes.
    virtual void on_disconnect(std::function<void()> callback) = 0;
};

using Handler = std::function<void(Request request, std::shared_ptr<Exchange> exchange)>;

}  // namespace megamoe::http
