// Where requests go.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace megamoe::lab {

struct Target {
    std::string host = "127.0.0.1";
    std::uint16_t port = 30000;
    std::string path;  // before every endpoint, without a slash at its end; usually empty
    std::vector<std::pair<std::string, std::string>>
        headers;  // sent with every request; may hold secrets, never stored

    std::string url() const;  // "http://host:port/path"
};

// Error kInvalidArgument: not http://host[:port][/path]
[[nodiscard]] Result<Target> parse_base_url(const std::string& url);

// Request line and headers of one POST (content type JSON), or of a GET when `method` says so.
std::string request_head(const Target& target, const std::string& method, const std::string& endpoint,
                         std::size_t body_bytes, const std::string& request_id);

}  // namespace megamoe::lab
