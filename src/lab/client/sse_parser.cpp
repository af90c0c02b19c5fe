#include "lab/client/sse_parser.h"

namespace megamoe::lab {

void SseParser::feed(std::string_view bytes, const OnEvent& on_event) {
    while (!bytes.empty()) {
        if (after_cr_) {
            after_cr_ = false;
            if (bytes.front() == '\n') {
                bytes.remove_prefix(1);
                continue;
            }
        }
        const std::size_t end = bytes.find_first_of("\r\n");
        if (end == std::string_view::npos) {
            line_ += bytes;
            return;
        }
        after_cr_ = bytes[end] == '\r';
        if (line_.empty()) {
            take_line(bytes.substr(0, end), on_event);
        } else {
            line_ += bytes.substr(0, end);
            take_line(line_, on_event);
            line_.clear();
        }
        bytes.remove_prefix(end + 1);
    }
}

void SseParser::finish(const OnEvent& on_event) {
    if (!line_.empty()) {
        take_line(line_, on_event);
        line_.clear();
    }
    dispatch(on_event);
}

void SseParser::take_line(std::string_view line, const OnEvent& on_event) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (at_start_ && line.starts_with(kByteOrderMark)) {
        line.remove_prefix(kByteOrderMark.size());
    }
    at_start_ = false;
    if (line.empty()) {
        dispatch(on_event);
        return;
    }
    const std::size_t colon = line.find(':');
    if (line.substr(0, colon) != "data") {
        return;
    }
    std::string_view value = colon == std::string_view::npos ? std::string_view() : line.substr(colon + 1);
    if (value.starts_with(' ')) {
        value.remove_prefix(1);
    }
    if (has_data_) {
        data_ += '\n';
    }
    data_ += value;
    has_data_ = true;
}

void SseParser::dispatch(const OnEvent& on_event) {
    if (has_data_) {
        on_event(data_);
    }
    data_.clear();
    has_data_ = false;
}

}  // namespace megamoe::lab
