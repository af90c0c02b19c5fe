// One client connection as two coroutines: one always reads, so that a close is seen at once; one serves request by
// request. Internal to http/, because it shows Boost.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/http/answer.h"
#include "frontend/http/http_server.h"

namespace megamoe::http {

// Wakes one waiting coroutine of the same thread. There is no memory: the waiter checks its condition around each wait.
class Signal {
  public:
    using Time = std::chrono::steady_clock::time_point;

    explicit Signal(boost::asio::io_context& context) : timer_(context) {}

    void wake() { timer_.cancel(); }
    // False: `deadline` came first.
    boost::asio::awaitable<bool> wait_until(Time deadline);
    boost::asio::awaitable<void> wait();

  private:
    boost::asio::steady_timer timer_;
};

// What all connections of a server share.
struct ConnectionContext {
    ListenOptions options;
    Handler handler;
    bool closing = false;
    std::vector<char> scratch = std::vector<char>(std::size_t{64} << 10);  // reads land here first
};

class Connection : public std::enable_shared_from_this<Connection> {
  public:
    Connection(boost::asio::io_context& io, boost::asio::ip::tcp::socket socket, ConnectionContext& context);

    // `ended` is called once, when nothing more will happen.
    void start(std::function<void()> ended);
    // Ends after the answer under way, or now if there is none.
    void close_when_idle();
    void close();

  private:
    struct Incoming;

    boost::asio::awaitable<void> read();
    boost::asio::awaitable<void> serve();
    boost::asio::awaitable<std::optional<Request>> read_request();
    bool parse(Incoming& incoming);
    boost::asio::awaitable<bool> write_answer();
    boost::asio::awaitable<bool> write(std::string_view bytes);
    boost::asio::awaitable<bool> wait_writable();
    boost::asio::awaitable<void> linger();

    std::shared_ptr<Exchange> open_answer(const Answer::Options& options);
    void refuse(int status, std::string_view message);

    boost::asio::io_context& io_;
    boost::asio::ip::tcp::socket socket_;
    ConnectionContext& context_;
    Signal changed_;  // for serve(): new bytes, end of input, or news of the answer
    Signal room_;     // for read(): in_ has shrunk
    boost::asio::steady_timer stall_timer_;
    boost::beast::flat_buffer in_;  // received, not yet parsed
    bool at_end_ = false;           // nothing more will be received
    bool discards_ = false;         // what arrives is of no interest any more
    Answer::Options request_options_;
    std::shared_ptr<Answer> answer_;
};

}  // namespace megamoe::http
