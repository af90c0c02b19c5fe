#include "frontend/http/answer.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/log.h"

namespace megamoe::http {
namespace {

std::string http_date() {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    std::array<char, 40> text{};
    const std::size_t length = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
    return {text.data(), length};
}

}  // namespace

Answer::Answer(const Options& options, std::function<void()> wake) : options_(options), wake_(std::move(wake)) {}

void Answer::append_head(const Response& response, bool chunked) {
    auto out = std::back_inserter(waiting_);
    fmt::format_to(out, "HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status, reason_phrase(response.status), http_date());
    if (!response.content_type.empty()) {
        fmt::format_to(out, "Content-Type: {}\r\n", response.content_type);
    }
    if (chunked) {
        waiting_ += options_.http_1_0 ? "Cache-Control: no-cache\r\n"
                                      : "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n";
    } else if (response.status != 204) {
        fmt::format_to(out, "Content-Length: {}\r\n", response.body.size());
    }
    for (const Header& header : response.headers) {
        fmt::format_to(out, "{}: {}\r\n", header.name, header.value);
    }
    if (!options_.keep_alive) {
        waiting_ += "Connection: close\r\n";
    } else if (options_.http_1_0) {
        waiting_ += "Connection: keep-alive\r\n";
    }
    waiting_ += "\r\n";
}

void Answer::complete() {
    state_ = State::kComplete;
    drained_ = nullptr;
    disconnected_ = nullptr;  // what they captured may hold this answer
    wake_();
}

void Answer::respond(Response response) {
    if (state_ == State::kGone) {
        return;
    }
    MM_CHECK(state_ == State::kOpen, "an exchange is answered once");
    append_head(response, false);
    if (!options_.head_only) {
        waiting_ += response.body;
    }
    complete();
}

void Answer::begin(Response head) {
    if (state_ == State::kGone) {
        return;
    }
    MM_CHECK(state_ == State::kOpen, "an exchange is answered once");
    if (options_.http_1_0) {
        options_.keep_alive = false;
    }
    append_head(head, true);
    state_ = State::kStreaming;
    wake_();
}

void Answer::send(std::string_view piece) {
    if (state_ == State::kGone || piece.empty()) {  // an empty chunk would end the stream
        return;
    }
    MM_CHECK(state_ == State::kStreaming, "send() needs begin() before it");
    if (options_.head_only) {
        return;
    }
    if (options_.http_1_0) {
        waiting_ += piece;
    } else {
        fmt::format_to(std::back_inserter(waiting_), "{:x}\r\n{}\r\n", piece.size(), piece);
    }
    was_slow_ = was_slow_ || is_slow();
    wake_();
}

void Answer::finish() {
    if (state_ == State::kGone) {
        return;
    }
    MM_CHECK(state_ == State::kStreaming, "finish() needs begin() before it");
    if (!options_.http_1_0 && !options_.head_only) {
        waiting_ += "0\r\n\r\n";
    }
    complete();
}

void Answer::on_disconnect(std::function<void()> callback) {
    if (state_ == State::kGone) {
        callback();
    } else {
        disconnected_ = std::move(callback);
    }
}

std::string Answer::take() {
    in_flight_bytes_ = waiting_.size();
    return std::exchange(waiting_, {});
}

void Answer::written() {
    in_flight_bytes_ = 0;
    if (was_slow_ && !is_slow()) {
        was_slow_ = false;
        if (drained_) {
            const auto callback = drained_;  // it may complete the answer, which clears drained_
            callback();
        }
    }
}

void Answer::disconnect() {
    if (state_ == State::kComplete || state_ == State::kGone) {
        return;
    }
    state_ = State::kGone;
    waiting_.clear();
    drained_ = nullptr;
    if (const auto callback = std::exchange(disconnected_, nullptr)) {
        callback();
    }
    wake_();
}

void Answer::abandon() {
    if (state_ == State::kOpen) {
        log::error("event=answer_lost reason=\"a handler dropped its request\"");
        respond({.status = 500,
                 .body = R"({"error":{"message":"the request was lost inside the server","type":"internal_error",)"
                         R"("param":null,"code":null}})"});
    } else if (state_ == State::kStreaming) {
        log::error("event=answer_cut reason=\"a handler dropped its stream\"");
        options_.keep_alive = false;
        complete();
    }
}

}  // namespace megamoe::http
