// The pre-tokenizer: cuts text into the pieces within which BPE may merge.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/text/regex.h"

namespace megamoe::text {

struct PrefixSpace {};  // a piece that does not start with a space gets one

// A Regex cuts at both ends of each match ("isolated": matches and gaps are pieces alike).
using SplitStep = std::variant<Regex, PrefixSpace>;

// Thread  any
class Splitter {
  public:
    using Emit = std::function<void(std::string_view piece)>;

    // Each step works on every piece of the step before it, as on a text of its own.
    explicit Splitter(std::vector<SplitStep> steps) : steps_(std::move(steps)) {}

    // Calls `emit` with the pieces in order; none is empty, and each lives for the call only.
    // In    text  valid UTF-8
    void split(std::string_view text, const Emit& emit) const { run_from(0, text, emit); }

  private:
    void run_from(std::size_t step, std::string_view text, const Emit& emit) const;
    void cut(const Regex& regex, std::size_t next_step, std::string_view text, const Emit& emit) const;

    std::vector<SplitStep> steps_;
};

}  // namespace megamoe::text
