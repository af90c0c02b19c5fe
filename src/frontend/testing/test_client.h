// A blocking HTTP client over a raw socket, for tests: it does what no library would, such as to half-close.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace megamoe::frontend::testing {

struct Reply {
    int status = 0;  // 0: the connection ended before a whole head came
    std::string head;
    std::string body;       // chunks put together
    bool is_whole = false;  // its announced end was seen

    bool has(std::string_view text) const { return body.find(text) != std::string::npos; }
    // Value of a header; empty if there is none.
    std::string header(std::string_view name) const {
        const std::string key = "\r\n" + std::string(name) + ": ";
        const std::size_t at = head.find(key);
        return at == std::string::npos ? std::string()
                                       : head.substr(at + key.size(), head.find("\r\n", at + 2) - at - key.size());
    }
    // The `data:` lines of an event stream.
    std::vector<std::string> events() const {
        std::vector<std::string> out;
        for (std::size_t at = body.find("data: "); at != std::string::npos; at = body.find("data: ", at)) {
            const std::size_t end = body.find("\n\n", at);
            out.push_back(body.substr(at + 6, end - at - 6));
            at = end;
        }
        return out;
    }
};

class TestClient {
  public:
    // `receive_buffer` > 0 bounds what the kernel takes for a client that does not read.
    explicit TestClient(int port, int receive_buffer = 0) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
        const int on = 1;
        ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        const timeval limit{.tv_sec = 20, .tv_usec = 0};  // a test that hangs ends
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        if (receive_buffer > 0) {
            ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
        }
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
    ~TestClient() { close(); }
    TestClient(TestClient&& other) noexcept
        : socket_(std::exchange(other.socket_, -1)),
          connected_(other.connected_),
          received_(std::move(other.received_)) {}
    TestClient(const TestClient&) = delete;
    TestClient& operator=(const TestClient&) = delete;

    bool is_connected() const { return connected_; }

    // False: the server has closed.
    bool send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                return false;
            }
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    bool get(std::string_view path, std::string_view headers = {}) {
        return send("GET " + std::string(path) + " HTTP/1.1\r\nHost: t\r\n" + std::string(headers) + "\r\n");
    }
    bool post(std::string_view path, std::string_view body, std::string_view headers = {}) {
        return send("POST " + std::string(path) + " HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n" +
                    std::string(headers) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                    std::string(body));
    }
    void half_close() { ::shutdown(socket_, SHUT_WR); }
    void close() {
        if (socket_ >= 0) {
            ::close(std::exchange(socket_, -1));
        }
    }
    // Closes with a reset instead of an orderly end.
    void reset() {
        const linger now{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        close();
    }

    // The next answer on this connection.
    Reply receive() {
        Reply reply;
        if (!fill_until("\r\n\r\n")) {
            return reply;
        }
        reply.head = take(received_.find("\r\n\r\n") + 4);
        reply.status = std::atoi(reply.head.c_str() + 9);
        if (reply.header("Transfer-Encoding") == "chunked") {
            reply.is_whole = receive_chunks(reply.body);
        } else if (const std::string length = reply.header("Content-Length"); !length.empty()) {
            const auto size = static_cast<std::size_t>(std::atoll(length.c_str()));
            reply.is_whole = fill(size);
            reply.body = take(std::min(size, received_.size()));
        } else if (reply.status == 204) {
            reply.is_whole = true;
        } else {
            while (read_some()) {
            }
            reply.body = take(received_.size());
            reply.is_whole = true;
        }
        return reply;
    }
    // Reads until `mark` has come; false: the connection ended before. What was read is kept for receive().
    bool fill_until(std::string_view mark) {
        while (received_.find(mark) == std::string::npos) {
            if (!read_some()) {
                return false;
            }
        }
        return true;
    }
    // The server has closed, and nothing is left to read.
    bool is_at_end() { return received_.empty() && !read_some(); }

  private:
    bool read_some() {
        char block[16384];
        const ssize_t got = ::recv(socket_, block, sizeof block, 0);
        if (got <= 0) {
            return false;
        }
        received_.append(block, static_cast<std::size_t>(got));
        return true;
    }
    bool fill(std::size_t size) {
        while (received_.size() < size) {
            if (!read_some()) {
                return false;
            }
        }
        return true;
    }
    std::string take(std::size_t size) {
        std::string out = received_.substr(0, size);
        received_.erase(0, size);
        return out;
    }
    bool receive_chunks(std::string& body) {
        while (fill_until("\r\n")) {
            const std::string line = take(received_.find("\r\n") + 2);
            const auto size = static_cast<std::size_t>(std::strtoull(line.c_str(), nullptr, 16));
            if (!fill(size + 2)) {
                return false;
            }
            body += take(size);
            take(2);
            if (size == 0) {
                return true;
            }
        }
        return false;
    }

    int socket_;
    bool connected_ = false;
    std::string received_;
};

}  // namespace megamoe::frontend::testing
