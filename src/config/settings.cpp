#include "config/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/nearest.h"
#include "config/serve_flags.h"

namespace megamoe {
namespace {

// A name as written with the value that came with it, before anybody knows what it means.
struct Written {
    std::string name;     // "tp-size"
    std::string spelled;  // "--tp-size"
    std::optional<std::string> value;
    Origin origin{};
};

Finding refuse(std::string id, const std::string& key, std::string value, std::string reason, std::string fix = {}) {
    return {std::move(id), Severity::kRefuse, key, std::move(value), {}, std::move(reason), std::move(fix)};
}

Finding judge(const ForeignFlag& flag, const Written& written) {
    const std::string value = written.value.value_or("");
    const auto& accepted = flag.accepted;
    const bool any = accepted == std::vector<std::string>{"*"};
    if (any || std::find(accepted.begin(), accepted.end(), value) != accepted.end()) {
        return {flag.id, Severity::kNote, written.spelled, value, "no effect", flag.reason, {}};
    }
    std::string fix = flag.fix;
    if (!accepted.empty()) {
        fix = fmt::format("use {} or {}", fmt::join(accepted, " or "), flag.fix);
    }
    return refuse(accepted.empty() ? flag.id : "CFG-44", written.spelled, value, flag.reason, fix);
}

Finding unknown(const Written& written) {
    std::string near = nearest(written.name, all_flag_names());
    if (written.origin == Origin::kFile) {
        std::replace(near.begin(), near.end(), '-', '_');
    } else if (!near.empty()) {
        near = "--" + near;
    }
    return refuse("CFG-38", written.spelled, "", written.origin == Origin::kFile ? "no such key" : "no such flag",
                  near.empty() ? "`megamoe serve --help` lists them" : fmt::format("did you mean {}?", near));
}

void add(const Written& written, Settings& settings) {
    if (const Flag* flag = find_flag(written.name)) {
        if (written.origin == Origin::kFile && !flag->in_file) {
            settings.findings.push_back(refuse("CFG-38", written.spelled, "",
                                               "belongs on the command line, not into a file", "remove the key"));
            return;
        }
        settings.values.push_back({flag->name, written.value.value_or("true"), written.spelled, written.origin});
    } else if (const ForeignFlag* foreign = find_foreign_flag(written.name)) {
        settings.findings.push_back(judge(*foreign, written));
    } else {
        settings.findings.push_back(unknown(written));
    }
}

// Whether the argument after --name is its value. An unknown flag takes none that starts with dashes.
bool takes_value(std::string_view name) {
    if (const Flag* flag = find_flag(name)) {
        return !flag->is_switch();
    }
    const ForeignFlag* foreign = find_foreign_flag(name);
    return foreign == nullptr || foreign->takes_value;
}

bool looks_like_flag(const std::string& argument) {
    return argument.starts_with("--");
}

std::optional<std::string> scalar_text(const toml::node& node) {
    if (const auto* text = node.as_string()) {
        return text->get();
    }
    if (const auto* integer = node.as_integer()) {
        return fmt::format("{}", integer->get());
    }
    if (const auto* number = node.as_floating_point()) {
        return fmt::format("{}", number->get());
    }
    if (const auto* boolean = node.as_boolean()) {
        return boolean->get() ? "true" : "false";
    }
    return std::nullopt;
}

}  // namespace

Settings parse_flags(std::span<const std::string> args) {
    Settings settings;
    for (std::size_t i = 0; i < args.size(); ++i) {
        const std::string& argument = args[i];
        if (!looks_like_flag(argument)) {
            settings.findings.push_back(refuse("CFG-43", argument, "", "no flag starts here",
                                               "flags are written --name VALUE or --name=VALUE"));
            continue;
        }
        const std::size_t equals = argument.find('=');
        Written written{argument.substr(2, equals - 2), argument.substr(0, equals), {}, Origin::kFlag};
        const bool known = find_flag(written.name) != nullptr || find_foreign_flag(written.name) != nullptr;
        if (equals != std::string::npos) {
            written.value = argument.substr(equals + 1);
        } else if (takes_value(written.name)) {
            if (i + 1 < args.size() && !looks_like_flag(args[i + 1])) {
                written.value = args[++i];
            } else if (known) {
                settings.findings.push_back(refuse("CFG-43", written.spelled, "", "its value is missing"));
                continue;
            }
        }
        add(written, settings);
    }
    return settings;
}

Settings parse_toml(std::string_view text) {
    Settings settings;
    try {
        const toml::table table = toml::parse(text);
        for (const auto& [key, node] : table) {
            Written written{std::string(key.str()), std::string(key.str()), scalar_text(node), Origin::kFile};
            std::replace(written.name.begin(), written.name.end(), '_', '-');
            if (!written.value) {
                settings.findings.push_back(refuse("CFG-43", written.spelled, "", "its value is a table or a list",
                                                   "keys stand at the top, one value each: tp_size = 8"));
                continue;
            }
            // A switch of another engine that is off asks for nothing.
            const ForeignFlag* foreign = find_foreign_flag(written.name);
            if (foreign == nullptr || foreign->takes_value || written.value != "false") {
                add(written, settings);
            }
        }
    } catch (const toml::parse_error& error) {
        const auto& where = error.source().begin;
        settings.findings.push_back(
            refuse("CFG-43", "--config", "",
                   fmt::format("not TOML: line {}, column {}: {}", where.line, where.column, error.description())));
    }
    return settings;
}

void apply_settings(std::span<const Setting> settings, ServeOptions& options, std::vector<Finding>& findings) {
    for (const Setting& setting : settings) {
        const std::string problem = find_flag(setting.flag)->set(options, setting.value);
        if (problem.empty()) {
            options.origins[setting.flag] = setting.origin;
        } else {
            findings.push_back(refuse("CFG-43", setting.spelled, setting.value, problem));
        }
    }
}

}  // namespace megamoe
