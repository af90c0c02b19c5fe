#include "frontend/api/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace megamoe::api {
namespace {

using nlohmann::json;

constexpr int kMaxNesting = 64;
constexpr std::size_t kMaxShownBytes = 60;

// Requests are shallow; a body of nothing but '[' would otherwise become a tree of many times its size.
bool is_nested_deeper(std::string_view body, int limit) {
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < body.size(); ++i) {
        const char c = body[i];
        if (in_string) {
            i += c == '\\' ? 1 : 0;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > limit) {
                return true;
            }
        } else if (c == ']' || c == '}') {
            --depth;
        }
    }
    return false;
}

std::string position(std::string_view body, std::size_t byte) {
    const std::string_view before = body.substr(0, std::min(byte > 0 ? byte - 1 : 0, body.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t line_start = before.rfind('\n');
    const std::size_t column = before.size() - (line_start == std::string_view::npos ? 0 : line_start + 1) + 1;
    return fmt::format("line {}, column {}", line, column);
}

bool is_whole(const json& value) {
    if (value.is_number_integer()) {
        return true;
    }
    return value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>();
}

// Values beyond 2^63 saturate, so that they end outside any bound.
std::int64_t to_integer(const json& value) {
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    if (value.is_number_unsigned()) {
        return static_cast<std::int64_t>(std::min<std::uint64_t>(value.get<std::uint64_t>(), kMax));
    }
    if (value.is_number_integer()) {
        return value.get<std::int64_t>();
    }
    const double number = value.get<double>();
    if (number >= 9.2e18) {
        return kMax;
    }
    return number <= -9.2e18 ? std::numeric_limits<std::int64_t>::min() : static_cast<std::int64_t>(number);
}

std::string describe_bounds(const Interval& bounds) {
    if (bounds.high == kNoLimit) {
        return fmt::format("must be {} {}", bounds.low_open ? "above" : "at least", bounds.low);
    }
    return fmt::format("must be in {}{}, {}]", bounds.low_open ? '(' : '[', bounds.low, bounds.high);
}

}  // namespace

std::string describe(const json& value) {
    if (value.is_array()) {
        return fmt::format("a list of {}", value.size());
    }
    if (value.is_object()) {
        return "an object";
    }
    if (!value.is_string()) {
        return value.dump();
    }
    std::string shown = value.get_ref<const std::string&>();
    const bool cut = shown.size() > kMaxShownBytes;
    if (cut) {
        std::size_t end = kMaxShownBytes;
        while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0U) == 0x80U) {
            --end;  // not inside a character
        }
        shown.resize(end);
    }
    return json(shown).dump(-1, ' ', false, json::error_handler_t::replace) + (cut ? "..." : "");
}

std::optional<ApiError> read_object(std::string_view body, const std::function<void(Fields&)>& read) {
    if (is_nested_deeper(body, kMaxNesting)) {
        return ApiError{.message = fmt::format("the body is nested deeper than {} levels", kMaxNesting)};
    }
    json value;
    try {
        value = json::parse(body);
    } catch (const json::parse_error& e) {
        return ApiError{.message = fmt::format("the body is not JSON: stopped at {}", position(body, e.byte))};
    } catch (const json::exception&) {
        return ApiError{.message = "the body is not JSON: a number is out of range"};
    }
    if (!value.is_object()) {
        return ApiError{.message = fmt::format("the body is {}, expected a JSON object", describe(value))};
    }
    Fields fields(value);
    read(fields);
    return fields.error();
}

Fields::Fields(const json& object, std::string path) : object_(&object), path_(std::move(path)) {}

bool Fields::has(std::string_view name) const {
    return object_->contains(name);
}

const json* Fields::find(std::string_view name) const {
    if (error_) {
        return nullptr;
    }
    const auto found = object_->find(name);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
}

void Fields::fail_at(std::string_view where, const json& value, std::string_view reason) {
    if (!error_) {
        const std::string param = path_ + std::string(where);
        error_ = ApiError{.message = fmt::format("{} is {}, {}", param, describe(value), reason), .param = param};
    }
}

void Fields::fail(std::string_view name, std::string_view reason) {
    const auto found = object_->find(name);
    fail_at(name, found == object_->end() ? json() : *found, reason);
}

void Fields::take_error(const Fields& part) {
    if (!error_) {
        error_ = part.error_;
    }
}

std::optional<bool> Fields::flag(std::string_view name) {
    const json* const value = find(name);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_boolean()) {
        fail(name, "expected true or false");
        return std::nullopt;
    }
    return value->get<bool>();
}

std::optional<double> Fields::number(std::string_view name, Interval bounds) {
    const json* const value = find(name);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_number()) {
        fail(name, "expected a number");
        return std::nullopt;
    }
    const auto number = value->get<double>();
    if (number < bounds.low || number > bounds.high || (bounds.low_open && number == bounds.low)) {
        fail(name, describe_bounds(bounds));
        return std::nullopt;
    }
    return number;
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t low, std::int64_t high) {
    const json* const value = find(name);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_number() || !is_whole(*value)) {
        fail(name, "expected a whole number");
        return std::nullopt;
    }
    const std::int64_t number = to_integer(*value);
    if (number < low || number > high) {
        fail(name, fmt::format("must be in [{}, {}]", low, high));
        return std::nullopt;
    }
    return number;
}

std::optional<std::string> Fields::text(std::string_view name, std::size_t max_bytes) {
    const json* const value = find(name);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_string()) {
        fail(name, "expected a string");
        return std::nullopt;
    }
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() > max_bytes) {
        fail(name, fmt::format("has {} bytes, must have at most {}", text.size(), max_bytes));
        return std::nullopt;
    }
    return text;
}

std::optional<std::vector<std::int32_t>> Fields::ids(std::string_view name, std::int32_t vocab_size) {
    const json* const value = find(name);
    return value == nullptr ? std::nullopt : read_ids(*this, name, *value, vocab_size);
}

std::optional<Fields> Fields::object(std::string_view name) {
    const json* const value = find(name);
    if (value == nullptr) {
        return std::nullopt;
    }
    if (!value->is_object()) {
        fail(name, "expected an object");
        return std::nullopt;
    }
    return Fields(*value, path_ + std::string(name) + ".");
}

std::optional<std::vector<std::int32_t>> read_ids(Fields& fields, std::string_view where, const json& value,
                                                  std::int32_t vocab_size) {
    if (!value.is_array()) {
        fields.fail_at(where, value, "expected a list of token ids");
        return std::nullopt;
    }
    std::vector<std::int32_t> ids;
    ids.reserve(value.size());
    for (const json& item : value) {
        const bool is_id = item.is_number_integer() && to_integer(item) >= 0 && to_integer(item) < vocab_size;
        if (!is_id) {
            fields.fail_at(fmt::format("{}[{}]", where, ids.size()), item,
                           fmt::format("must be a token id in [0, {}]", vocab_size - 1));
            return std::nullopt;
        }
        ids.push_back(static_cast<std::int32_t>(to_integer(item)));
    }
    return ids;
}

}  // namespace megamoe::api
