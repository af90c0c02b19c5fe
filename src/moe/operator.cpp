#include "moe/operator.h"

#include <fmt/format.h>

#include "moe/reference.h"
#include "moe/standard.h"

namespace megamoe::moe {

ExpertShard shard_of(const OperatorConfig& config, std::int32_t num_ranks, RankId rank) {
    const std::int32_t count = config.num_experts / num_ranks;
    return {raw(rank) * count, count};
}

std::int64_t heap_bytes(MoeBackend backend, const OperatorConfig& config, std::int32_t num_ranks) {
    return backend == MoeBackend::kReference ? ReferenceOperator::heap_bytes(config)
                                             : StandardOperator::heap_bytes(config, num_ranks);
}

Result<std::unique_ptr<Operator>> make_operator(MoeBackend backend, const OperatorConfig& config,
                                                const comm::RankContext& context, Workers& workers) {
    if (config.num_experts % context.size != 0) {
        return invalid(fmt::format("{} ranks do not divide the model's {} experts", context.size, config.num_experts),
                       "choose a number of ranks that divides the experts");
    }
    if (config.max_rows < 1) {
        return invalid(fmt::format("max rows a step is {}, must be at least 1", config.max_rows));
    }
    MM_TRY(const auto block, context.heap.allocate(context, "moe.heap", heap_bytes(backend, config, context.size)));
    if (backend == MoeBackend::kReference) {
        return std::unique_ptr<Operator>(new ReferenceOperator(config, context, block, workers));
    }
    return std::unique_ptr<Operator>(new StandardOperator(config, context, block, workers));
}

}  // namespace megamoe::moe
