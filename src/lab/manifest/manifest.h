// A prompt manifest in memory: the frozen list of requests that every arm of a comparison replays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megamoe::lab {

enum class Role : std::uint8_t {
    kCanary,  // before the clock starts: proves that server and manifest fit together
    kWarmup,  // at full concurrency, not measured, never a repeat of a measured prompt
    kMeasure,
};
std::string_view to_string(Role role);

enum class PromptFormat : std::uint8_t { kText, kIds };
std::string_view to_string(PromptFormat format);

struct Row {
    std::int64_t i = 0;  // position among the rows of its role
    std::string id;      // "m-000017"; unique in the file
    Role role = Role::kMeasure;
    std::string text;                // empty: the prompt exists as ids only
    std::vector<std::uint32_t> ids;  // empty: never tokenized; without BOS
    std::uint32_t in = 0;            // prompt tokens as the server will count them, BOS included
    std::uint32_t out = 0;           // tokens to generate
    std::int64_t at_us = 0;          // arrival after the start of the pass, for replayed traces
    std::optional<std::string> sess;
    std::optional<std::int64_t> turn;
    std::optional<std::int64_t> gap_us;
    std::string params = "{}";  // JSON object merged into the request body; canonical (sorted keys, no spaces)

    friend bool operator==(const Row&, const Row&) = default;
};

struct Sampling {
    double temperature = 0;
    double top_p = 1;
    std::int32_t top_k = -1;
    bool ignore_eos = true;

    friend bool operator==(const Sampling&, const Sampling&) = default;
};

// How the rows came to be; not part of the identity.
struct Origin {
    std::string name;
    std::string created_by;
    std::string generator;         // "random", "random-text", ...
    std::string args_json = "{}";  // resolved generation flags
    std::uint64_t seed = 0;
    std::string tokenizer;
    std::string tokenizer_sha256;
    std::uint32_t vocab = 0;
    std::string bos_policy = "none";  // "counted": row.in has one token more than row.ids
};

struct RowCounts {
    std::size_t canary = 0;
    std::size_t warmup = 0;
    std::size_t measure = 0;
};

struct Manifest {
    Origin origin;
    PromptFormat format = PromptFormat::kText;
    Sampling sampling;
    std::vector<Row> rows;  // canary, warm-up, measure
    std::string content_sha256;
    std::string prompts_sha256;
};

RowCounts count_rows(const Manifest& manifest);
// The rows of one role, in file order.
std::vector<const Row*> rows_of(const Manifest& manifest, Role role);

}  // namespace megamoe::lab
