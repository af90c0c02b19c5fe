#include "lab/client/http_call.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <chrono>
#include <exception>
#include <optional>

#include "lab/core/interrupt.h"

namespace megamoe::lab {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr auto kThrow = asio::use_awaitable;

asio::awaitable<HttpAnswer> exchange(const Target& target, const HttpCall& request, tcp::socket& socket) {
    tcp::resolver resolver(co_await asio::this_coro::executor);
    const auto endpoints = co_await resolver.async_resolve(target.host, std::to_string(target.port), kThrow);
    co_await asio::async_connect(socket, endpoints, kThrow);
    const std::string message =
        request_head(target, request.method, request.endpoint, request.body.size(), {}) + request.body;
    co_await asio::async_write(socket, asio::buffer(message), kThrow);

    HttpAnswer answer;
    boost::beast::flat_buffer buffer;
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    co_await http::async_read_header(socket, buffer, parser, kThrow);
    answer.status = static_cast<int>(parser.get().result_int());
    std::array<char, 8192> piece;
    while (!parser.is_done()) {
        parser.get().body().data = piece.data();
        parser.get().body().size = piece.size();
        const auto [error, got] =
            co_await http::async_read_some(socket, buffer, parser, asio::as_tuple(asio::use_awaitable));
        if (error && error != http::error::need_buffer) {
            throw boost::system::system_error(error);
        }
        const std::string_view bytes(piece.data(), piece.size() - parser.get().body().size);
        if (request.on_body && answer.status == 200) {
            request.on_body(bytes);
        } else {
            answer.body += bytes;
        }
    }
    co_return answer;
}

}  // namespace

Result<HttpAnswer> call(const Target& target, const HttpCall& request) {
    const auto failed = [&](const std::string& reason) {
        return Error{Errc::kUnavailable,
                     fmt::format("{} {}{}: {}", request.method, target.url(), request.endpoint, reason),
                     "check that the server runs there"};
    };
    try {
        asio::io_context io(1);
        tcp::socket socket(io);
        std::optional<Result<HttpAnswer>> result;
        asio::co_spawn(io, exchange(target, request, socket), [&](std::exception_ptr thrown, HttpAnswer answer) {
            try {
                if (thrown) {
                    std::rethrow_exception(thrown);
                }
                result = std::move(answer);
            } catch (const boost::system::system_error& error) {
                result = failed(error.code().message());
            }
        });
        // In slices, so that Ctrl-C is noticed.
        using Clock = std::chrono::steady_clock;
        const auto deadline = Clock::now() + std::chrono::milliseconds(request.timeout_ms);
        while (!result && Clock::now() < deadline && !interrupted()) {
            io.run_one_until(std::min(deadline, Clock::now() + std::chrono::milliseconds(100)));
        }
        if (!result) {
            return failed(interrupted() ? "interrupted" : fmt::format("no answer within {} ms", request.timeout_ms));
        }
        return *std::move(result);
    } catch (const std::exception& error) {
        return failed(error.what());
    }
}

}  // namespace megamoe::lab
