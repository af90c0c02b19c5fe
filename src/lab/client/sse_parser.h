// Server-sent events from a byte stream that is cut anywhere.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace megamoe::lab {

// Lines end in LF, CRLF or CR; comments and fields other than `data` are dropped; several `data` lines of one event are
// joined by a line feed. A line has no length limit.
// Same  the events do not depend on how the bytes are split over feed() calls
// Spec  WHATWG HTML, "Server-sent events"; one addition: an event without its blank line at the end still counts
class SseParser {
  public:
    using OnEvent = std::function<void(std::string_view data)>;

    // Calls `on_event` for each event that ends in `bytes`; the view is valid during the call.
    void feed(std::string_view bytes, const OnEvent& on_event);
    // The stream has ended.
    void finish(const OnEvent& on_event);

  private:
    void take_line(std::string_view line, const OnEvent& on_event);
    void dispatch(const OnEvent& on_event);

    std::string line_;  // the beginning of a line whose end has not come yet
    std::string data_;
    bool has_data_ = false;
    bool after_cr_ = false;  // the next LF belongs to the line end that was already taken
    bool at_start_ = true;   // a byte order mark may stand here
};

}  // namespace megamoe::lab
