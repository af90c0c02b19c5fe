// One batch through one backend on some ranks, as threads of this process.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "moe/op/op_case.h"
#include "moe/op/op_routing.h"
#include "moe/operator.h"

namespace megamoe::moe::op {

// The rows of all ranks, one after the other.
struct Batch {
    std::vector<float> x;  // [rows, H]
    Routes routes;
    std::int64_t rows = 0;
};
Batch make_batch(const Routing& routing, const Geometry& geometry, std::int32_t num_ranks, std::int64_t rows,
                 std::uint64_t seed);

// Rank r brings rows [begin[r], begin[r + 1]) of a batch.
using Split = std::vector<std::int64_t>;  // [ranks + 1]
Split split_evenly(std::int64_t rows_a_rank, std::int32_t num_ranks);
// Shares proportional to 0, 1, 2 ...: the first of several ranks brings nothing.
Split split_unevenly(std::int64_t rows, std::int32_t num_ranks);

step::StepPlan make_plan(const Split& split);
OperatorConfig make_config(const Geometry& geometry, cpu::Isa isa, std::int32_t max_rows);
// What rank `rank` brings.
Input input_of(const Batch& batch, const Geometry& geometry, const Split& split, std::int32_t rank);

struct Arm {
    MoeBackend backend{};
    std::int32_t num_ranks = 1;
    std::int32_t threads_per_rank = 1;
    cpu::Isa isa{};
};

// Out   [rows, H], the rows of all ranks
// Error as make_operator() and Operator::forward()
[[nodiscard]] Result<std::vector<float>> run_once(const Arm& arm, const Geometry& geometry, const LayerExperts& experts,
                                                  const Batch& batch, const Split& split);

}  // namespace megamoe::moe::op
