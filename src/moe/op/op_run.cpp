#include "moe/op/op_run.h"

#include <algorithm>

#include "comm/rank_threads.h"

namespace megamoe::moe::op {

Batch make_batch(const Routing& routing, const Geometry& geometry, std::int32_t num_ranks, std::int64_t rows,
                 std::uint64_t seed) {
    return {.x = random_rows(rows, geometry.hidden, seed),
            .routes = make_routes(routing, geometry, num_ranks, rows, seed),
            .rows = rows};
}

Split split_evenly(std::int64_t rows_a_rank, std::int32_t num_ranks) {
    Split begin;
    for (std::int32_t r = 0; r <= num_ranks; ++r) {
        begin.push_back(r * rows_a_rank);
    }
    return begin;
}

Split split_unevenly(std::int64_t rows, std::int32_t num_ranks) {
    if (num_ranks == 1) {
        return {0, rows};
    }
    const std::int64_t parts = std::int64_t{num_ranks} * (num_ranks - 1) / 2;
    Split begin;
    for (std::int64_t r = 0; r <= num_ranks; ++r) {
        begin.push_back(rows * (r * (r - 1) / 2) / parts);
    }
    return begin;
}

step::StepPlan make_plan(const Split& split) {
    step::StepPlan plan;
    plan.phase = step::Phase::kExtend;
    plan.num_ranks = static_cast<std::int32_t>(split.size()) - 1;
    for (std::size_t r = 0; r + 1 < split.size(); ++r) {
        const auto rows = static_cast<std::int32_t>(split[r + 1] - split[r]);
        plan.who_runs[r] = rows > 0;
        plan.real[r] = plan.run[r] = rows;
        plan.bucket = std::max(plan.bucket, rows);
    }
    return plan;
}

OperatorConfig make_config(const Geometry& g, cpu::Isa isa, std::int32_t max_rows) {
    return {.math = {.isa = isa, .profile = Profile::kDs, .hidden = g.hidden, .inter = g.inter, .limit = kSwigluLimit},
            .num_experts = g.num_experts,
            .top_k = g.top_k,
            .max_rows = std::max(1, max_rows)};
}

Input input_of(const Batch& batch, const Geometry& g, const Split& split, std::int32_t rank) {
    const std::int64_t begin = split[static_cast<std::size_t>(rank)];
    return {.x = batch.x.data() + begin * g.hidden,
            .expert_id = batch.routes.expert_id.data() + begin * g.top_k,
            .weight = batch.routes.weight.data() + begin * g.top_k,
            .rows = static_cast<std::int32_t>(split[static_cast<std::size_t>(rank) + 1] - begin)};
}

Result<std::vector<float>> run_once(const Arm& arm, const Geometry& geometry, const LayerExperts& experts,
                                    const Batch& batch, const Split& split) {
    const step::StepPlan plan = make_plan(split);
    std::vector<float> out(batch.x.size());
    const auto run_rank = [&](const comm::RankContext& context) -> Result<Done> {
        Workers workers(arm.threads_per_rank);
        MM_TRY(const auto op,
               make_operator(arm.backend, make_config(geometry, arm.isa, plan.bucket), context, workers));
        const std::int32_t me = raw(context.rank);
        return op->forward(input_of(batch, geometry, split, me), experts, plan,
                           out.data() + split[static_cast<std::size_t>(me)] * geometry.hidden);
    };
    comm::RankGroup group(arm.num_ranks);
    comm::SymmetricHeap heap;
    MM_TRY_DONE(comm::run_ranks(group, heap, run_rank));
    return out;
}

}  // namespace megamoe::moe::op
