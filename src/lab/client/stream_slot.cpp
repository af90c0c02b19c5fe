#include "lab/client/stream_slot.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/clock.h"

namespace megamoe::lab {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// NOTE: in all coroutines here co_await stands alone or initialises a variable, and no if or while declares one: in
// other places g++ 12 mislays the coroutine's parameters.
constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);
constexpr std::int64_t kMs = 1'000'000;
// Servers close idle connections after about five seconds; a request written at that moment is lost.
constexpr std::int64_t kMaxIdleNs = 3000 * kMs;

}  // namespace

bool StreamSlot::still_usable(std::int64_t now_ns) {
    if (!socket_.is_open() || now_ns - last_used_ns_ > kMaxIdleNs) {
        return false;
    }
    // Anything to read, data or end of stream, means that the server does not expect another request here.
    char byte = 0;
    const ssize_t got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void StreamSlot::close() {
    if (socket_.is_open()) {
        closed_retransmits_ = retransmits();
        error_code ignored;
        socket_.close(ignored);
    }
}

std::int64_t StreamSlot::retransmits() {
    tcp_info info{};
    socklen_t size = sizeof info;
    const bool known =
        socket_.is_open() && ::getsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
    return closed_retransmits_ + (known ? info.tcpi_total_retrans : 0);
}

void StreamSlot::end(Ended why) {
    ended_ = why;
    close();
}

void StreamSlot::sweep(std::int64_t now_ns, bool cancel) {
    if (!busy_ || ended_ != Ended::kNo) {
        return;
    }
    if (cancel) {
        end(Ended::kCancelled);
    } else if (total_deadline_ns_ != 0 && now_ns > total_deadline_ns_) {
        end(Ended::kTotalLimit);
    } else if (connect_deadline_ns_ != 0 && now_ns > connect_deadline_ns_) {
        end(Ended::kConnectLimit);
    } else if (idle_limit_ns_ != 0 && last_byte_ns_ != 0 && now_ns - last_byte_ns_ > idle_limit_ns_) {
        end(Ended::kIdleLimit);
    }
}

void StreamSlot::fail(RequestRecord& record, const char* doing, const error_code& error) const {
    switch (ended_) {
        case Ended::kNo:
            record.outcome = Outcome::kConnError;
            record.detail = fmt::format("{}: {}", doing, error.message());
            return;
        case Ended::kCancelled:
            record.outcome = Outcome::kCancelled;
            record.detail = "stopped by the client";
            return;
        case Ended::kConnectLimit:
            record.detail = "connect";
            break;
        case Ended::kIdleLimit:
            record.detail = "idle";
            break;
        case Ended::kTotalLimit:
            record.detail = "total";
            break;
    }
    record.outcome = Outcome::kTimeout;
}

asio::awaitable<bool> StreamSlot::connect(std::int64_t timeout_ms, RequestRecord* record) {
    const std::int64_t begin = now_ns();
    if (still_usable(begin)) {
        co_return true;
    }
    close();
    const bool was_busy = busy_;
    busy_ = true;
    ended_ = Ended::kNo;
    connect_deadline_ns_ = begin + timeout_ms * kMs;
    const auto [error] = co_await socket_.async_connect(peer_, kNoThrow);
    connect_deadline_ns_ = 0;
    busy_ = was_busy;
    if (error) {
        if (record != nullptr) {
            fail(*record, "connect", error);
        }
        close();
        co_return false;
    }
    ++connections_;
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    last_used_ns_ = now_ns();
    if (record != nullptr) {
        record->t_conn0 = begin;
        record->t_conn1 = last_used_ns_;
    }
    co_return true;
}

asio::awaitable<void> StreamSlot::serve(const std::string& head, const PlannedRequest& request,
                                        const PassOptions& options, RequestRecord& record) {
    busy_ = true;
    ended_ = Ended::kNo;
    last_byte_ns_ = 0;
    idle_limit_ns_ = options.idle_timeout_ms * kMs;
    total_deadline_ns_ = now_ns() + options.total_timeout_ms * kMs;
    if (!options.reuse_connections) {
        close();
    }
    const bool connected = co_await connect(options.connect_timeout_ms, &record);
    if (connected) {
        co_await exchange(head, request, options, record);
    }
    last_used_ns_ = now_ns();
    if (record.t_end == 0) {
        record.t_end = last_used_ns_;
    }
    total_deadline_ns_ = 0;
    busy_ = false;
}

asio::awaitable<void> StreamSlot::exchange(const std::string& head, const PlannedRequest& request,
                                           const PassOptions& options, RequestRecord& record) {
    const std::array<asio::const_buffer, 2> message{asio::buffer(head), asio::buffer(request.body)};
    record.t_start = now_ns();
    last_byte_ns_ = record.t_start;
    const auto [write_error, written] = co_await asio::async_write(socket_, message, kNoThrow);
    if (write_error) {
        fail(record, "write", write_error);
        close();
        co_return;
    }
    record.t_sent = now_ns();
    ResponseReader reader(record, options.read);
    while (!reader.done()) {
        const auto [error, got] = co_await socket_.async_read_some(asio::buffer(buffer_), kNoThrow);
        const std::int64_t now = now_ns();
        last_byte_ns_ = now;
        if (error == asio::error::eof) {
            reader.end_of_stream(now);
            break;
        }
        if (error) {
            fail(record, "read", error);
            close();
            co_return;
        }
        reader.feed({buffer_.data(), got}, now);
    }
    reader.conclude();
    if (!reader.keep_alive()) {
        close();
    }
}

}  // namespace megamoe::lab
