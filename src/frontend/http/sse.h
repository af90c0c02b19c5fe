// Server-sent events.
#pragma once

#include <string>
#include <string_view>

namespace megamoe::http {

inline constexpr std::string_view kEventStream = "text/event-stream";
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

// In  data  one line
inline std::string sse_event(std::string_view data) {
    std::string out;
    out.reserve(data.size() + 8);
    out += "data: ";
    out += data;
    out += "\n\n";
    return out;
}

}  // namespace megamoe::http
