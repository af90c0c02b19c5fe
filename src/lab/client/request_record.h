// Everything that is kept about one request: what it was, when things happened, how it ended.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megamoe::lab {

enum class Outcome : std::uint8_t {
    kOk,
    kHttpError,
    kConnError,
    kTimeout,
    kTruncated,  // the stream ended without its end marker
    kShort,      // fewer tokens than asked although EOS is ignored: less work was done
    kLong,
    kEmpty,        // no token
    kBadStream,    // cannot be parsed
    kServerAbort,  // an error or an abort inside a 200 stream
    kCancelled,    // we stopped
    kSkipped,      // never sent
};

inline std::string_view to_string(Outcome outcome) {
    constexpr std::array<std::string_view, 12> kNames{"ok",         "http_error",   "conn_error", "timeout",
                                                      "truncated",  "short",        "long",       "empty",
                                                      "bad_stream", "server_abort", "cancelled",  "skipped"};
    return kNames[static_cast<std::size_t>(outcome)];
}

// One event that carried tokens.
struct Chunk {
    std::int64_t t_ns = 0;
    std::uint32_t tokens_so_far = 0;  // 0: the server did not say
    std::uint32_t bytes = 0;          // of text
};

// Times are CLOCK_MONOTONIC nanoseconds; 0 = did not happen. Spec  bench.md 5.1
struct RequestRecord {
    std::string id;
    bool measured = true;        // false: warm-up
    std::int64_t index = 0;      // dispatch order within the pass
    std::uint32_t asked_in = 0;  // tokens
    std::uint32_t asked_out = 0;

    std::int64_t t_sched = 0;  // when the load model wanted it to start
    std::int64_t t_slot = 0;   // a concurrency slot was granted
    std::int64_t t_conn0 = 0;  // begin and end of connect, only when a new connection was needed
    std::int64_t t_conn1 = 0;
    std::int64_t t_start = 0;  // before the first byte was written, connection open
    std::int64_t t_sent = 0;
    std::int64_t t_head = 0;   // status line and headers complete
    std::int64_t t_role = 0;   // first event without a token
    std::int64_t t_first = 0;  // first event with a token
    std::int64_t t_last = 0;   // last event with a token
    std::int64_t t_end = 0;    // [DONE], or the end of the answer
    std::vector<Chunk> chunks;

    Outcome outcome = Outcome::kSkipped;
    std::string detail;  // of a failure
    int http_status = 0;
    std::string finish_reason;
    std::optional<std::uint32_t> prompt_tokens;  // as the server counted
    std::optional<std::uint32_t> completion_tokens;
    std::optional<std::uint32_t> cached_tokens;
    std::uint32_t coalesced_events = 0;  // events that shared a read with another one
    std::uint64_t text_hash = 0;         // FNV-1a of all generated text
    std::string text;                    // only if asked for

    bool ok() const { return outcome == Outcome::kOk; }
    // Generated tokens; what was asked for when the server did not count.
    std::uint32_t output_tokens() const { return completion_tokens.value_or(asked_out); }
    std::uint32_t input_tokens() const { return prompt_tokens.value_or(asked_in); }
};

}  // namespace megamoe::lab
