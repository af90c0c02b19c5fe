#include "step/step_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "base/check.h"

namespace megamoe::step {
namespace {

Error disagreement(std::string what) {
    return Error{Errc::kInternal, std::move(what), "ranks must run the same build, configuration and steps"};
}

// A field that must be equal everywhere.
Result<Done> check_common(std::span<const StepProposal> proposals, std::int64_t StepProposal::*field,
                          std::string_view name) {
    for (std::size_t r = 1; r < proposals.size(); ++r) {
        if (proposals[r].*field != proposals[0].*field) {
            return disagreement(fmt::format("{} differs between ranks: rank 0 has {}, rank {} has {}", name,
                                            proposals[0].*field, r, proposals[r].*field));
        }
    }
    return Done{};
}

// What one rank could get wrong alone.
Result<Done> check_proposal(const StepProposal& p, std::size_t rank, const StepPolicy& policy) {
    if (p.version != StepProposal::kVersion) {
        return disagreement(fmt::format("rank {} sent a proposal of version {:#x}, expected {:#x}", rank, p.version,
                                        StepProposal::kVersion));
    }
    const auto idle = static_cast<std::int64_t>(Phase::kIdle);
    const auto extend = static_cast<std::int64_t>(Phase::kExtend);
    if (p.phase < idle || p.phase > extend) {
        return disagreement(fmt::format("rank {} proposes unknown phase {}", rank, p.phase));
    }
    const bool rows_fit_phase = (p.phase == idle) == (p.n_tokens == 0);
    if (p.n_tokens < 0 || !rows_fit_phase || p.n_logit_rows < 0 || p.n_logit_rows > p.n_tokens) {
        return disagreement(fmt::format("rank {} contradicts itself: phase {}, {} tokens, {} logit rows", rank, p.phase,
                                        p.n_tokens, p.n_logit_rows));
    }
    if (p.n_tokens > policy.max_tokens_per_rank) {
        return disagreement(fmt::format("rank {} proposes {} rows, above the {} that the MoE buffers hold a rank", rank,
                                        p.n_tokens, policy.max_tokens_per_rank));
    }
    return Done{};
}

std::uint32_t older_wave(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::int32_t>(a - b) < 0 ? a : b;  // the counter may wrap
}

}  // namespace

void StepProposal::set_wake_wave(std::uint32_t wave) {
    const auto low = static_cast<std::uint64_t>(flags) & 0xFFFF'FFFFU;
    flags = static_cast<std::int64_t>(low | static_cast<std::uint64_t>(wave) << 32);
}

std::int32_t StepPlan::max_run() const {
    return *std::max_element(run.begin(), run.end());
}

std::int64_t StepPlan::sum_real() const {
    std::int64_t sum = 0;
    for (const std::int32_t rows : real) {
        sum += rows;
    }
    return sum;
}

std::int32_t bucket_of(std::int32_t num_tokens, const StepPolicy& policy) {
    const auto pow2 = std::bit_ceil(static_cast<std::uint32_t>(std::max(num_tokens, 1)));
    return std::min(policy.max_tokens_per_rank, static_cast<std::int32_t>(pow2));
}

Result<StepPlan> agree(std::span<const StepProposal> proposals, const StepPolicy& policy) {
    MM_CHECK(!proposals.empty() && proposals.size() <= kMaxRanks, "ranks", proposals.size());
    MM_CHECK(std::has_single_bit(static_cast<std::uint32_t>(policy.max_tokens_per_rank)), policy.max_tokens_per_rank);
    for (std::size_t r = 0; r < proposals.size(); ++r) {
        MM_TRY_DONE(check_proposal(proposals[r], r, policy));
    }
    MM_TRY_DONE(check_common(proposals, &StepProposal::step_no, "step number"));
    MM_TRY_DONE(check_common(proposals, &StepProposal::eplb_map_version, "expert map version"));

    StepPlan plan;
    plan.step_no = proposals[0].step_no;
    plan.num_ranks = static_cast<std::int32_t>(proposals.size());
    plan.map_version = proposals[0].eplb_map_version;
    plan.wake_wave = proposals[0].wake_wave();
    plan.shutdown = true;
    bool any_unfinished = false;
    for (const StepProposal& p : proposals) {
        plan.phase = std::max(plan.phase, static_cast<Phase>(p.phase));
        plan.wake_wave = older_wave(plan.wake_wave, p.wake_wave());
        plan.shutdown = plan.shutdown && p.has(StepProposal::kShutdownVote);
        any_unfinished = any_unfinished || p.has(StepProposal::kAnyUnfinished) || p.n_tokens > 0;
    }
    plan.shutdown = plan.shutdown && !any_unfinished;
    plan.pause = !any_unfinished && !plan.shutdown;
    if (plan.skipped()) {
        return plan;
    }
    for (std::size_t r = 0; r < proposals.size(); ++r) {
        const StepProposal& p = proposals[r];
        const bool wants = p.n_tokens > 0;
        plan.who_runs[r] =
            wants && (policy.mixed_phase == MixedPhase::kAllow || static_cast<Phase>(p.phase) == plan.phase);
        plan.real[r] = plan.who_runs[r] ? static_cast<std::int32_t>(p.n_tokens) : 0;
        plan.logit[r] = plan.who_runs[r] ? static_cast<std::int32_t>(p.n_logit_rows) : 0;
        plan.run[r] = std::max(plan.real[r], 1);
    }
    const bool pinned = plan.phase == Phase::kExtend && policy.extend_bucket == ExtendBucket::kPinned;
    plan.bucket = pinned ? policy.max_tokens_per_rank : bucket_of(plan.max_run(), policy);
    return plan;
}

}  // namespace megamoe::step
