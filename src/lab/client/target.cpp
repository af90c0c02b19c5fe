#include "lab/client/target.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace megamoe::lab {
namespace {

// "[::1]:30000" and "::1" both name an IPv6 host; the brackets belong to the URL, not to the address.
std::string url_host(const std::string& host) {
    return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

std::string Target::url() const {
    return fmt::format("http://{}:{}{}", url_host(host), port, path);
}

Result<Target> parse_base_url(const std::string& url) {
    constexpr std::string_view kScheme = "http://";
    constexpr const char* kForm = "write it as http://host:port, for example http://127.0.0.1:30000";
    std::string_view rest = url;
    if (rest.starts_with("https://")) {
        return invalid("--base-url " + url + ": TLS is not supported",
                       "put a local plain HTTP endpoint in front of it");
    }
    if (rest.starts_with(kScheme)) {
        rest.remove_prefix(kScheme.size());
    }
    Target target;
    const std::size_t slash = rest.find('/');
    if (slash != std::string_view::npos) {
        target.path = rest.substr(slash);
        while (target.path.ends_with('/')) {
            target.path.pop_back();
        }
    }
    std::string_view authority = rest.substr(0, slash);
    target.port = 80;
    const std::size_t bracket = authority.find(']');
    const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
    if (colon != std::string_view::npos) {
        const std::string_view digits = authority.substr(colon + 1);
        const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), target.port);
        if (code != std::errc() || end != digits.data() + digits.size() || target.port == 0) {
            return invalid("--base-url " + url + ": the port is not a number from 1 to 65535", kForm);
        }
        authority = authority.substr(0, colon);
    }
    if (authority.starts_with('[') && authority.ends_with(']')) {
        authority = authority.substr(1, authority.size() - 2);
    }
    if (authority.empty()) {
        return invalid("--base-url '" + url + "' has no host", kForm);
    }
    target.host = authority;
    return target;
}

std::string request_head(const Target& target, const std::string& method, const std::string& endpoint,
                         std::size_t body_bytes, const std::string& request_id) {
    std::string head = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}:{}\r\nUser-Agent: megamoe-bench\r\n", method,
                                   target.path, endpoint, url_host(target.host), target.port);
    if (method != "GET") {
        head += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body_bytes);
    }
    if (!request_id.empty()) {
        head += fmt::format("X-Request-Id: {}\r\n", request_id);
    }
    for (const auto& [name, value] : target.headers) {
        head += fmt::format("{}: {}\r\n", name, value);
    }
    return head + "\r\n";
}

}  // namespace megamoe::lab
