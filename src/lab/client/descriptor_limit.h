// Open files: each stream needs one, and the usual limit of 1024 is too low.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace megamoe::lab {

struct DescriptorLimit {
    std::int64_t soft = 0;
    std::int64_t hard = 0;
};

// The soft limit to set so that `streams` connections and the client's own files fit.
// Error kResourceExhausted: the hard limit is too low; the hint is the command that raises it
[[nodiscard]] Result<std::int64_t> needed_soft_limit(std::int64_t streams, DescriptorLimit now);

// Sets it for this process.
[[nodiscard]] Result<Done> raise_descriptor_limit(std::int64_t streams);

}  // namespace megamoe::lab
