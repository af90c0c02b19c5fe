// Result<T>: a value, or an Error the caller can act on. Bugs of ours use MM_CHECK instead.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace megamoe {

enum class Errc : std::uint8_t {
    kInvalidArgument,     // 400: the request or config is wrong; retrying cannot help
    kNotFound,            // 404
    kFailedPrecondition,  // 409: right request, wrong state
    kResourceExhausted,   // 429: full now; retry later
    kInternal,            // 500: ours
    kUnavailable,         // 503: a rank or the device is gone
};

struct Error {
    Errc code{};
    std::string what;  // offending name, value and reason
    std::string hint;  // next action; may be empty
};

// "what (hint)", as shown to a user.
std::string to_string(const Error& error);

using Done = std::monostate;  // the value of a Result that only says "worked"

template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    explicit operator bool() const noexcept { return state_.index() == 0; }
    T take() && { return std::get<0>(std::move(state_)); }
    const T& value() const& { return std::get<0>(state_); }
    T& value() & { return std::get<0>(state_); }
    const Error& error() const& { return std::get<1>(state_); }

  private:
    std::variant<T, Error> state_;
};

inline Error invalid(std::string what, std::string hint = {}) {
    return Error{Errc::kInvalidArgument, std::move(what), std::move(hint)};
}

}  // namespace megamoe

#define MM_CONCAT_(a, b) a##b
#define MM_CONCAT(a, b) MM_CONCAT_(a, b)
#define MM_TRY_(tmp, decl, expr)              \
    auto tmp = (expr);                        \
    if (!tmp)                                 \
        return ::megamoe::Error(tmp.error()); \
    decl = std::move(tmp).take()
// MM_TRY(const auto plan, make_plan(config)): the value, or return its error.
#define MM_TRY(decl, expr) MM_TRY_(MM_CONCAT(mm_try_, __COUNTER__), decl, expr)
// MM_TRY_DONE(check(x)): go on, or return its error.
#define MM_TRY_DONE(expr)                                 \
    do {                                                  \
        if (auto mm_try_done = (expr); !mm_try_done)      \
            return ::megamoe::Error(mm_try_done.error()); \
    } while (false)
