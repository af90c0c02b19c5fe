#include "moe/operator.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "moe/mega.h"
#include "moe/reference.h"
#include "moe/standard.h"

namespace megamoe::moe {

ExpertShard shard_of(const OperatorConfig& config, std::int32_t num_ranks, RankId rank) {
    const std::int32_t count = config.num_experts / num_ranks;
    return {raw(rank) * count, count};
}

Result<Done> Operator::status() const {
    if (!failure_) {
        return Done{};
    }
    return Error{Errc::kUnavailable, fmt::format("this MoE operator ({}) failed before: {}", name(), failure_->what),
                 failure_->hint};
}

Result<Done> Operator::forward(const Input& input, const LayerExperts& experts, const step::StepPlan& plan,
                               float* out) {
    MM_TRY_DONE(status());
    const auto attempt = [&]() -> Result<Done> {
        if (context_.group.poisoned()) {
            const auto why = context_.group.failure().value_or(Error{Errc::kUnavailable, "another rank failed", {}});
            return Error{Errc::kUnavailable, why.what, why.hint};
        }
        if (input.rows < 0 || input.rows > config_.max_rows) {
            return invalid(
                fmt::format("rank {} brings {} rows to the MoE operator, which takes 0..{} (MTPR) a step",
                            raw(context_.rank), input.rows, config_.max_rows),
                fmt::format("make the operator with max_rows of at least {}, or split the step", input.rows));
        }
        return run(input, experts, plan, out);
    };
    Result<Done> done = attempt();
    if (!done) {
        failure_ = done.error();
        context_.group.poison(context_.rank, done.error());
    }
    return done;
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

// Every rank must bring the same operator, or offsets into the heap mean different things on different ranks, and a
// row's bits would depend on where its experts live.
Result<Done> compare_configs(MoeBackend backend, const OperatorConfig& c, const MegaOptions& mega,
                             const comm::RankContext& context) {
    constexpr std::array kNames{"backend",     "profile", "instruction set", "hidden size",        "expert width",
                                "clamp limit", "experts", "top_k",           "rows a step (MTPR)", "first launch"};
    const std::array<std::int64_t, kNames.size()> mine{static_cast<std::int64_t>(backend),
                                                       static_cast<std::int64_t>(c.math.profile),
                                                       static_cast<std::int64_t>(c.math.isa),
                                                       c.math.hidden,
                                                       c.math.inter,
                                                       std::bit_cast<std::int32_t>(c.math.limit),
                                                       c.num_experts,
                                                       c.top_k,
                                                       c.max_rows,
                                                       mega.first_epoch};
    const auto shown = [&](std::size_t field, std::int64_t value) {
        return kNames[field] == std::string_view("clamp limit")
                   ? fmt::to_string(std::bit_cast<float>(static_cast<std::int32_t>(value)))
                   : fmt::to_string(value);
    };
    std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(context.size));
    MM_TRY_DONE(context.all_gather("moe.config", mine, all));
    for (std::size_t r = 0; r < static_cast<std::size_t>(context.size); ++r) {
        for (std::size_t i = 0; i < mine.size(); ++i) {
            if (all[r * mine.size() + i] != all[i]) {
                return invalid(fmt::format("MoE operator: {} is {} on rank 0 and {} on rank {}", kNames[i],
                                           shown(i, all[i]), shown(i, all[r * mine.size() + i]), r),
                               "give every rank the same configuration");
            }
        }
    }
    return Done{};
}

Result<Done> check_config(const OperatorConfig& config, const MegaOptions& mega, std::int32_t num_ranks) {
    if (config.num_experts < 1 || config.num_experts % num_ranks != 0) {
        return invalid(fmt::format("{} ranks do not divide the model's {} experts", num_ranks, config.num_experts),
                       "choose a number of ranks that divides the experts");
    }
    if (config.max_rows < 1) {
        return invalid(fmt::format("rows a step (MTPR) is {}, must be at least 1", config.max_rows));
    }
    if (config.top_k < 1 || config.top_k > config.num_experts) {
        return invalid(fmt::format("top_k is {}, must be in 1..{} (the experts)", config.top_k, config.num_experts));
    }
    const std::int64_t pairs = std::int64_t{config.max_rows} * config.top_k * num_ranks;
    if (pairs > std::numeric_limits<std::int32_t>::max()) {
        return invalid(fmt::format("rows a step (MTPR) {} x top_k {} x {} ranks is {}, more than fits 31 bits",
                                   config.max_rows, config.top_k, num_ranks, pairs),
                       "lower the rows a step");
    }
    if (mega.first_epoch == 0) {
        return invalid("the first launch has number 0, which means \"never launched\"", "start at 1");
    }
    return Done{};
}

}  // namespace

Result<std::unique_ptr<Operator>> make_operator(MoeBackend backend, const OperatorConfig& config,
                                                const comm::RankContext& context, Workers& workers,
                                                const MegaOptions& mega) {
    MM_TRY_DONE(check_config(config, mega, context.size));
    MM_TRY_DONE(compare_configs(backend, config, mega, context));
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
