// Reads flags and the TOML file into one list of settings, and the settings into options. Pure: the caller owns I/O.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/finding.h"
#include "config/serve_options.h"

namespace megamoe {

struct Setting {
    std::string flag;     // the flag's main name, "tp-size"
    std::string value;    // "true" or "false" for a switch
    std::string spelled;  // as the user wrote it: "--tp", or "tp_size" in a file
    Origin origin{};
};

// Findings are problems of form: an unknown name (with the nearest known one), a value that is missing or that a switch
// does not take, a flag that is refused or has no effect here. Reading goes on after each, so that a user sees all at
// once.
struct Settings {
    std::vector<Setting> values;
    std::vector<Finding> findings;
};

// In    args without the program's and the subcommand's name: `--key value`, `--key=value`, `--switch`
Settings parse_flags(std::span<const std::string> args);

// In    text of a TOML file with the flags' names as keys (dashes or underscores), no tables
Settings parse_toml(std::string_view text);

// Applies the settings in order, so later ones win: pass the file's before the flags'. Values of the wrong type or
// outside their bounds are added to `findings` and leave the option as it was.
void apply_settings(std::span<const Setting> settings, ServeOptions& options, std::vector<Finding>& findings);

}  // namespace megamoe
