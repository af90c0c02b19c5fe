// Command lines on top of CLI11, with the error texts this project wants. Internal to cli/ and to programs: it shows
// CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace megamoe::lab {

// Flags that exist in other tools or in the plan of this one, with the reason why they are refused here.
using Unsupported = std::vector<std::pair<std::string_view, std::string_view>>;

// Parses `args`. A `--config FILE` of JSON in front of everything else counts as flags written before the others, so
// that the command line wins.
// Error kInvalidArgument: the first unknown flag with the nearest known name, or what CLI11 says
[[nodiscard]] Result<Done> parse_flags(CLI::App& app, std::vector<std::string> args, const Unsupported& unsupported);

// Names (without dashes, the first of its aliases) of all options that were written.
std::vector<std::string> given_flags(const CLI::App& app);

// Splits "a,b,c".
std::vector<std::string> split_list(const std::string& text, char separator = ',');

}  // namespace megamoe::lab
