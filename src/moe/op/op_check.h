// Are the backends right? Every backend on every number of ranks gives the bits of `reference` on one rank, and those
// are near what the released numerics give in double precision.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "moe/op/op_case.h"
#include "moe/op/op_routing.h"
#include "moe/operator.h"

namespace megamoe::moe::op {

// Spec  operator spec, 6.9 no. 1
inline constexpr double kErrorBar = 1e-3;

struct CheckOptions {
    Geometry geometry;
    std::vector<ops::WeightFormat> formats;
    std::vector<std::int32_t> ranks{1, 2, 4};
    Routing routing;
    std::int32_t tokens = 16;  // of all ranks together, spread unevenly
    std::int32_t threads_per_rank = 1;
    std::uint64_t seed = 1;
    cpu::Isa isa{};
};

struct CheckRow {
    ops::WeightFormat format{};
    MoeBackend backend{};
    std::int32_t ranks = 0;
    std::int64_t different = 0;  // values whose bits are not those of `reference` on one rank
    double error = 0;            // relative L2 against the oracle

    bool passed() const { return different == 0 && error <= kErrorBar; }
};

// In    report  gets every row when it is known
// Out   whether all rows passed
// Error kResourceExhausted: the experts do not fit; or as run_once()
// Cost  memory: the experts twice
[[nodiscard]] Result<bool> run_check(const CheckOptions& options, const std::function<void(const CheckRow&)>& report);

}  // namespace megamoe::moe::op
