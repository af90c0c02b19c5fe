// Typed reading of one JSON object. The first complaint sticks and later reads give "absent", so that a parser is one
// straight list of fields. Internal to the parsers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/api/api_error.h"

namespace megamoe::api {

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Interval {
    double low = -kNoLimit;
    double high = kNoLimit;
    bool low_open = false;  // low itself is outside
};

inline constexpr std::size_t kMaxNameBytes = 1024;  // models, ids, words
inline constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

// What a value is, short enough for a message: `"hot"`, `-1`, `a list of 3`, `an object`.
std::string describe(const nlohmann::json& value);

class Fields {
  public:
    // In  object  outlives this
    //     path    what to put before field names in messages: "" or "messages[0]."
    explicit Fields(const nlohmann::json& object, std::string path = {});

    const std::optional<ApiError>& error() const { return error_; }
    bool ok() const { return !error_; }

    // Whether it is there, be it null.
    bool has(std::string_view name) const;
    // The field; nullptr if absent, null, or something was wrong before.
    const nlohmann::json* find(std::string_view name) const;

    std::optional<bool> flag(std::string_view name);
    std::optional<double> number(std::string_view name, Interval bounds);
    // Whole numbers such as 16.0 count.
    std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high);
    std::optional<std::string> text(std::string_view name, std::size_t max_bytes);
    std::optional<std::vector<std::int32_t>> ids(std::string_view name, std::int32_t vocab_size);
    // The fields of an object; take_error() brings its complaint back here.
    std::optional<Fields> object(std::string_view name);

    // field "is VALUE, REASON"
    void fail(std::string_view name, std::string_view reason);
    // A complaint about `value`, which stands at `where` (relative to path).
    void fail_at(std::string_view where, const nlohmann::json& value, std::string_view reason);
    void take_error(const Fields& part);

    const std::string& path() const { return path_; }

  private:
    const nlohmann::json* object_;
    std::string path_;
    std::optional<ApiError> error_;
};

// Reads a request body as a JSON object; what went wrong, if anything. Besides the complaints of `read`: not JSON (with
// line and column), nested too deep, not an object.
std::optional<ApiError> read_object(std::string_view body, const std::function<void(Fields&)>& read);

// `value` as token ids, each in [0, vocab_size). Complains into `fields` about `where`.
std::optional<std::vector<std::int32_t>> read_ids(Fields& fields, std::string_view where, const nlohmann::json& value,
                                                  std::int32_t vocab_size);

// Every field that asks for something this server cannot do, with a value that is not harmless, becomes a complaint.
void refuse_unsupported(Fields& fields);

}  // namespace megamoe::api
