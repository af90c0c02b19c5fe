// JSON as Python's json.dumps(json.loads(text), ensure_ascii=False) prints it: the form in which the model knows JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megamoe::text {

inline constexpr std::size_t kMaxJsonDepth = 128;  // each level copies what is inside it once

// Members keep their order; of equal keys the last value wins, at the place of the first. Whole numbers of any size
// keep their digits. nullopt: not JSON (NaN, Infinity and numbers beyond float64 are not), or nested too deep.
std::optional<std::string> to_python_json(std::string_view json);

struct JsonMember {
    std::string key;
    std::string value;  // a string's own text, anything else as JSON
    bool is_string = false;

    friend bool operator==(const JsonMember&, const JsonMember&) = default;
};

// The members of a JSON object. nullopt: not JSON, or not an object.
std::optional<std::vector<JsonMember>> python_json_members(std::string_view json);

}  // namespace megamoe::text
