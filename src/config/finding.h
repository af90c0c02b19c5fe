// One thing to tell about a configuration: what was asked, what runs instead, why, and what to change.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace megamoe {

enum class Severity : std::uint8_t {
    kRefuse,  // the program does not start
    kWarn,    // it starts, and is likely not what was meant
    kNote,    // it starts; a value was filled in or changed, or has no effect here
};

struct Finding {
    std::string id;  // "CFG-14"; docs/runbook.md has a row for each
    Severity severity{};
    std::string key;        // "--ep-size", or a key of the file
    std::string requested;  // "3"; empty = nothing was asked
    std::string effective;  // what runs instead; empty = refused
    std::string reason;
    std::string fix;  // the next step; may be empty
};

// One line: `CFG-14 refused: --ep-size 3: 3 ranks do not divide 32 experts; use 1, 2, 4, 8, 16 or 32`.
std::string to_string(const Finding& finding);

bool refuses(std::span<const Finding> findings);

}  // namespace megamoe
