// How many pages of each group a rank gets out of a given number of bytes. Pure arithmetic.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "kv/pool_layout.h"
#include "kv/pools.h"

namespace megamoe::kv {

struct PoolDemand {
    std::int32_t max_running = 1;       // requests of a rank at once
    std::int32_t context_length = 1;    // tokens of the longest request
    std::int32_t chunk_tokens = 1;      // prefill rows of a rank in one step
    std::int64_t max_total_tokens = 0;  // tokens the token group must hold; 0 = as many as `budget_bytes` allows
    std::int64_t budget_bytes = 0;      // for all three groups, when max_total_tokens is 0
};

struct PoolPlan {
    PoolSizes sizes;
    std::int64_t token_bytes = 0;
    std::int64_t window_bytes = 0;
    std::int64_t state_bytes = 0;
    std::int64_t total_bytes() const { return token_bytes + window_bytes + state_bytes; }
    std::int64_t token_capacity = 0;  // tokens that requests can own, all together
};

// States are fixed by max_running. The window group gets what max_running requests in decode plus one full step of
// prefill can own at most, but no more pages than the token group, since a window page never stands without its token
// page. The token group gets the rest, up to max_running full contexts.
//
// Error kResourceExhausted: not even one request of the shortest kind fits (bytes needed and given are named)
// Spec  serving spec, 5.2 and 6.3
[[nodiscard]] Result<PoolPlan> plan_pools(const PoolLayout& layout, const PoolDemand& demand);

}  // namespace megamoe::kv
