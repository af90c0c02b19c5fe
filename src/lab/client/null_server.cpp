#include "lab/client/null_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace megamoe::lab {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Json = nlohmann::ordered_json;

// NOTE: co_await stands alone or initialises a variable, see stream_slot.cpp.
constexpr auto kNoThrow = asio::as_tuple(asio::use_awaitable);

struct Ask {
    enum class Dialect { kCompletion, kChat, kGenerate } dialect = Dialect::kCompletion;
    std::uint32_t prompt_tokens = 0;
    std::uint32_t max_tokens = 16;
    bool stream = false;
    bool final_usage = false;
    bool running_usage = false;
};

std::uint32_t count_tokens(const Json& prompt) {
    if (prompt.is_array()) {
        return static_cast<std::uint32_t>(prompt.size());
    }
    std::istringstream words(prompt.get<std::string>());
    return static_cast<std::uint32_t>(std::distance(std::istream_iterator<std::string>(words), {}));
}

Ask read_ask(std::string_view target, const std::string& body, std::uint32_t extra_prompt_tokens) {
    const Json json = Json::parse(body);
    Ask ask;
    ask.stream = json.value("stream", false);
    if (target == "/generate") {
        ask.dialect = Ask::Dialect::kGenerate;
        ask.prompt_tokens = count_tokens(json.contains("text") ? json["text"] : json.at("input_ids"));
        ask.max_tokens = json.at("sampling_params").value("max_new_tokens", 16U);
        ask.final_usage = ask.running_usage = true;
    } else {
        const bool chat = target == "/v1/chat/completions";
        ask.dialect = chat ? Ask::Dialect::kChat : Ask::Dialect::kCompletion;
        ask.prompt_tokens = count_tokens(chat ? json.at("messages").at(0).at("content") : json.at("prompt"));
        ask.max_tokens = json.value("max_tokens", 16U);
        const Json options = json.value("stream_options", Json::object());
        ask.final_usage = options.value("include_usage", false) || !ask.stream;
        ask.running_usage = options.value("continuous_usage_stats", false);
    }
    ask.prompt_tokens += extra_prompt_tokens;
    return ask;
}

std::string words_from(std::uint32_t first, std::uint32_t count) {
    std::string text;
    for (std::uint32_t k = 0; k < count; ++k) {
        text += fmt::format("w{} ", first + k);
    }
    return text;
}

Json usage_of(const Ask& ask, std::uint32_t tokens) {
    return {{"prompt_tokens", ask.prompt_tokens},
            {"completion_tokens", tokens},
            {"total_tokens", ask.prompt_tokens + tokens}};
}

// The document that says "tokens [first, first + count) are new".
Json chunk_json(const Ask& ask, std::uint32_t first, std::uint32_t count, const char* finish, bool with_usage) {
    const std::uint32_t so_far = first + count;
    const Json reason = finish != nullptr ? Json(finish) : Json(nullptr);
    if (ask.dialect == Ask::Dialect::kGenerate) {
        Json meta = {{"finish_reason", finish != nullptr ? Json{{"type", finish}} : Json(nullptr)}};
        if (with_usage) {
            meta["prompt_tokens"] = ask.prompt_tokens;
            meta["completion_tokens"] = so_far;
        }
        return {{"text", words_from(0, so_far)}, {"meta_info", meta}};
    }
    Json choice = {{"index", 0}};
    const std::string text = words_from(first, count);
    if (ask.dialect == Ask::Dialect::kChat) {
        choice[ask.stream ? "delta" : "message"] = {{"content", text}};
    } else {
        choice["text"] = text;
    }
    choice["finish_reason"] = reason;
    Json json = {{"id", "null-1"}, {"object", "text_completion"}, {"choices", Json::array({choice})}};
    if (with_usage) {
        json["usage"] = usage_of(ask, so_far);
    }
    return json;
}

std::string http_chunk(const std::string& data) {
    return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

std::string event(const Json& json) {
    return "data: " + json.dump() + "\n\n";
}

std::string plain_answer(int status, const std::string& body) {
    return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", status,
                       status == 200 ? "OK" : "Error", body.size(), body);
}

}  // namespace

struct NullServer::State {
    NullServerOptions options;
    asio::io_context io{1};
    tcp::acceptor acceptor{io};
    std::uint16_t port = 0;
    mutable std::mutex mutex;
    NullServerStats stats;
    std::string last_body;
    std::int64_t streams = 0;
    asio::steady_timer gate{io, asio::steady_timer::time_point::max()};  // cancelled when enough streams are open
    bool gate_open = false;
    std::thread thread;

    bool hits(std::int64_t every, std::int64_t number) const { return every > 0 && number % every == 0; }

    asio::awaitable<void> accept_all() {
        for (;;) {
            auto [error, socket] = co_await acceptor.async_accept(kNoThrow);
            if (error) {
                co_return;
            }
            boost::system::error_code ignored;
            socket.set_option(tcp::no_delay(true), ignored);
            {
                const std::lock_guard lock(mutex);
                ++stats.connections;
            }
            asio::co_spawn(io, serve(std::move(socket)), asio::detached);
        }
    }

    asio::awaitable<bool> send(tcp::socket& socket, const std::string& bytes) const {
        const std::size_t piece = options.split_bytes == 0 ? bytes.size() : options.split_bytes;
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            const auto part = asio::buffer(bytes.data() + at, std::min(piece, bytes.size() - at));
            const auto [error, sent] = co_await asio::async_write(socket, part, kNoThrow);
            if (error) {
                co_return false;
            }
        }
        co_return true;
    }

    asio::awaitable<void> serve(tcp::socket socket) {
        boost::beast::flat_buffer buffer;
        for (std::int64_t served = 0; options.close_after == 0 || served < options.close_after; ++served) {
            http::request_parser<http::string_body> parser;
            parser.body_limit(boost::none);
            const auto [error, got] = co_await http::async_read(socket, buffer, parser, kNoThrow);
            if (error) {
                co_return;
            }
            const auto& request = parser.get();
            const std::string target(request.target());
            bool go_on = false;
            if (request.method() == http::verb::post && target != "/flush_cache") {
                go_on = co_await generate(socket, target, request.body());
            } else {
                const std::string answer = plain_answer(200, info(target));
                go_on = co_await send(socket, answer);
            }
            if (!go_on) {
                co_return;
            }
        }
    }

    std::string info(const std::string& target) const {
        if (target == "/v1/models") {
            return R"({"object":"list","data":[{"id":"null"}]})";
        }
        if (target == "/metrics") {
            const std::lock_guard lock(mutex);
            return fmt::format("null:prompt_tokens_total 0\nnull:generation_tokens_total {}\n", stats.tokens);
        }
        return R"({"status":"ok"})";
    }

    asio::awaitable<bool> generate(tcp::socket& socket, const std::string& target, const std::string& body) {
        std::int64_t number = 0;
        {
            const std::lock_guard lock(mutex);
            number = ++stats.requests;
            last_body = body;
            stats.peak_streams = std::max(stats.peak_streams, ++streams);
        }
        if (!gate_open && streams >= options.hold_until_streams) {
            gate_open = true;
            gate.cancel();
        }
        bool go_on = false;
        try {
            const Ask ask = read_ask(target, body, options.extra_prompt_tokens);
            go_on = co_await answer(socket, ask, number);
        } catch (const Json::exception&) {
            // A body that no client of ours sends: the connection closes.
        }
        const std::lock_guard lock(mutex);
        --streams;
        co_return go_on;
    }

    asio::awaitable<bool> answer(tcp::socket& socket, const Ask& ask, std::int64_t number) {
        if (hits(options.fail_every, number)) {
            const std::string failure = plain_answer(500, R"({"error":{"message":"asked to fail"}})");
            const bool sent = co_await send(socket, failure);
            co_return sent;
        }
        if (!gate_open) {
            co_await gate.async_wait(kNoThrow);
        }
        asio::steady_timer timer(io);
        if (hits(options.swallow_every, number)) {
            timer.expires_after(std::chrono::hours(1));
            co_await timer.async_wait(kNoThrow);
            co_return false;
        }
        const std::uint32_t tokens = ask.max_tokens - (hits(options.short_every, number) ? 1 : 0);
        const bool whole = !ask.stream;
        if (whole) {
            count(tokens);
            const std::string all = plain_answer(200, chunk_json(ask, 0, tokens, "length", options.usage).dump());
            const bool sent = co_await send(socket, all);
            co_return sent;
        }
        const bool sent = co_await stream(socket, ask, tokens, number, timer);
        co_return sent;
    }

    asio::awaitable<bool> stream(tcp::socket& socket, const Ask& ask, std::uint32_t tokens, std::int64_t number,
                                 asio::steady_timer& timer) {
        const auto begin = std::chrono::steady_clock::now();
        std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        if (options.role_chunk) {
            head += http_chunk(event(chunk_json(ask, 0, 0, nullptr, false)));
        }
        bool sent = co_await send(socket, head);
        std::int64_t sent_chunks = 0;
        for (std::uint32_t at = 0; sent && at < tokens; at += options.tokens_per_chunk, ++sent_chunks) {
            const double due_ms = options.ttft_ms + static_cast<double>(sent_chunks) * options.gap_ms;
            if (due_ms > 0) {
                timer.expires_at(begin + std::chrono::nanoseconds(static_cast<std::int64_t>(due_ms * 1e6)));
                co_await timer.async_wait(kNoThrow);
            }
            const std::uint32_t fresh = std::min(options.tokens_per_chunk, tokens - at);
            const bool counted = options.usage && ask.running_usage;
            const std::string chunk = http_chunk(event(chunk_json(ask, at, fresh, nullptr, counted)));
            sent = co_await send(socket, chunk);
            count(fresh);
            if (hits(options.cut_every, number)) {
                co_return false;
            }
            if (hits(options.error_every, number)) {
                const Json error = {{"error", {{"message", "asked to break"}, {"type", "internal"}}}};
                const std::string end = http_chunk(event(error) + "data: [DONE]\n\n") + "0\r\n\r\n";
                sent = co_await send(socket, end);
                co_return sent;
            }
        }
        if (sent) {
            const std::string end = last_words(ask, tokens);
            sent = co_await send(socket, end);
        }
        co_return sent;
    }

    // Stop chunk, usage and end marker in one write, as real servers do.
    std::string last_words(const Ask& ask, std::uint32_t tokens) const {
        std::string text;
        if (ask.dialect == Ask::Dialect::kGenerate) {
            text += event(chunk_json(ask, 0, tokens, "length", options.usage));
        } else {
            text += event(chunk_json(ask, tokens, 0, "length", options.usage && ask.running_usage));
        }
        if (options.usage && ask.final_usage && ask.dialect != Ask::Dialect::kGenerate) {
            text += event({{"id", "null-1"}, {"choices", Json::array()}, {"usage", usage_of(ask, tokens)}});
        }
        return http_chunk(text + "data: [DONE]\n\n") + "0\r\n\r\n";
    }

    void count(std::uint32_t tokens) {
        const std::lock_guard lock(mutex);
        stats.tokens += tokens;
    }
};

NullServer::NullServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

NullServer::~NullServer() {
    state_->io.stop();
    if (state_->thread.joinable()) {
        state_->thread.join();
    }
}

Result<std::unique_ptr<NullServer>> NullServer::start(const NullServerOptions& options) {
    auto state = std::make_unique<State>();
    state->options = options;
    state->options.tokens_per_chunk = std::max<std::uint32_t>(options.tokens_per_chunk, 1);
    try {
        const tcp::endpoint where(asio::ip::make_address(options.host), options.port);
        state->acceptor.open(where.protocol());
        state->acceptor.set_option(asio::socket_base::reuse_address(true));
        state->acceptor.bind(where);
        state->acceptor.listen(4096);
        state->port = state->acceptor.local_endpoint().port();
    } catch (const boost::system::system_error& error) {
        return Error{Errc::kUnavailable,
                     fmt::format("cannot listen on {}:{}: {}", options.host, options.port, error.code().message()),
                     "choose another --port"};
    }
    State& s = *state;
    asio::co_spawn(s.io, s.accept_all(), asio::detached);
    s.thread = std::thread([&s] { s.io.run(); });
    return std::unique_ptr<NullServer>(new NullServer(std::move(state)));
}

std::uint16_t NullServer::port() const {
    return state_->port;
}

NullServerStats NullServer::stats() const {
    const std::lock_guard lock(state_->mutex);
    return state_->stats;
}

std::string NullServer::last_body() const {
    const std::lock_guard lock(state_->mutex);
    return state_->last_body;
}

}  // namespace megamoe::lab
