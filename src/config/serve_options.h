// Everything `megamoe serve` can be told. Plain data, filled in three steps: read (settings.h), derive and check
// (serve_check.h); after that it is read-only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "config/engine_config.h"

namespace megamoe {

// Where a value came from, the weakest first.
enum class Origin : std::uint8_t { kDefault, kFile, kFlag, kDerived };

std::string_view name(Origin origin);

struct ServeOptions {
    EngineConfig engine;  // num_ranks and moe_backend follow from the values below

    std::string model_path;
    std::string served_model_name;  // "" = the last part of model_path

    std::optional<std::int32_t> tp_size;  // ranks in all [W]
    std::optional<std::int32_t> dp_size;  // ranks that each hold other requests [D]
    std::optional<std::int32_t> ep_size;  // ranks that share the routed experts
    std::optional<bool> enable_dp_attention;

    std::string moe_a2a_backend = "standard";  // with the version it gives engine.moe_backend
    std::int32_t megamoe_version = 2;

    std::string host = "127.0.0.1";
    std::int32_t port = 30000;  // 0 = any free one
    std::string api_key;        // "" = open
    std::int32_t max_connections = 4096;
    std::int32_t drain_timeout = 60;  // seconds
    std::string load_balance_method = "total_tokens";
    std::string kv_cache_dtype = "auto";

    std::string log_level = "info";   // debug, info, warning, error
    std::string log_format = "text";  // text, json

    std::string config;  // the TOML file
    bool print_config = false;
    bool dry_run = false;

    std::map<std::string, Origin, std::less<>> origins;  // by flag name; absent = kDefault
};

// What one rank gets of the limits that are given for all ranks together.
struct RankShare {
    std::int32_t running_requests = 0;
    std::int32_t prefill_tokens = 0;  // a step
};
RankShare rank_share(const EngineConfig& engine);

// The options as a TOML file that reads back as the same options; a comment on each line names the origin of its value.
// The API key is a secret and is left out.
std::string print_options(const ServeOptions& options);

}  // namespace megamoe
