#include "frontend/text/python_json.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

namespace megamoe::text {
namespace {

std::string quote(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        switch (c) {
            case '"':
                out += "\\\"";
                break;
            case '\\':
                out += "\\\\";
                break;
            case '\b':
                out += "\\b";
                break;
            case '\f':
                out += "\\f";
                break;
            case '\n':
                out += "\\n";
                break;
            case '\r':
                out += "\\r";
                break;
            case '\t':
                out += "\\t";
                break;
            default:
                if (static_cast<unsigned char>(c) < 0x20) {
                    out += fmt::format("\\u{:04x}", static_cast<int>(c));
                } else {
                    out += c;
                }
        }
    }
    return out += '"';
}

// repr(float): the shortest digits that read back as `value`; an exponent if its decimal one is below -4 or above 15.
std::string float_repr(double value) {
    std::array<char, 32> buffer{};
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific).ptr;
    const std::string scientific(buffer.data(), end);  // "-d.ddde+XX", exponent of two digits or more as in Python
    int exponent = 0;
    const char* digits = scientific.data() + scientific.find('e') + 1;
    std::from_chars(*digits == '+' ? digits + 1 : digits, scientific.data() + scientific.size(), exponent);
    if (exponent < -4 || exponent > 15) {
        return scientific;
    }
    const auto fixed_end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed).ptr;
    std::string fixed(buffer.data(), fixed_end);
    return fixed.find('.') == std::string::npos ? fixed + ".0" : fixed;
}

struct Value {
    std::string text;  // a string's own text, anything else as JSON
    bool is_string = false;

    std::string as_json() const { return is_string ? quote(text) : text; }
};

// Prints while nlohmann's parser reads: it hands over the text of a number as it stood.
class Printer : public nlohmann::json_sax<nlohmann::json> {
  public:
    bool null() override { return add({"null"}); }
    bool boolean(bool value) override { return add({value ? "true" : "false"}); }
    bool number_integer(std::int64_t value) override { return add({std::to_string(value)}); }
    bool number_unsigned(std::uint64_t value) override { return add({std::to_string(value)}); }
    bool number_float(double value, const std::string& source) override {
        const bool is_whole = source.find_first_of(".eE") == std::string::npos;  // and too large for 64 bits
        return add({is_whole ? source : float_repr(value)});
    }
    bool string(std::string& value) override { return add({std::move(value), true}); }
    bool binary(nlohmann::json::binary_t&) override { return false; }
    bool key(std::string& name) override {
        Container& object = open_.back();
        const auto [place, is_new] = object.place_of.try_emplace(name, object.members.size());
        object.place = place->second;
        if (is_new) {
            object.members.push_back({std::move(name), {}, false});
        }
        return true;
    }
    bool start_object(std::size_t) override { return open(/*is_object=*/true); }
    bool start_array(std::size_t) override { return open(/*is_object=*/false); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

    Value root;
    std::optional<std::vector<JsonMember>> root_members;  // if the root is an object

  private:
    struct Container {
        bool is_object = false;
        std::vector<JsonMember> members;  // of an array: without keys
        std::unordered_map<std::string, std::size_t> place_of;
        std::size_t place = 0;  // where the value of the key just read goes
    };

    bool open(bool is_object) {
        open_.emplace_back().is_object = is_object;
        return open_.size() <= kMaxJsonDepth;
    }

    bool close() {
        Container closed = std::move(open_.back());
        open_.pop_back();
        std::string text(1, closed.is_object ? '{' : '[');
        for (const JsonMember& member : closed.members) {
            text += text.size() > 1 ? ", " : "";
            text += closed.is_object ? quote(member.key) + ": " : "";
            text += Value{member.value, member.is_string}.as_json();
        }
        text += closed.is_object ? '}' : ']';
        if (open_.empty() && closed.is_object) {
            root_members = std::move(closed.members);
        }
        return add({std::move(text)});
    }

    bool add(Value value) {
        if (open_.empty()) {
            root = std::move(value);
        } else if (Container& parent = open_.back(); parent.is_object) {
            JsonMember& member = parent.members[parent.place];
            member.value = std::move(value.text);
            member.is_string = value.is_string;
        } else {
            parent.members.push_back({{}, std::move(value.text), value.is_string});
        }
        return true;
    }

    std::vector<Container> open_;
};

std::optional<Printer> print(std::string_view json) {
    Printer printer;
    const bool is_json = nlohmann::json::sax_parse(json, &printer);
    return is_json ? std::optional(std::move(printer)) : std::nullopt;
}

}  // namespace

std::optional<std::string> to_python_json(std::string_view json) {
    const std::optional<Printer> printed = print(json);
    return printed ? std::optional(printed->root.as_json()) : std::nullopt;
}

std::optional<std::vector<JsonMember>> python_json_members(std::string_view json) {
    std::optional<Printer> printed = print(json);
    return printed ? std::move(printed->root_members) : std::nullopt;
}

}  // namespace megamoe::text
