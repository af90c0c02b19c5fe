#include "config/serve_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <type_traits>
#include <utility>

namespace megamoe {
namespace {

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::string quote(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

template <class Field>
std::string print(const Field& field) {
    return fmt::format("{}", field);
}
template <class Field>
std::string print(const std::optional<Field>& field) {
    return field ? fmt::format("{}", *field) : std::string();
}

// The type of a field without its optional.
template <class Field>
struct Plain {
    using Type = Field;
};
template <class Field>
struct Plain<std::optional<Field>> {
    using Type = Field;
};

// The kinds of flag. `access` returns the field it fills: `[](auto& o) -> auto& { return o.port; }`.
template <class Access>
Flag text(Flag flag, Access access) {
    flag.set = [access](ServeOptions& options, const std::string& value) {
        access(options) = value;
        return std::string();
    };
    flag.get = [access](const ServeOptions& options) { return quote(access(options)); };
    return flag;
}

template <class Low, class High, class Access>
Flag number(Flag flag, Low low, High high, Access access) {
    using Number = typename Plain<std::remove_cvref_t<decltype(access(std::declval<ServeOptions&>()))>>::Type;
    const auto from = static_cast<Number>(low);
    const auto to = static_cast<Number>(high);
    flag.set = [=](ServeOptions& options, const std::string& value) {
        const auto parsed = parse_number<Number>(value);
        if (!parsed || !(*parsed >= from && *parsed <= to)) {
            return fmt::format("not a {} from {} to {}", std::is_integral_v<Number> ? "whole number" : "number", from,
                               to);
        }
        access(options) = *parsed;
        return std::string();
    };
    flag.get = [access](const ServeOptions& options) { return print(access(options)); };
    return flag;
}

template <class Access>
Flag on_off(Flag flag, Access access) {
    flag.set = [access](ServeOptions& options, const std::string& value) {
        if (value != "true" && value != "false") {
            return std::string("a switch is true or false");
        }
        access(options) = value == "true";
        return std::string();
    };
    flag.get = [access](const ServeOptions& options) { return print(access(options)); };
    return flag;
}

template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

// Values that users of other engines know and that cannot be had here, with the reason.
using Reasons = std::vector<std::pair<std::string, std::string>>;

template <class Value, class Access>
Flag choice(Flag flag, Choices<Value> choices, Access access, const Reasons& reasons = {}) {
    std::vector<std::string> words;
    for (const auto& [word, value] : choices) {
        words.push_back(word);
    }
    flag.value_hint = fmt::format("{}", fmt::join(words, "|"));
    flag.set = [=](ServeOptions& options, const std::string& value) {
        const auto it = std::find(words.begin(), words.end(), value);
        if (it != words.end()) {
            access(options) = choices[static_cast<std::size_t>(it - words.begin())].second;
            return std::string();
        }
        const auto known =
            std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == value; });
        return fmt::format("{}; use one of: {}", known == reasons.end() ? "no such value" : known->second,
                           fmt::join(words, ", "));
    };
    flag.get = [access, choices = std::move(choices)](const ServeOptions& options) {
        const auto same = [&](const auto& known) { return known.second == access(options); };
        return quote(std::find_if(choices.begin(), choices.end(), same)->first);
    };
    return flag;
}

Choices<std::string> words(const std::vector<std::string>& names) {
    Choices<std::string> choices;
    for (const auto& name : names) {
        choices.emplace_back(name, name);
    }
    return choices;
}

const std::string kFp8Reason = "the caches hold bfloat16 in this version";
const Reasons kNoFp8Cache{{"fp8", kFp8Reason}, {"fp8_e4m3", kFp8Reason}, {"fp8_e5m2", kFp8Reason}};

const Reasons kOtherBackends{
    {"none", "the experts lie on different ranks, so their rows must be exchanged"},
    {"deepep", "that library runs on GPUs"},
    {"mooncake", "that library runs on GPUs"},
};

constexpr std::int32_t kMaxRanks = 64;  // one machine's worth; as comm::kMaxRanks
constexpr std::int32_t kMaxTokens = 1 << 30;
constexpr std::int32_t kMaxRequests = 1 << 20;

FlagGroup model_flags() {
    return {
        "Model",
        {
            text(
                {.name = "model-path",
                 .aliases = {"model"},
                 .value_hint = "DIR",
                 .help = "checkpoint folder in the released format"},
                [](auto& o) -> auto& { return o.model_path; }),
            text(
                {.name = "served-model-name",
                 .value_hint = "NAME",
                 .help = "what clients call it; default: the last part of --model-path"},
                [](auto& o) -> auto& { return o.served_model_name; }),
            number(
                {.name = "context-length",
                 .value_hint = "TOKENS",
                 .help = "prompt and answer together; 0 = what the model was made for"},
                0, kMaxTokens, [](auto& o) -> auto& { return o.engine.context_length; }),
            choice<Profile>(
                {.name = "profile", .help = "numerics: hf = float32, to compare with transformers; ds = as released"},
                {{"hf", Profile::kHf}, {"ds", Profile::kDs}}, [](auto& o) -> auto& { return o.engine.profile; }),
            choice(
                {.name = "kv-cache-dtype", .help = "auto = bf16 in profile ds, f32 in hf"},
                words({"auto", "bf16", "bfloat16"}), [](auto& o) -> auto& { return o.kv_cache_dtype; }, kNoFp8Cache),
        }};
}

FlagGroup rank_flags() {
    return {"Ranks",
            {
                number(
                    {.name = "tp-size",
                     .aliases = {"tp", "tensor-parallel-size"},
                     .value_hint = "N",
                     .help = "ranks in all; equals --dp-size and --ep-size here"},
                    1, kMaxRanks, [](auto& o) -> auto& { return o.tp_size; }),
                number(
                    {.name = "dp-size",
                     .aliases = {"dp", "data-parallel-size"},
                     .value_hint = "N",
                     .help = "ranks that each hold other requests"},
                    1, kMaxRanks, [](auto& o) -> auto& { return o.dp_size; }),
                number(
                    {.name = "ep-size",
                     .aliases = {"ep", "expert-parallel-size"},
                     .value_hint = "N",
                     .help = "ranks that share the experts; alone it sets all three"},
                    1, kMaxRanks, [](auto& o) -> auto& { return o.ep_size; }),
                on_off(
                    {.name = "enable-dp-attention", .help = "needed beside --tp-size above 1"},
                    [](auto& o) -> auto& { return o.enable_dp_attention; }),
                choice(
                    {.name = "moe-a2a-backend", .help = "how tokens reach their experts on other ranks"},
                    words({"standard", "megamoe", "reference"}), [](auto& o) -> auto& { return o.moe_a2a_backend; },
                    kOtherBackends),
                number(
                    {.name = "megamoe-version",
                     .value_hint = "N",
                     .help = "of backend megamoe: 1 = fused phase by phase, 2 = exchange and products overlap"},
                    1, 2, [](auto& o) -> auto& { return o.megamoe_version; }),
                choice(
                    {.name = "load-balance-method", .help = "which rank gets the next request"},
                    words({"total_tokens", "total_requests", "round_robin"}),
                    [](auto& o) -> auto& { return o.load_balance_method; }),
                number(
                    {.name = "threads-per-rank", .value_hint = "N", .help = "0 = cores / ranks"}, 0, 4096,
                    [](auto& o) -> auto& { return o.engine.threads_per_rank; }),
                text(
                    {.name = "isa",
                     .value_hint = "NAME",
                     .help = "scalar, avx2, avx512, avx512bf16; default: the best here"},
                    [](auto& o) -> auto& { return o.engine.isa; }),
                number(
                    {.name = "exchange-timeout-ms", .value_hint = "MS", .help = "how long a rank waits for the others"},
                    1, 86400000, [](auto& o) -> auto& { return o.engine.exchange_timeout_ms; }),
            }};
}

FlagGroup schedule_flags() {
    return {
        "Memory and scheduling",
        {
            number(
                {.name = "page-size", .value_hint = "TOKENS", .help = "a multiple of the model's compression ratios"},
                1, 1 << 20, [](auto& o) -> auto& { return o.engine.page_size; }),
            number(
                {.name = "chunked-prefill-size", .value_hint = "TOKENS", .help = "prefill a step, all ranks together"},
                -1, kMaxTokens, [](auto& o) -> auto& { return o.engine.chunked_prefill_size; }),
            number(
                {.name = "max-running-requests", .value_hint = "N", .help = "at once, all ranks together"}, 1,
                kMaxRequests, [](auto& o) -> auto& { return o.engine.max_running_requests; }),
            number(
                {.name = "max-queued-requests", .value_hint = "N", .help = "waiting, all ranks together; more get 503"},
                0, kMaxRequests, [](auto& o) -> auto& { return o.engine.max_queued_requests; }),
            number(
                {.name = "mem-fraction-static",
                 .value_hint = "F",
                 .help = "share of the memory that is free after loading, for the caches"},
                0.01, 1.0, [](auto& o) -> auto& { return o.engine.mem_fraction; }),
            number(
                {.name = "max-total-tokens",
                 .value_hint = "TOKENS",
                 .help = "what the caches of a rank hold; 0 = by --mem-fraction-static"},
                0, std::int64_t{1} << 40, [](auto& o) -> auto& { return o.engine.max_total_tokens; }),
        }};
}

FlagGroup server_flags() {
    return {
        "Server",
        {
            text(
                {.name = "host", .value_hint = "ADDRESS", .help = "address to listen on; 0.0.0.0 = every interface"},
                [](auto& o) -> auto& { return o.host; }),
            number(
                {.name = "port", .value_hint = "N", .help = "0 = any free one"}, 0, 65535,
                [](auto& o) -> auto& { return o.port; }),
            text(
                {.name = "api-key", .value_hint = "KEY", .help = "bearer token that clients must send; default: open"},
                [](auto& o) -> auto& { return o.api_key; }),
            number(
                {.name = "max-connections", .value_hint = "N", .help = "open at once"}, 1, kMaxRequests,
                [](auto& o) -> auto& { return o.max_connections; }),
            number(
                {.name = "drain-timeout", .value_hint = "SECONDS", .help = "for live requests after a SIGTERM"}, 0,
                86400, [](auto& o) -> auto& { return o.drain_timeout; }),
            choice(
                {.name = "log-level", .help = "the least severe lines to write"},
                words({"debug", "info", "warning", "error"}), [](auto& o) -> auto& { return o.log_level; }),
            choice(
                {.name = "log-format", .help = "json = one object a line"}, words({"text", "json"}),
                [](auto& o) -> auto& { return o.log_format; }),
        }};
}

FlagGroup program_flags() {
    FlagGroup group{
        "This program",
        {
            text(
                {.name = "config", .value_hint = "FILE.toml", .help = "any of these flags as keys; flags win"},
                [](auto& o) -> auto& { return o.config; }),
            on_off(
                {.name = "print-config", .help = "write the effective configuration, and where each value came from"},
                [](auto& o) -> auto& { return o.print_config; }),
            on_off(
                {.name = "dry-run", .help = "check everything, allocate nothing, exit"},
                [](auto& o) -> auto& { return o.dry_run; }),
        }};
    for (Flag& flag : group.flags) {
        flag.in_file = false;
    }
    return group;
}

template <class Entry>
bool answers_to(const Entry& flag, std::string_view name) {
    return flag.name == name || std::find(flag.aliases.begin(), flag.aliases.end(), name) != flag.aliases.end();
}

}  // namespace

std::span<const FlagGroup> serve_flags() {
    static const std::vector<FlagGroup> groups{model_flags(), rank_flags(), schedule_flags(), server_flags(),
                                               program_flags()};
    return groups;
}

const Flag* find_flag(std::string_view name) {
    for (const FlagGroup& group : serve_flags()) {
        for (const Flag& flag : group.flags) {
            if (answers_to(flag, name)) {
                return &flag;
            }
        }
    }
    return nullptr;
}

const ForeignFlag* find_foreign_flag(std::string_view name) {
    const auto all = foreign_flags();
    const auto it = std::find_if(all.begin(), all.end(), [&](const ForeignFlag& flag) { return flag.name == name; });
    return it == all.end() ? nullptr : &*it;
}

std::vector<std::string> all_flag_names() {
    std::vector<std::string> names;
    for (const FlagGroup& group : serve_flags()) {
        for (const Flag& flag : group.flags) {
            names.push_back(flag.name);
            names.insert(names.end(), flag.aliases.begin(), flag.aliases.end());
        }
    }
    for (const ForeignFlag& flag : foreign_flags()) {
        names.push_back(flag.name);
    }
    return names;
}

std::string help_text() {
    const ServeOptions defaults;
    std::string text;
    for (const FlagGroup& group : serve_flags()) {
        text += fmt::format("\n{}\n", group.title);
        for (const Flag& flag : group.flags) {
            std::string names = "--" + flag.name;
            for (const std::string& alias : flag.aliases) {
                names += ", --" + alias;
            }
            if (!flag.is_switch()) {
                names += " " + flag.value_hint;
            }
            const std::string value = flag.is_switch() ? "" : flag.get(defaults);
            const bool shown = !value.empty() && value != "\"\"";
            text += fmt::format("  {}\n      {}{}\n", names, flag.help, shown ? fmt::format(" [{}]", value) : "");
        }
    }
    text += "\nFlags of SGLang and vLLM\n";
    for (const ForeignFlag& flag : foreign_flags()) {
        const bool any = flag.accepted == std::vector<std::string>{"*"};
        text += fmt::format("  --{}{}\n      {}: {}\n", flag.name,
                            flag.accepted.empty() || any ? "" : fmt::format(" {}", fmt::join(flag.accepted, "|")),
                            flag.accepted.empty() ? "refused" : "no effect", flag.reason);
    }
    return text;
}

}  // namespace megamoe
