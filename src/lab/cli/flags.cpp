#include "lab/cli/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/nearest.h"
#include "lab/core/files.h"

namespace megamoe::lab {
namespace {

std::vector<std::string> all_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) {
            names.push_back("--" + name);
        }
    }
    return names;
}

void append_flag(const std::string& key, const nlohmann::json& value, std::vector<std::string>& words) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    if (value.is_boolean()) {
        if (value.get<bool>()) {
            words.push_back("--" + name);
        }
        return;
    }
    const auto add = [&](const nlohmann::json& one) {
        words.push_back("--" + name);
        words.push_back(one.is_string() ? one.get<std::string>() : one.dump());
    };
    if (value.is_array()) {
        std::for_each(value.begin(), value.end(), add);
    } else {
        add(value);
    }
}

// Replaces "--config FILE" by the flags in the file, in front.
Result<Done> expand_config(std::vector<std::string>& args) {
    const auto found = std::find(args.begin(), args.end(), "--config");
    if (found == args.end()) {
        return Done{};
    }
    if (found + 1 == args.end()) {
        return invalid("--config needs a file");
    }
    const std::string path = found[1];
    MM_TRY(const std::string text, read_file(path));
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) {
        return invalid("--config " + path + " is not a JSON object of flag names and values");
    }
    std::vector<std::string> words;
    for (const auto& [key, value] : json.items()) {
        append_flag(key, value, words);
    }
    args.erase(found, found + 2);
    args.insert(args.begin(), words.begin(), words.end());
    return Done{};
}

Error unknown_flag(const CLI::App& app, const std::string& word, const Unsupported& unsupported) {
    const std::string name = word.substr(0, word.find('='));
    for (const auto& [known, reason] : unsupported) {
        if (name == known) {
            return invalid(fmt::format("flag {} is not supported: {}", name, reason));
        }
    }
    if (!name.starts_with("-")) {
        return invalid("unexpected word '" + word + "'", "a value must follow its flag");
    }
    const std::string hint = nearest(name, all_names(app));
    return invalid("unknown flag " + name, hint.empty() ? "--help lists all flags" : "did you mean " + hint + "?");
}

}  // namespace

Result<Done> parse_flags(CLI::App& app, std::vector<std::string> args, const Unsupported& unsupported) {
    MM_TRY_DONE(expand_config(args));
    app.allow_extras();
    for (CLI::Option* option : app.get_options()) {
        if (option->get_items_expected_max() == 1) {
            option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
        }
    }
    std::reverse(args.begin(), args.end());  // the order CLI11's vector interface wants
    try {
        app.parse(args);
    } catch (const CLI::Error& error) {
        return invalid(error.what(), "--help lists all flags");
    }
    if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
        return unknown_flag(app, extras.front(), unsupported);
    }
    return Done{};
}

std::vector<std::string> given_flags(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        if (option->count() > 0 && !option->get_lnames().empty()) {
            names.push_back(option->get_lnames().front());
        }
    }
    return names;
}

std::vector<std::string> split_list(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, separator);) {
        if (!part.empty()) {
            parts.push_back(part);
        }
    }
    return parts;
}

}  // namespace megamoe::lab
