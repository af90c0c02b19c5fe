// The table of flags: what `serve` accepts, what it accepts without effect, and what it refuses by name with the
// reason.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/finding.h"
#include "config/serve_options.h"

namespace megamoe {

// A flag of ours. The key in a TOML file is its name with underscores.
struct Flag {
    std::string name;                       // "tp-size"
    std::vector<std::string> aliases = {};  // "tp"
    std::string value_hint = {};            // "N", as --help shows it; empty = a switch
    std::string help = {};
    // Stores `value`. Returns "", or what is wrong with it and what would be right. A switch gets "true" or "false".
    std::function<std::string(ServeOptions& options, const std::string& value)> set = {};
    // The value as TOML writes it; "" = not set.
    std::function<std::string(const ServeOptions& options)> get = {};
    bool in_file = true;

    bool is_switch() const { return value_hint.empty(); }
};

struct FlagGroup {
    std::string title;
    std::vector<Flag> flags;
};

std::span<const FlagGroup> serve_flags();

// A flag of SGLang or vLLM that this program has no setting for.
struct ForeignFlag {
    std::string name;
    bool takes_value = true;
    std::vector<std::string> accepted;  // values that say what holds here anyway; {"*"} = any; empty = always refused
    std::string reason;                 // why an accepted value changes nothing, and another one cannot be had
    std::string fix;                    // for a refusal
    std::string id;                     // of the finding
};

std::span<const ForeignFlag> foreign_flags();

// By name or alias, without dashes in front; null = unknown.
const Flag* find_flag(std::string_view name);
const ForeignFlag* find_foreign_flag(std::string_view name);

// The names and aliases of both tables, for "did you mean".
std::vector<std::string> all_flag_names();

// The accepted flags by group, for --help.
std::string help_text();

}  // namespace megamoe
