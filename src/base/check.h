// MM_CHECK: a broken invariant of ours, in all builds. Prints where, what and the values, then aborts.
#pragma once

#include <sstream>
#include <string>

namespace megamoe {

// Writes one line to stderr with the rank and step of this thread, then aborts the process.
[[noreturn]] void fail_check(const char* file, int line, const char* condition, const std::string& values);

namespace detail {

template <class... Values>
std::string join_values(const Values&... values) {
    std::ostringstream out;
    ((out << ' ' << values), ...);
    return out.str();
}

}  // namespace detail
}  // namespace megamoe

// MM_CHECK(cond, "what", value, ...)
#define MM_CHECK(cond, ...)                                                                                \
    do {                                                                                                   \
        if (!(cond)) [[unlikely]]                                                                          \
            ::megamoe::fail_check(__FILE__, __LINE__, #cond, ::megamoe::detail::join_values(__VA_ARGS__)); \
    } while (false)

#ifdef NDEBUG
#define MM_DCHECK(cond, ...) \
    do {                     \
    } while (false)
#else
#define MM_DCHECK(cond, ...) MM_CHECK(cond, __VA_ARGS__)
#endif
