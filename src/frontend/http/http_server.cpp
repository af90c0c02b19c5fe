#include "frontend/http/http_server.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "frontend/http/connection.h"

namespace megamoe::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::string_view kTooManyConnections =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 107\r\nRetry-After: 1\r\n"
    "Connection: close\r\n\r\n"
    R"({"error":{"message":"too many connections, try again","type":"unavailable_error","param":null,"code":null}})";

}  // namespace

struct HttpServer::State {
    explicit State(const ListenOptions& options) { context.options = options; }

    Result<Done> bind();
    asio::awaitable<void> accept();
    void add(tcp::socket socket);
    void begin_close(std::int64_t flush_ms);
    void close_now();

    ConnectionContext context;
    asio::io_context io{1};
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
    tcp::acceptor acceptor{io};
    asio::steady_timer accept_pause{io};
    asio::steady_timer flush_timer{io};
    std::unordered_set<std::shared_ptr<Connection>> connections;
    std::string address;
    int port = 0;
    std::thread thread;
};

Result<Done> HttpServer::State::bind() {
    const ListenOptions& options = context.options;
    const auto fail = [&](std::string_view what, const error_code& error) {
        const bool in_use = error == asio::error::address_in_use;
        return Error{Errc::kUnavailable,
                     fmt::format("cannot {} {}:{}: {}", what, options.host, options.port, error.message()),
                     in_use ? "stop the program that holds the port, or choose another with --port (0 = any free one)"
                            : "check --host and --port"};
    };
    error_code error;
    tcp::resolver resolver(io);
    const auto found = resolver.resolve(options.host, std::to_string(options.port),
                                        tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error || found.empty()) {
        return fail("resolve", error);
    }
    const tcp::endpoint endpoint = *found.begin();
    acceptor.open(endpoint.protocol(), error);
    if (!error) {
        acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    }
    if (!error) {
        acceptor.bind(endpoint, error);
    }
    if (!error) {
        acceptor.listen(asio::socket_base::max_listen_connections, error);
    }
    if (error) {
        return fail("listen on", error);
    }
    port = acceptor.local_endpoint(error).port();
    const bool is_v6 = options.host.find(':') != std::string::npos;
    address = is_v6 ? fmt::format("[{}]:{}", options.host, port) : fmt::format("{}:{}", options.host, port);
    return Done{};
}

asio::awaitable<void> HttpServer::State::accept() {
    constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
    while (acceptor.is_open()) {
        auto [error, socket] = co_await acceptor.async_accept(kTuple);
        if (error == asio::error::operation_aborted) {
            break;
        }
        if (error) {  // out of files or memory: the connection waits in the kernel
            log::warn(
                fmt::format("event=accept_failed reason=\"{}\" connections={}", error.message(), connections.size()));
            accept_pause.expires_after(std::chrono::milliseconds(200));
            co_await accept_pause.async_wait(kTuple);
            continue;
        }
        add(std::move(socket));
    }
}

void HttpServer::State::add(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    socket.non_blocking(true, ignored);
    if (connections.size() >= static_cast<std::size_t>(context.options.max_connections)) {
        socket.write_some(asio::buffer(kTooManyConnections), ignored);
        socket.shutdown(tcp::socket::shutdown_send, ignored);
        return;
    }
    const auto connection = std::make_shared<Connection>(io, std::move(socket), context);
    connections.insert(connection);
    connection->start([this, key = connection.get()] {
        std::erase_if(connections, [&](const auto& c) { return c.get() == key; });
        if (context.closing && connections.empty()) {
            close_now();
        }
    });
}

void HttpServer::State::begin_close(std::int64_t flush_ms) {
    error_code ignored;
    context.closing = true;
    acceptor.close(ignored);
    accept_pause.cancel();
    for (const auto& connection : std::vector(connections.begin(), connections.end())) {
        connection->close_when_idle();
    }
    if (connections.empty() || flush_ms == 0) {
        close_now();
        return;
    }
    flush_timer.expires_after(std::chrono::milliseconds(flush_ms));
    flush_timer.async_wait([this](error_code) { close_now(); });
}

void HttpServer::State::close_now() {
    for (const auto& connection : connections) {
        connection->close();
    }
    work.reset();
    io.stop();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const ListenOptions& options) {
    if (options.port < 0 || options.port > 65535) {
        return invalid(fmt::format("port {} is out of range", options.port), "use 1 to 65535, or 0 for any free one");
    }
    auto state = std::make_unique<State>(options);
    MM_TRY_DONE(state->bind());
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

void HttpServer::serve(Handler handler) {
    state_->context.handler = std::move(handler);
    asio::co_spawn(state_->io, state_->accept(), asio::detached);
    state_->thread = std::thread([state = state_.get()] { state->io.run(); });
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() {
    shutdown(0);
}

int HttpServer::port() const {
    return state_->port;
}

const std::string& HttpServer::address() const {
    return state_->address;
}

void HttpServer::post(std::function<void()> task) {
    asio::post(state_->io, std::move(task));
}

void HttpServer::post_after(std::int64_t delay_ms, std::function<void()> task) {
    asio::post(state_->io, [io = &state_->io, delay_ms, task = std::move(task)]() mutable {
        auto timer = std::make_shared<asio::steady_timer>(*io, std::chrono::milliseconds(delay_ms));
        timer->async_wait([timer, task = std::move(task)](error_code cancelled) {
            if (!cancelled) {
                task();
            }
        });
    });
}

void HttpServer::shutdown(std::int64_t flush_ms) {
    if (!state_->thread.joinable()) {
        return;
    }
    post([state = state_.get(), flush_ms] { state->begin_close(flush_ms); });
    state_->thread.join();
}

}  // namespace megamoe::http
