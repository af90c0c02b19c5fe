// One connection and the request it carries. Internal to client/: it shows Boost.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>

#include "lab/client/load_client.h"

namespace megamoe::lab {

class StreamSlot {
  public:
    StreamSlot(boost::asio::io_context& io, const boost::asio::ip::tcp::endpoint& peer) : socket_(io), peer_(peer) {}

    // Sends `request` and reads its answer into `record`; all failures end up there.
    boost::asio::awaitable<void> serve(const std::string& head, const PlannedRequest& request,
                                       const PassOptions& options, RequestRecord& record);

    // Connects if it is not connected; on failure the record, if any, gets the outcome.
    boost::asio::awaitable<bool> connect(std::int64_t timeout_ms, RequestRecord* record);

    // Ends whatever the slot waits for, when a limit has passed or `cancel` is set. To be called a few times a second:
    // limits are seconds, and one sweep costs less than a timer a request.
    void sweep(std::int64_t now_ns, bool cancel);

    // For the self-check.
    std::int64_t connections() const { return connections_; }
    std::int64_t retransmits();

  private:
    enum class Ended : std::uint8_t { kNo, kConnectLimit, kIdleLimit, kTotalLimit, kCancelled };

    boost::asio::awaitable<void> exchange(const std::string& head, const PlannedRequest& request,
                                          const PassOptions& options, RequestRecord& record);
    bool still_usable(std::int64_t now_ns);
    void close();
    void end(Ended why);
    void fail(RequestRecord& record, const char* doing, const boost::system::error_code& error) const;

    boost::asio::ip::tcp::socket socket_;
    boost::asio::ip::tcp::endpoint peer_;
    std::array<char, 16384> buffer_{};
    std::int64_t last_used_ns_ = 0;
    std::int64_t connect_deadline_ns_ = 0;  // 0: none
    std::int64_t total_deadline_ns_ = 0;
    std::int64_t idle_limit_ns_ = 0;
    std::int64_t last_byte_ns_ = 0;
    Ended ended_ = Ended::kNo;
    bool busy_ = false;
    std::int64_t connections_ = 0;
    std::int64_t closed_retransmits_ = 0;
};

}  // namespace megamoe::lab
