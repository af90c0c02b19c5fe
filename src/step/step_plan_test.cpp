#include "step/step_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <vector>

namespace megamoe::step {
namespace {

constexpr StepPolicy kPolicy{.max_tokens_per_rank = 64};

StepProposal propose(Phase phase, std::int64_t n_tokens, std::int64_t n_logit_rows) {
    StepProposal p;
    p.phase = static_cast<std::int64_t>(phase);
    p.n_tokens = n_tokens;
    p.n_logit_rows = n_logit_rows;
    if (n_tokens > 0) {
        p.set(StepProposal::kAnyUnfinished);
    }
    return p;
}

StepProposal sample_of(Phase phase, std::size_t rank) {
    const auto n = static_cast<std::int64_t>(rank);
    switch (phase) {
        case Phase::kIdle:
            return propose(phase, 0, 0);
        case Phase::kDecode:
            return propose(phase, n + 1, n + 1);
        case Phase::kExtend:
            return propose(phase, 10 * n + 5, 1);
    }
    return {};
}

// The rules of one plan, read from the proposals independently of agree().
void expect_rules(const std::vector<StepProposal>& proposals, const StepPolicy& policy, const StepPlan& plan) {
    const auto has = [&](Phase phase) {
        return std::any_of(proposals.begin(), proposals.end(),
                           [&](const StepProposal& p) { return p.phase == static_cast<std::int64_t>(phase); });
    };
    const Phase phase = has(Phase::kExtend) ? Phase::kExtend : has(Phase::kDecode) ? Phase::kDecode : Phase::kIdle;
    ASSERT_EQ(plan.phase, phase);
    std::int64_t admitted = 0;
    std::int32_t most = 0;
    for (std::size_t r = 0; r < kMaxRanks; ++r) {
        if (r >= proposals.size() || plan.skipped()) {
            ASSERT_EQ(plan.real[r] + plan.run[r] + plan.logit[r], 0);
            ASSERT_FALSE(plan.who_runs[r]);
            continue;
        }
        const StepProposal& p = proposals[r];
        const bool same_phase = p.phase == static_cast<std::int64_t>(phase);
        const bool runs = p.n_tokens > 0 && (same_phase || policy.mixed_phase == MixedPhase::kAllow);
        ASSERT_EQ(plan.who_runs[r], runs);
        ASSERT_EQ(plan.real[r], runs ? p.n_tokens : 0);
        ASSERT_EQ(plan.logit[r], runs ? p.n_logit_rows : 0);
        ASSERT_EQ(plan.run[r], std::max(plan.real[r], 1));
        admitted += runs ? p.n_tokens : 0;
        most = std::max(most, plan.run[r]);
    }
    ASSERT_EQ(plan.sum_real(), admitted);
    if (!plan.skipped()) {
        ASSERT_GE(plan.bucket, most);
        ASSERT_LE(plan.bucket, policy.max_tokens_per_rank);
        ASSERT_TRUE(std::has_single_bit(static_cast<unsigned>(plan.bucket)));
    }
}

TEST(StepPlan, IsRightForEveryPhaseCombinationOfOneTwoAndThreeRanks) {
    for (const std::size_t num_ranks : {1U, 2U, 3U}) {
        for (std::size_t code = 0; code < (num_ranks == 1 ? 3U : num_ranks == 2 ? 9U : 27U); ++code) {
            std::vector<StepProposal> proposals;
            for (std::size_t r = 0, rest = code; r < num_ranks; ++r, rest /= 3) {
                proposals.push_back(sample_of(static_cast<Phase>(rest % 3), r));
            }
            for (const MixedPhase mixed : {MixedPhase::kDeferDecode, MixedPhase::kAllow}) {
                const StepPolicy policy{.max_tokens_per_rank = 64, .mixed_phase = mixed};
                const auto plan = agree(proposals, policy);
                ASSERT_TRUE(plan) << to_string(plan.error());
                expect_rules(proposals, policy, plan.value());
            }
        }
    }
}

TEST(StepPlan, IsRightForEveryPhaseCombinationOfEightRanks) {
    for (std::size_t code = 0; code < 6561; ++code) {  // 3^8
        std::vector<StepProposal> proposals;
        for (std::size_t r = 0, rest = code; r < 8; ++r, rest /= 3) {
            proposals.push_back(sample_of(static_cast<Phase>(rest % 3), r % 6));
        }
        const auto plan = agree(proposals, kPolicy);
        ASSERT_TRUE(plan) << to_string(plan.error());
        expect_rules(proposals, kPolicy, plan.value());
    }
}

TEST(StepPlan, IsRightForRandomProposalsAndPolicies) {
    EXPECT_TRUE(rc::check([] {
        const StepPolicy policy{.max_tokens_per_rank = 1 << *rc::gen::inRange(0, 15),
                                .mixed_phase = *rc::gen::element(MixedPhase::kDeferDecode, MixedPhase::kAllow),
                                .extend_bucket = *rc::gen::element(ExtendBucket::kPow2, ExtendBucket::kPinned)};
        std::vector<StepProposal> proposals(*rc::gen::inRange<std::size_t>(1, kMaxRanks + 1));
        const auto step_no = *rc::gen::inRange<std::int64_t>(0, 1'000'000);
        for (StepProposal& p : proposals) {
            const auto phase = *rc::gen::element(Phase::kIdle, Phase::kDecode, Phase::kExtend);
            const std::int64_t n =
                phase == Phase::kIdle ? 0 : *rc::gen::inRange<std::int64_t>(1, policy.max_tokens_per_rank + 1);
            p = propose(phase, n, *rc::gen::inRange<std::int64_t>(0, n + 1));
            p.step_no = step_no;
        }
        const auto plan = agree(proposals, policy);
        ASSERT_TRUE(plan) << to_string(plan.error());
        expect_rules(proposals, policy, plan.value());
        EXPECT_EQ(plan.value().step_no, step_no);
    }));
}

TEST(StepPlan, DefersADecodeRankWhileAnotherExtendsUnlessMixingIsAllowed) {
    const std::vector proposals{propose(Phase::kDecode, 3, 3), propose(Phase::kExtend, 20, 1),
                                propose(Phase::kIdle, 0, 0)};

    const StepPlan deferred = agree(proposals, kPolicy).take();
    const StepPlan mixed = agree(proposals, {.max_tokens_per_rank = 64, .mixed_phase = MixedPhase::kAllow}).take();

    EXPECT_EQ(deferred.real[0], 0);
    EXPECT_EQ(deferred.run[0], 1);
    EXPECT_EQ(deferred.bucket, 32);
    EXPECT_EQ(mixed.real[0], 3);
    EXPECT_EQ(mixed.phase, Phase::kExtend);
}

TEST(StepPlan, PinsTheBucketOfExtendStepsOnly) {
    const StepPolicy pinned{.max_tokens_per_rank = 64, .extend_bucket = ExtendBucket::kPinned};

    EXPECT_EQ(agree(std::vector{propose(Phase::kExtend, 3, 1)}, pinned).value().bucket, 64);
    EXPECT_EQ(agree(std::vector{propose(Phase::kDecode, 3, 3)}, pinned).value().bucket, 4);
}

TEST(StepPlan, PausesWhenNobodyHasWorkOnTheOldestWaveAnyRankSaw) {
    std::vector<StepProposal> proposals(3, propose(Phase::kIdle, 0, 0));
    proposals[0].set_wake_wave(7);
    proposals[1].set_wake_wave(6);
    proposals[2].set_wake_wave(7);

    const StepPlan plan = agree(proposals, kPolicy).take();

    EXPECT_TRUE(plan.skipped());
    EXPECT_TRUE(plan.pause);
    EXPECT_EQ(plan.wake_wave, 6U);
}

TEST(StepPlan, ComparesWakeUpWavesAcrossTheWrapOfTheCounter) {
    std::vector<StepProposal> proposals(2, propose(Phase::kIdle, 0, 0));
    proposals[0].set_wake_wave(1);
    proposals[1].set_wake_wave(0xFFFF'FFFFU);

    EXPECT_EQ(agree(proposals, kPolicy).value().wake_wave, 0xFFFF'FFFFU);
}

TEST(StepPlan, SkipsWithoutPausingWhileARequestIsHeldBack) {
    std::vector<StepProposal> proposals(2, propose(Phase::kIdle, 0, 0));
    proposals[1].set(StepProposal::kAnyUnfinished);

    const StepPlan plan = agree(proposals, kPolicy).take();

    EXPECT_TRUE(plan.skipped());
    EXPECT_FALSE(plan.pause);
}

TEST(StepPlan, ShutsDownOnlyWhenAllVoteAndNobodyHasWork) {
    std::vector<StepProposal> proposals(2, propose(Phase::kIdle, 0, 0));
    proposals[0].set(StepProposal::kShutdownVote);
    EXPECT_FALSE(agree(proposals, kPolicy).value().shutdown);

    proposals[1].set(StepProposal::kShutdownVote);
    EXPECT_TRUE(agree(proposals, kPolicy).value().shutdown);

    proposals[1].set(StepProposal::kAnyUnfinished);
    EXPECT_FALSE(agree(proposals, kPolicy).value().shutdown);
}

TEST(StepPlan, NamesTheRanksThatDisagree) {
    std::vector<StepProposal> proposals(3, propose(Phase::kDecode, 1, 1));
    proposals[2].step_no = 5;

    const auto result = agree(proposals, kPolicy);

    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().what, "step number differs between ranks: rank 0 has 0, rank 2 has 5");
}

TEST(StepPlan, RefusesProposalsThatCannotBe) {
    const auto refuse = [](StepProposal p) { return !agree(std::vector{propose(Phase::kDecode, 1, 1), p}, kPolicy); };
    StepProposal old = propose(Phase::kDecode, 1, 1);
    old.version = 0;
    StepProposal moved = propose(Phase::kDecode, 1, 1);
    moved.eplb_map_version = 1;

    EXPECT_TRUE(refuse(old));
    EXPECT_TRUE(refuse(moved));
    EXPECT_TRUE(refuse(propose(static_cast<Phase>(3), 1, 1)));
    EXPECT_TRUE(refuse(propose(Phase::kIdle, 1, 0)));
    EXPECT_TRUE(refuse(propose(Phase::kExtend, 0, 0)));
    EXPECT_TRUE(refuse(propose(Phase::kExtend, 65, 1)));
    EXPECT_TRUE(refuse(propose(Phase::kExtend, 4, 5)));
    EXPECT_FALSE(refuse(propose(Phase::kExtend, 64, 64)));
}

TEST(StepProposal, KeepsFlagsAndWaveApart) {
    StepProposal p;
    p.set(StepProposal::kAnyUnfinished);
    p.set_wake_wave(0xFFFF'FFFEU);
    p.set(StepProposal::kShutdownVote);
    p.set_wake_wave(3);

    EXPECT_EQ(p.wake_wave(), 3U);
    EXPECT_TRUE(p.has(StepProposal::kAnyUnfinished));
    EXPECT_TRUE(p.has(StepProposal::kShutdownVote));
    EXPECT_FALSE(p.has(StepProposal::kTimeoutVote));
}

}  // namespace
}  // namespace megamoe::step
