#include "moe/operator.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "moe/mega.h"
#include "moe/reference.h"
#include "moe/standard.h"

namespace megamoe::moe {

ExpertShard shard_of(const OperatorConfig& config, std::int32_t num_ranks, RankId rank) {
    const std::int32_t count = config.num_experts / num_ranks;
    return {raw(rank) * count, count};
}

std::int64_t heap_bytes(MoeBackend backend, const OperatorConfig& config, std::int32_t num_ranks) {
    switch (backend) {
        case MoeBackend::kReference:
            return ReferenceOperator::heap_bytes(config);
        case MoeBackend::kStandard:
            return StandardOperator::heap_bytes(config, num_ranks);
        case MoeBackend::kMegaMoe1:
        case MoeBackend::kMegaMoe2:
            break;
    }
    return mega::heap_bytes(MegaOperator::shape_of(config, num_ranks), MegaOperator::wire_of(config.math));
}

namespace {

// Every rank must bring the same operator, or offsets into the heap mean different things on different ranks.
Result<Done> compare_configs(MoeBackend backend, const OperatorConfig& c, const comm::RankContext& context) {
    const std::array<std::int64_t, 8> mine{static_cast<std::int64_t>(backend),
                                           static_cast<std::int64_t>(c.math.profile),
                                           c.math.hidden,
                                           c.math.inter,
                                           c.num_experts,
                                           c.top_k,
                                           c.max_rows,
                                           context.size};
    constexpr std::array kNames{"backend", "profile", "hidden size",        "expert width",
                                "experts", "top_k",   "rows a step (MTPR)", "ranks"};
    std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(context.size));
    MM_TRY_DONE(context.all_gather("moe.config", mine, all));
    for (std::size_t r = 0; r < static_cast<std::size_t>(context.size); ++r) {
        for (std::size_t i = 0; i < mine.size(); ++i) {
            if (all[r * mine.size() + i] != all[i]) {
                return invalid(fmt::format("MoE operator: {} is {} on rank 0 and {} on rank {}", kNames[i], all[i],
                                           all[r * mine.size() + i], r),
                               "give every rank the same configuration");
            }
        }
    }
    return Done{};
}

Result<Done> check_config(const OperatorConfig& config, std::int32_t num_ranks) {
    if (config.num_experts % num_ranks != 0) {
        return invalid(fmt::format("{} ranks do not divide the model's {} experts", num_ranks, config.num_experts),
                       "choose a number of ranks that divides the experts");
    }
    if (config.max_rows < 1) {
        return invalid(fmt::format("rows a step (MTPR) is {}, must be at least 1", config.max_rows));
    }
    if (config.top_k < 1 || config.top_k > config.num_experts) {
        return invalid(fmt::format("top_k is {}, must be in 1..{} (the experts)", config.top_k, config.num_experts));
    }
    return Done{};
}

}  // namespace

Result<std::unique_ptr<Operator>> make_operator(MoeBackend backend, const OperatorConfig& config,
                                                const comm::RankContext& context, Workers& workers,
                                                const MegaOptions& mega) {
    MM_TRY_DONE(check_config(config, context.size));
    MM_TRY_DONE(compare_configs(backend, config, context));
    MM_TRY(const auto block, context.heap.allocate(context, "moe.heap", heap_bytes(backend, config, context.size)));
    switch (backend) {
        case MoeBackend::kReference:
            return std::unique_ptr<Operator>(new ReferenceOperator(config, context, block, workers));
        case MoeBackend::kStandard:
            return std::unique_ptr<Operator>(new StandardOperator(config, context, block, workers));
        case MoeBackend::kMegaMoe1:
        case MoeBackend::kMegaMoe2:
            break;
    }
    return std::unique_ptr<Operator>(
        new MegaOperator(config, backend == MoeBackend::kMegaMoe1 ? 1 : 2, mega, context, block, workers));
}

}  // namespace megamoe::moe
