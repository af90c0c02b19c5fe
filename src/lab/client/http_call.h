// One HTTP request outside the clock: readiness, model list, cache flush, a chat to print.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "lab/client/target.h"

namespace megamoe::lab {

struct HttpAnswer {
    int status = 0;
    std::string body;  // empty when `on_body` took it
};

struct HttpCall {
    std::string method = "GET";
    std::string endpoint;
    std::string body = {};
    std::int64_t timeout_ms = 10000;                     // for all of it
    std::function<void(std::string_view)> on_body = {};  // gets pieces of the body as they come; may be empty
};

// Blocks until the answer is complete, on a connection of its own.
// Error kUnavailable: no connection, a broken answer, or no end of it within the time
[[nodiscard]] Result<HttpAnswer> call(const Target& target, const HttpCall& request);

}  // namespace megamoe::lab
