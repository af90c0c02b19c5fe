#include "frontend/http/message.h"

#include <algorithm>
#include <array>
#include <utility>

namespace megamoe::http {
namespace {

constexpr std::array kReasons{
    std::pair{200, std::string_view("OK")},
    std::pair{204, std::string_view("No Content")},
    std::pair{400, std::string_view("Bad Request")},
    std::pair{401, std::string_view("Unauthorized")},
    std::pair{403, std::string_view("Forbidden")},
    std::pair{404, std::string_view("Not Found")},
    std::pair{405, std::string_view("Method Not Allowed")},
    std::pair{408, std::string_view("Request Timeout")},
    std::pair{409, std::string_view("Conflict")},
    std::pair{413, std::string_view("Content Too Large")},
    std::pair{415, std::string_view("Unsupported Media Type")},
    std::pair{429, std::string_view("Too Many Requests")},
    std::pair{431, std::string_view("Request Header Fields Too Large")},
    std::pair{500, std::string_view("Internal Server Error")},
    std::pair{503, std::string_view("Service Unavailable")},
};

int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::string_view Request::header(std::string_view name) const {
    const auto found = std::find_if(headers.begin(), headers.end(), [&](const Header& h) { return h.name == name; });
    return found == headers.end() ? std::string_view() : std::string_view(found->value);
}

std::optional<std::string> Request::query_value(std::string_view name) const {
    std::string_view rest = query;
    while (!rest.empty()) {
        const std::string_view item = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(item.size() + 1, rest.size()));
        const std::size_t equals = std::min(item.find('='), item.size());
        if (percent_decode(item.substr(0, equals), true) == name) {
            return percent_decode(item.substr(std::min(equals + 1, item.size())), true);
        }
    }
    return std::nullopt;
}

std::string_view reason_phrase(int status) {
    const auto found = std::find_if(kReasons.begin(), kReasons.end(), [&](const auto& r) { return r.first == status; });
    return found == kReasons.end() ? std::string_view("Unknown") : found->second;
}

std::string percent_decode(std::string_view text, bool plus_is_space) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escaped =
            text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
        if (escaped) {
            out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        } else {
            out += plus_is_space && text[i] == '+' ? ' ' : text[i];
        }
    }
    return out;
}

void split_target(std::string_view target, Request& request) {
    const std::size_t mark = std::min(target.find('?'), target.size());
    request.path = percent_decode(target.substr(0, mark), false);
    request.query = target.substr(std::min(mark + 1, target.size()));
}

}  // namespace megamoe::http
