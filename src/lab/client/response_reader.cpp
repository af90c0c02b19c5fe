#include "lab/client/response_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "lab/client/sse_parser.h"
#include "lab/client/stream_event.h"
#include "lab/core/rng.h"

namespace megamoe::lab {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

using OnBody = std::function<void(std::string_view)>;

// A Beast body that hands every piece on as it comes.
struct ForwardBody {
    using value_type = OnBody;

    class reader {
      public:
        template <bool IsRequest, class Fields>
        reader(http::header<IsRequest, Fields>&, value_type& forward) : forward_(forward) {}
        template <class Length>
        void init(const Length&, error_code& error) {
            error = {};
        }
        template <class Buffers>
        std::size_t put(const Buffers& buffers, error_code& error) {
            error = {};
            std::size_t taken = 0;
            for (auto at = boost::asio::buffer_sequence_begin(buffers); at != boost::asio::buffer_sequence_end(buffers);
                 ++at) {
                const boost::asio::const_buffer piece = *at;
                forward_(std::string_view(static_cast<const char*>(piece.data()), piece.size()));
                taken += piece.size();
            }
            return taken;
        }
        void finish(error_code& error) { error = {}; }

      private:
        value_type& forward_;
    };
};

constexpr std::size_t kKeptErrorBytes = 2000;

}  // namespace

struct ResponseReader::State {
    RequestRecord& record;
    ReadOptions options;
    http::response_parser<ForwardBody> parser;
    std::string pending;  // bytes the HTTP parser wants to see again with more behind them
    SseParser sse;
    SseParser::OnEvent on_event;
    std::string body;        // of an answer that is no event stream
    std::string bad_stream;  // why it cannot be understood
    std::string stream_error;
    std::string whole_text;
    bool saw_done = false;
    std::int64_t now_ns = 0;
    std::uint32_t events_in_read = 0;

    State(RequestRecord& r, const ReadOptions& o) : record(r), options(o) {
        parser.eager(true);
        parser.body_limit(boost::none);
        parser.get().body() = [this](std::string_view bytes) { take_body(bytes); };
        on_event = [this](std::string_view data) { take_event(data); };
        record.text_hash = fnv1a64("");
    }

    bool is_stream() const { return options.stream && record.http_status == 200; }

    void note_head() {
        if (record.t_head == 0 && parser.is_header_done()) {
            record.t_head = now_ns;
            record.http_status = static_cast<int>(parser.get().result_int());
        }
    }

    void take_body(std::string_view bytes) {
        note_head();
        if (is_stream()) {
            sse.feed(bytes, on_event);
        } else {
            body += bytes;
        }
    }

    void take_event(std::string_view data) {
        ++events_in_read;
        auto parsed = parse_stream_event(data);
        if (!parsed) {
            bad_stream = parsed.error().what;
            return;
        }
        StreamEvent event = std::move(parsed).take();
        if (event.done) {
            saw_done = true;
            record.t_end = now_ns;
            return;
        }
        if (!event.error.empty()) {
            stream_error = event.error;
        }
        if (event.whole_text) {
            event.text = event.whole_text->substr(std::min(event.whole_text->size(), whole_text.size()));
            whole_text = *std::move(event.whole_text);
        }
        note_counts(event);
        note_tokens(event);
    }

    void note_counts(const StreamEvent& event) {
        if (event.prompt_tokens) {
            record.prompt_tokens = event.prompt_tokens;
        }
        if (event.cached_tokens) {
            record.cached_tokens = event.cached_tokens;
        }
        if (!event.finish_reason.empty()) {
            record.finish_reason = event.finish_reason;
        }
    }

    // An event carries tokens if the running count rose, or, when the server does not count along, if it has text.
    void note_tokens(const StreamEvent& event) {
        const std::uint32_t before = record.chunks.empty() ? 0 : record.chunks.back().tokens_so_far;
        const std::uint32_t so_far = event.has_choice ? event.completion_tokens.value_or(0) : 0;
        if (event.completion_tokens) {
            record.completion_tokens = event.completion_tokens;
        }
        add_text(event.text);
        const bool carries = so_far > 0 ? so_far > before : event.has_choice && !event.text.empty();
        if (!carries) {
            if (record.t_role == 0 && record.t_first == 0 && event.has_choice) {
                record.t_role = now_ns;
            }
            return;
        }
        if (record.t_first == 0) {
            record.t_first = now_ns;
            record.chunks.reserve(std::size_t{record.asked_out} + 16);
        }
        record.t_last = now_ns;
        record.chunks.push_back({now_ns, so_far, static_cast<std::uint32_t>(event.text.size())});
    }

    void add_text(std::string_view text) {
        record.text_hash = fnv1a64(text, record.text_hash);
        if (options.save_text) {
            record.text += text;
        }
    }

    // A single JSON body: counts and text, but no token times.
    void take_whole_body() {
        auto parsed = parse_stream_event(body);
        if (!parsed) {
            bad_stream = parsed.error().what;
            return;
        }
        StreamEvent event = std::move(parsed).take();
        stream_error = event.error;
        note_counts(event);
        record.completion_tokens = event.completion_tokens;
        add_text(event.whole_text ? *event.whole_text : event.text);
        record.t_last = record.t_end;
    }

    std::pair<Outcome, std::string> judge() const;
};

ResponseReader::ResponseReader(RequestRecord& record, const ReadOptions& options)
    : state_(std::make_unique<State>(record, options)) {}

ResponseReader::~ResponseReader() = default;

void ResponseReader::feed(std::string_view bytes, std::int64_t t_ns) {
    State& s = *state_;
    s.now_ns = t_ns;
    s.events_in_read = 0;
    if (!s.pending.empty()) {
        s.pending += bytes;
        bytes = s.pending;
    }
    while (!bytes.empty() && !done()) {
        error_code error;
        const std::size_t used = s.parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
        bytes.remove_prefix(used);
        s.note_head();
        if (error == http::error::need_more) {
            break;
        }
        if (error) {
            s.bad_stream = "not HTTP: " + error.message();
        }
    }
    s.pending = std::string(bytes);
    s.record.coalesced_events += s.events_in_read > 1 ? s.events_in_read - 1 : 0;
}

void ResponseReader::end_of_stream(std::int64_t t_ns) {
    State& s = *state_;
    s.now_ns = t_ns;
    error_code error;
    if (s.parser.got_some() && !s.parser.is_done()) {
        s.parser.put_eof(error);
    }
    if (s.is_stream()) {
        s.sse.finish(s.on_event);
    }
}

bool ResponseReader::done() const {
    return state_->parser.is_done() || state_->bad_stream.starts_with("not HTTP");
}

bool ResponseReader::keep_alive() const {
    return state_->parser.is_done() && state_->parser.keep_alive() && state_->pending.empty();
}

std::pair<Outcome, std::string> ResponseReader::State::judge() const {
    if (record.http_status != 200 && record.http_status != 0) {
        return {Outcome::kHttpError, fmt::format("status {}: {}", record.http_status, body.substr(0, kKeptErrorBytes))};
    }
    if (!bad_stream.empty()) {
        return {Outcome::kBadStream, bad_stream};
    }
    if (record.http_status == 0) {
        return {Outcome::kConnError, "the server closed the connection without an answer"};
    }
    if (!stream_error.empty()) {
        return {Outcome::kServerAbort, stream_error};
    }
    if (record.finish_reason == "abort" || record.finish_reason == "error") {
        return {Outcome::kServerAbort, "finish reason " + record.finish_reason};
    }
    if (!(options.stream ? saw_done : parser.is_done())) {
        return {Outcome::kTruncated, fmt::format("the answer broke off after {} chunks", record.chunks.size())};
    }
    if (options.stream ? record.chunks.empty() : record.completion_tokens == 0U) {
        return {Outcome::kEmpty, "no token came"};
    }
    if (options.fixed_length && record.completion_tokens && *record.completion_tokens != record.asked_out) {
        return {*record.completion_tokens < record.asked_out ? Outcome::kShort : Outcome::kLong,
                fmt::format("{} tokens instead of {}", *record.completion_tokens, record.asked_out)};
    }
    return {Outcome::kOk, ""};
}

void ResponseReader::conclude() {
    State& s = *state_;
    if (s.record.t_end == 0) {
        s.record.t_end = s.now_ns;
    }
    if (s.parser.is_done() && s.is_stream()) {
        s.sse.finish(s.on_event);
    }
    if (!s.options.stream && s.record.http_status == 200 && s.parser.is_done()) {
        s.take_whole_body();
    }
    std::tie(s.record.outcome, s.record.detail) = s.judge();
}

}  // namespace megamoe::lab
