// Questions to a server outside the clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "lab/client/target.h"

namespace megamoe::lab {

// The id of the first model in /v1/models.
// Error kUnavailable: no server, or no model list
[[nodiscard]] Result<std::string> first_model(const Target& target);

// The server's own token counters, as a second witness. Names end in prompt_tokens_total and generation_tokens_total
// (any prefix, summed over labels).
struct ServerCounters {
    double prompt_tokens = 0;
    double generation_tokens = 0;
};
// In    text  Prometheus exposition format
// Out   none if either counter is missing
std::optional<ServerCounters> parse_counters(const std::string& text);
std::optional<ServerCounters> read_counters(const Target& target);

// Error kUnavailable: the server did not confirm
[[nodiscard]] Result<Done> flush_cache(const Target& target);

// What the server says its effective configuration is: the JSON of /server_info; "" if it does not say.
std::string server_info(const Target& target);

}  // namespace megamoe::lab
