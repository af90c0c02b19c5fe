#include "frontend/api/prompt_fields.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace megamoe::api {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxPrompts = 4096;

Prompt read_item(Fields& fields, const std::string& where, const json& item, bool as_text, std::int32_t vocab_size) {
    if (as_text) {
        if (!item.is_string()) {
            fields.fail_at(where, item, "expected a string like the first");
            return {};
        }
        return item.get<std::string>();
    }
    auto ids = read_ids(fields, where, item, vocab_size);
    if (ids && ids->empty()) {
        fields.fail_at(where, item, "must not be empty");
    }
    return std::move(ids).value_or(std::vector<std::int32_t>());
}

}  // namespace

Prompts read_prompts(Fields& fields, std::string_view name, std::int32_t vocab_size) {
    const json* const value = fields.find(name);
    if (value == nullptr) {
        fields.fail(name, "but it is required");
        return {};
    }
    if (value->is_string()) {
        return {{value->get<std::string>()}, false};
    }
    constexpr std::string_view kForms = "expected a string, a list of strings, a list of token ids or a list of those";
    if (!value->is_array() || value->empty()) {
        fields.fail(name, kForms);
        return {};
    }
    const json& first = value->front();
    if (first.is_number()) {
        auto ids = read_ids(fields, name, *value, vocab_size);
        return {{std::move(ids).value_or(std::vector<std::int32_t>())}, false};
    }
    if (!first.is_string() && !first.is_array()) {
        fields.fail_at(fmt::format("{}[0]", name), first, kForms);
        return {};
    }
    if (value->size() > kMaxPrompts) {
        fields.fail(name, fmt::format("must have at most {} prompts", kMaxPrompts));
        return {};
    }
    Prompts out{{}, true};
    for (const json& item : *value) {
        const std::string where = fmt::format("{}[{}]", name, out.prompts.size());
        out.prompts.push_back(read_item(fields, where, item, first.is_string(), vocab_size));
        if (!fields.ok()) {
            break;
        }
    }
    return out;
}

}  // namespace megamoe::api
