// Result lines in the shape of other tools, so that their users' scripts go on working.
#pragma once

#include <string>

#include "base/result.h"
#include "lab/report/run_facts.h"

namespace megamoe::lab {

enum class LineShape : std::uint8_t { kSglang, kVllm };

// One JSON line without line feed. Latencies are in milliseconds; `itl` means what the tool means by it: one gap a
// chunk.
// Spec  bench.md 9.1, compatibility writers
std::string compat_line(LineShape shape, const Measured& run, const MeasureOptions& options, const RunFacts& facts);

// Error kInvalidArgument: the file cannot be written
[[nodiscard]] Result<Done> append_line(const std::string& path, const std::string& line);

}  // namespace megamoe::lab
