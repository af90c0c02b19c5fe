#include "frontend/http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <exception>
#include <utility>

#include "base/log.h"

namespace megamoe::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Parser = beast::http::request_parser<beast::http::string_body>;

// Requests that a client sends ahead of its answers wait in memory up to here, then in the kernel.
constexpr std::size_t kReadAheadBytes = std::size_t{64} << 10;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

Clock::time_point after_ms(std::int64_t ms) {
    return Clock::now() + std::chrono::milliseconds(ms);
}

std::string to_lower(beast::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c); });
    return out;
}

Request to_request(Parser::value_type&& message) {
    Request out;
    out.method = std::string(message.method_string());
    split_target({message.target().data(), message.target().size()}, out);
    for (const auto& field : message) {
        out.headers.push_back({to_lower(field.name_string()), std::string(field.value())});
    }
    out.body = std::move(message.body());
    return out;
}

}  // namespace

// A request on its way in.
struct Connection::Incoming {
    explicit Incoming(const ListenOptions& options) : deadline(after_ms(options.idle_timeout_ms)) {
        parser.header_limit(static_cast<std::uint32_t>(options.max_header_bytes));
        parser.body_limit(static_cast<std::uint64_t>(options.max_body_bytes));
        parser.eager(true);
    }

    void refuse(const error_code& error, const ListenOptions& options) {
        if (error == beast::http::error::body_limit) {
            status = 413;
            reason = fmt::format("the body is larger than {} bytes", options.max_body_bytes);
        } else if (error == beast::http::error::header_limit) {
            status = 431;
            reason = fmt::format("the request head is larger than {} bytes", options.max_header_bytes);
        } else {
            status = 400;
            reason = fmt::format("not an HTTP request: {}", error.message());
        }
    }

    // True once: the client wants to hear "100 Continue" before it sends the body.
    bool waits_for_invitation() {
        return parser.is_header_done() && !std::exchange(was_asked, true) &&
               beast::iequals(parser.get()[beast::http::field::expect], "100-continue");
    }

    Parser parser;
    Clock::time_point deadline;
    bool begun = false;  // its first byte is here
    bool was_asked = false;
    int status = 0;  // what to refuse it with; 0 = nothing is wrong
    std::string reason;
};

asio::awaitable<bool> Signal::wait_until(Time deadline) {
    timer_.expires_at(deadline);
    const auto [error] = co_await timer_.async_wait(kTuple);
    co_return error == asio::error::operation_aborted;
}

asio::awaitable<void> Signal::wait() {
    timer_.expires_at(Time::max());
    co_await timer_.async_wait(kTuple);
}

Connection::Connection(asio::io_context& io, asio::ip::tcp::socket socket, ConnectionContext& context)
    : io_(io), socket_(std::move(socket)), context_(context), changed_(io), room_(io), stall_timer_(io) {}

void Connection::start(std::function<void()> ended) {
    const auto self = shared_from_this();
    const auto report = [](const std::exception_ptr& failure) {
        try {
            if (failure) {
                std::rethrow_exception(failure);
            }
        } catch (const std::exception& e) {
            log::error(fmt::format("event=connection_failed reason=\"{}\"", e.what()));
        }
    };
    asio::co_spawn(io_, read(), [self, report](std::exception_ptr failure) { report(failure); });
    asio::co_spawn(io_, serve(), [self, report, ended = std::move(ended)](std::exception_ptr failure) {
        report(failure);
        self->close();
        ended();
    });
}

void Connection::close() {
    error_code ignored;
    socket_.close(ignored);
    room_.wake();
    changed_.wake();
}

void Connection::close_when_idle() {
    if (answer_) {
        answer_->forbid_keep_alive();
    } else {
        close();
    }
}

asio::awaitable<void> Connection::read() {
    while (socket_.is_open()) {
        if (in_.size() >= kReadAheadBytes && !discards_) {
            co_await room_.wait();
            continue;
        }
        const auto [wait_error] = co_await socket_.async_wait(asio::ip::tcp::socket::wait_read, kTuple);
        if (wait_error) {
            break;
        }
        error_code error;
        const std::size_t got = socket_.read_some(asio::buffer(context_.scratch), error);
        if (error == asio::error::would_block) {
            continue;
        }
        if (error) {
            break;
        }
        if (!discards_) {
            in_.commit(asio::buffer_copy(in_.prepare(got), asio::buffer(context_.scratch, got)));
            changed_.wake();
        }
    }
    at_end_ = true;
    if (answer_) {
        answer_->disconnect();
    }
    changed_.wake();
}

asio::awaitable<void> Connection::serve() {
    while (!context_.closing) {
        std::optional<Request> request = co_await read_request();
        if (!request) {
            break;
        }
        context_.handler(std::move(*request), open_answer(request_options_));
        if (at_end_) {
            answer_->disconnect();
        }
        const bool written = co_await write_answer();
        if (!written || !answer_->keeps_alive()) {
            break;
        }
        answer_.reset();
    }
    answer_.reset();
    co_await linger();
}

// Parses what has been received. False: more is needed. True: the request is whole, or refused.
bool Connection::parse(Incoming& incoming) {
    if (in_.size() == 0) {
        return false;
    }
    if (!std::exchange(incoming.begun, true)) {
        incoming.deadline = after_ms(context_.options.header_timeout_ms);
    }
    error_code error;
    in_.consume(incoming.parser.put(in_.data(), error));
    room_.wake();
    if (error && error != beast::http::error::need_more) {
        incoming.refuse(error, context_.options);
        return true;
    }
    if (incoming.parser.is_header_done()) {
        incoming.deadline = after_ms(context_.options.body_timeout_ms);
    }
    return incoming.parser.is_done();
}

// The next request; nothing: there is none, or it was refused and the refusal is written.
asio::awaitable<std::optional<Request>> Connection::read_request() {
    Incoming incoming(context_.options);
    while (!parse(incoming)) {
        if (incoming.waits_for_invitation()) {
            const bool written = co_await write("HTTP/1.1 100 Continue\r\n\r\n");
            if (written) {
                continue;
            }
            co_return std::nullopt;
        }
        if (at_end_) {
            co_return std::nullopt;
        }
        const bool woken = co_await changed_.wait_until(incoming.deadline);
        if (!woken && !incoming.begun) {
            co_return std::nullopt;
        }
        if (!woken) {
            incoming.status = 408;
            incoming.reason = "the request did not arrive in time";
            break;
        }
    }
    if (incoming.status != 0) {
        refuse(incoming.status, incoming.reason);
        co_await write_answer();
        co_return std::nullopt;
    }
    request_options_ = Answer::Options{.http_1_0 = incoming.parser.get().version() == 10,
                                       .keep_alive = incoming.parser.keep_alive(),
                                       .head_only = incoming.parser.get().method() == beast::http::verb::head,
                                       .slow_bytes = static_cast<std::size_t>(context_.options.stream_buffer_bytes)};
    co_return to_request(incoming.parser.release());
}

std::shared_ptr<Exchange> Connection::open_answer(const Answer::Options& options) {
    answer_ = std::make_shared<Answer>(options, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) {
            self->changed_.wake();
        }
    });
    // Owns the answer a second time, so as to notice when the handler lets go of it.
    return {answer_.get(), [answer = answer_](Exchange*) { answer->abandon(); }};
}

void Connection::refuse(int status, std::string_view message) {
    open_answer({.keep_alive = false})
        ->respond({.status = status,
                   .body = fmt::format(
                       R"({{"error":{{"message":"{}","type":"invalid_request_error","param":null,"code":null}}}})",
                       message)});
}

// False: the client is gone.
asio::awaitable<bool> Connection::write_answer() {
    while (!answer_->is_gone()) {
        if (answer_->has_bytes()) {
            const std::string bytes = answer_->take();
            const bool written = co_await write(bytes);
            if (!written) {
                answer_->disconnect();
                co_return false;
            }
            answer_->written();
        } else if (answer_->is_complete()) {
            co_return true;
        } else {
            co_await changed_.wait();
        }
    }
    co_return false;
}

asio::awaitable<bool> Connection::write(std::string_view bytes) {
    while (!bytes.empty()) {
        error_code error;
        const std::size_t sent = socket_.write_some(asio::buffer(bytes), error);
        bytes.remove_prefix(sent);
        if (error == asio::error::would_block) {
            const bool writable = co_await wait_writable();
            if (writable) {
                continue;
            }
            co_return false;
        }
        if (error) {
            co_return false;
        }
    }
    co_return true;
}

// False: the client took nothing for write_timeout_ms, and the socket is closed.
asio::awaitable<bool> Connection::wait_writable() {
    stall_timer_.expires_after(std::chrono::milliseconds(context_.options.write_timeout_ms));
    stall_timer_.async_wait([self = shared_from_this()](error_code cancelled) {
        if (!cancelled) {
            self->close();
        }
    });
    const auto [error] = co_await socket_.async_wait(asio::ip::tcp::socket::wait_write, kTuple);
    stall_timer_.cancel();
    co_return !error;
}

// Closing a socket with unread input resets the connection, and the client may lose the answer: so first say "no more",
// then read and drop for a while.
asio::awaitable<void> Connection::linger() {
    if (!socket_.is_open() || at_end_ || context_.closing) {
        co_return;
    }
    error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    discards_ = true;
    in_.clear();
    room_.wake();
    const auto deadline = after_ms(context_.options.linger_ms);
    bool in_time = true;
    while (in_time && !at_end_) {
        in_time = co_await changed_.wait_until(deadline);
    }
}

}  // namespace megamoe::http
