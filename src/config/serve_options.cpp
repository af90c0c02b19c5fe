#include "config/serve_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/serve_flags.h"

namespace megamoe {
namespace {

constexpr std::string_view kSecret = "api-key";

}  // namespace

std::string_view name(Origin origin) {
    switch (origin) {
        case Origin::kDefault:
            return "default";
        case Origin::kFile:
            return "file";
        case Origin::kFlag:
            return "flag";
        case Origin::kDerived:
            break;
    }
    return "derived";
}

RankShare rank_share(const EngineConfig& engine) {
    return {std::max(1, engine.max_running_requests / engine.num_ranks),
            std::max(1, engine.chunked_prefill_size / engine.num_ranks)};
}

std::string print_options(const ServeOptions& options) {
    std::string text;
    for (const FlagGroup& group : serve_flags()) {
        for (const Flag& flag : group.flags) {
            const std::string value = flag.get(options);
            if (!flag.in_file || value.empty() || flag.name == kSecret) {
                continue;
            }
            std::string key = flag.name;
            std::replace(key.begin(), key.end(), '-', '_');
            const auto it = options.origins.find(flag.name);
            const Origin origin = it == options.origins.end() ? Origin::kDefault : it->second;
            text += fmt::format("{:<40} # {}\n", fmt::format("{} = {}", key, value), name(origin));
        }
    }
    return text;
}

}  // namespace megamoe
