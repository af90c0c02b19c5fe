// Log lines to stderr: `time level r<rank> s<step> text`. One event a line, `key=value` pairs; results go to stdout
// instead.
#pragma once

#include <cstdint>
#include <string_view>

namespace megamoe::log {

enum class Level : std::uint8_t { kDebug, kInfo, kWarn, kError };

// Lines below `level` are dropped. Thread: any.
void set_level(Level level);
// One JSON object a line instead of text. Thread: before the first line.
void set_json(bool on);
// The rank and step that this thread's lines carry; -1 = none. Thread: sets its own only.
void set_rank(std::int32_t rank);
void set_step(std::int64_t step);

void write(Level level, std::string_view text);
inline void debug(std::string_view text) {
    write(Level::kDebug, text);
}
inline void info(std::string_view text) {
    write(Level::kInfo, text);
}
inline void warn(std::string_view text) {
    write(Level::kWarn, text);
}
inline void error(std::string_view text) {
    write(Level::kError, text);
}

}  // namespace megamoe::log
