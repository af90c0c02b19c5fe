#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "engine/testing.h"

namespace megamoe::engine {
namespace {

constexpr std::int32_t kPage = 8;

struct Setup {
    std::int32_t max_running = 4;
    std::int32_t chunk = 100;
    std::int32_t token_pages = 21;
    double conservativeness = 1;
};

// A scheduler whose model answers what the test wants.
class Bench {
  public:
    explicit Bench(const Setup& setup = {})
        : pools_(kv::Pools::create(kv::make_layout(testing::fake_geometry(), kPage, 4).take(),
                                   {.token_pages = setup.token_pages,
                                    .window_pages = setup.token_pages,
                                    .state_slots = setup.max_running + 1})
                     .take()),
          scheduler_({.max_running = setup.max_running,
                      .max_prefill_rows = setup.chunk,
                      .eos_id = testing::kEos,
                      .conservativeness = setup.conservativeness},
                     *pools_) {}

    void add(std::uint64_t id, std::int32_t num_prompt, SamplingParams sampling) {
        scheduler_.add({.id = RequestId{id},
                        .prompt = std::vector<std::int32_t>(static_cast<std::size_t>(num_prompt), 7),
                        .sampling = std::move(sampling)},
                       0);
    }
    void add(std::uint64_t id, std::int32_t num_prompt, std::int32_t max_tokens) {
        add(id, num_prompt, SamplingParams{.max_tokens = max_tokens});
    }

    // One step alone; every row that wants a token gets `token`. Returns the phase and the number of rows.
    std::pair<step::Phase, std::int32_t> step(std::int32_t token = 9) {
        const Scheduler::Candidate candidate = scheduler_.propose();
        if (candidate.parts.empty()) {
            return {step::Phase::kIdle, 0};
        }
        scheduler_.prepare();
        const std::vector<Result<model::Sampled>> sampled(scheduler_.logit_rows().size(),
                                                          model::Sampled{.token = token});
        scheduler_.commit(sampled);
        note();
        return {candidate.phase, candidate.num_tokens};
    }
    void note() {
        for (Update& update : scheduler_.take_updates()) {
            updates[raw(update.id)].push_back(std::move(update));
        }
    }
    FinishReason finish(std::uint64_t id) {
        note();
        return updates[id].empty() ? FinishReason::kNone : updates[id].back().finish;
    }
    std::int32_t held_pages() const { return pools_->token_pages().num_held(); }

    Scheduler& scheduler() { return scheduler_; }
    std::map<std::uint64_t, std::vector<Update>> updates;

  private:
    std::unique_ptr<kv::Pools> pools_;
    Scheduler scheduler_;
};

std::vector<std::uint64_t> ids(const Scheduler::Candidate& candidate) {
    std::vector<std::uint64_t> out;
    for (const auto& part : candidate.parts) {
        out.push_back(raw(part.request->id));
    }
    return out;
}

using Step = std::pair<step::Phase, std::int32_t>;
using Ids = std::vector<std::uint64_t>;

TEST(Scheduler, PrefillsThenDecodesOneRowARequest) {
    Bench bench;
    bench.add(1, 5, 3);
    bench.add(2, 7, 3);

    EXPECT_EQ(bench.step(), Step(step::Phase::kExtend, 12));
    EXPECT_EQ(bench.step(), Step(step::Phase::kDecode, 2));
    EXPECT_EQ(bench.step(), Step(step::Phase::kDecode, 2));
    EXPECT_EQ(bench.step(), Step(step::Phase::kIdle, 0));
    EXPECT_EQ(bench.finish(1), FinishReason::kLength);
    EXPECT_EQ(bench.updates[2].size(), 3U);
    EXPECT_EQ(bench.held_pages(), 0);
}

TEST(Scheduler, ACandidateThatIsNotRunLeavesNoTrace) {
    Bench bench;
    bench.add(1, 8, 9);
    EXPECT_EQ(ids(bench.scheduler().propose()), Ids{1});
    EXPECT_EQ(ids(bench.scheduler().propose()), Ids{1});
    EXPECT_EQ(bench.held_pages(), 0);  // proposing takes nothing
    bench.step();
    EXPECT_EQ(bench.held_pages(), 1);

    for (int deferred = 0; deferred < 5; ++deferred) {  // the next token needs a page, but the decode does not run
        EXPECT_EQ(bench.scheduler().propose().phase, step::Phase::kDecode);
        EXPECT_EQ(bench.held_pages(), 1);
        EXPECT_EQ(bench.scheduler().propose().parts[0].request->num_committed(), 8);
    }
    bench.step();

    EXPECT_EQ(bench.held_pages(), 2);
    EXPECT_EQ(bench.scheduler().propose().parts[0].request->num_committed(), 9);
}

TEST(Scheduler, AMiddleChunkYieldsNoToken) {
    Bench bench({.chunk = 10});
    bench.add(1, 25, 2);

    bench.step();
    bench.step();
    EXPECT_TRUE(bench.updates.empty());
    EXPECT_EQ(bench.step(), Step(step::Phase::kExtend, 5));

    EXPECT_EQ(bench.updates[1].size(), 1U);
}

TEST(Scheduler, PartlyPrefillsOneRequestAtATimeInOrderOfArrival) {
    Bench bench({.chunk = 10});
    bench.add(1, 14, 5);
    bench.add(2, 3, 5);
    bench.add(3, 9, 5);

    EXPECT_EQ(ids(bench.scheduler().propose()), Ids{1});
    bench.step();
    EXPECT_EQ(ids(bench.scheduler().propose()), (Ids{1, 2, 3}));  // 4 + 3 + 3 of 9 tokens
    EXPECT_FALSE(bench.scheduler().propose().parts[2].last);
    bench.step();
    EXPECT_EQ(ids(bench.scheduler().propose()), Ids{3});
}

TEST(Scheduler, RunsNoMoreRequestsThanAllowed) {
    Bench bench({.max_running = 2});
    for (std::uint64_t id = 1; id <= 3; ++id) {
        bench.add(id, 2, 4);
    }

    EXPECT_EQ(ids(bench.scheduler().propose()), (Ids{1, 2}));
    bench.step();
    EXPECT_EQ(bench.step().first, step::Phase::kDecode);
    bench.step();
    bench.step();  // 1 and 2 end
    EXPECT_EQ(ids(bench.scheduler().propose()), Ids{3});
}

TEST(Scheduler, StopsInTheOrderStopThenLength) {
    Bench bench;
    bench.add(1, 2, SamplingParams{.max_tokens = 1});
    bench.add(2, 2, SamplingParams{.max_tokens = 1, .ignore_eos = true});
    bench.add(3, 2, SamplingParams{.max_tokens = 5, .ignore_eos = true, .stop_token_ids = {testing::kEos}});
    bench.add(4, 2, SamplingParams{.max_tokens = 5, .ignore_eos = true});

    bench.step(testing::kEos);

    EXPECT_EQ(bench.finish(1), FinishReason::kStop);
    EXPECT_EQ(bench.updates[1][0].stop_token, testing::kEos);
    EXPECT_EQ(bench.updates[1][0].token, testing::kEos);
    EXPECT_EQ(bench.finish(2), FinishReason::kLength);
    EXPECT_EQ(bench.finish(3), FinishReason::kStop);
    EXPECT_EQ(bench.finish(4), FinishReason::kNone);
}

TEST(Scheduler, ABrokenRowEndsItsOwnRequestOnly) {
    Bench bench;
    bench.add(1, 2, 5);
    bench.add(2, 2, 5);
    bench.scheduler().propose();
    bench.scheduler().prepare();
    const std::vector<Result<model::Sampled>> sampled{Error{Errc::kInternal, "NaN", {}}, model::Sampled{.token = 9}};

    bench.scheduler().commit(sampled);

    EXPECT_EQ(bench.finish(1), FinishReason::kError);
    EXPECT_EQ(bench.updates[1][0].error.what, "NaN");
    EXPECT_EQ(ids(bench.scheduler().propose()), Ids{2});
}

// Two requests that outgrow nine pages together: 1 is older and has more output when it happens.
Setup tight() {
    return {.token_pages = 10, .conservativeness = 0};
}
void run_until_retraction(Bench& bench) {
    bench.add(1, 14, 50);
    bench.step();
    bench.step();
    bench.add(2, 10, 36);
    for (int i = 0; i < 60 && bench.scheduler().num_retractions() == 0; ++i) {
        bench.scheduler().propose();
        if (bench.scheduler().num_retractions() == 0) {
            bench.step();
        }
    }
    ASSERT_EQ(bench.scheduler().num_retractions(), 1);
}

TEST(Scheduler, RetractsTheRequestWithTheLeastOutputAndResumesItWithItsTokens) {
    Bench bench(tight());
    run_until_retraction(bench);
    EXPECT_EQ(bench.scheduler().num_waiting(), 1);
    EXPECT_EQ(ids(bench.scheduler().propose()), Ids{1});
    const std::size_t heard = bench.updates[2].size();

    for (int i = 0; i < 100 && bench.step().first != step::Phase::kIdle; ++i) {
    }

    EXPECT_GT(heard, 10U);
    EXPECT_EQ(bench.updates[1].size(), 50U);
    EXPECT_EQ(bench.updates[2].size(), 36U);
    EXPECT_EQ(bench.finish(2), FinishReason::kLength);
}

TEST(Scheduler, OwesADecodeStepAfterARetraction) {
    Bench bench(tight());
    run_until_retraction(bench);
    bench.add(3, 1, 1);  // would fit

    // Another rank may extend meanwhile and defer it; it is first all the same.
    EXPECT_EQ(bench.scheduler().propose().phase, step::Phase::kDecode);
    EXPECT_EQ(bench.step(), Step(step::Phase::kDecode, 1));
}

TEST(Scheduler, PutsARetractedRequestBeforeThoseThatNeverRan) {
    Bench bench(tight());
    run_until_retraction(bench);
    bench.add(3, 1, 1);
    bench.step();
    bench.scheduler().abort(RequestId{1});

    EXPECT_EQ(ids(bench.scheduler().propose()), (Ids{2, 3}));
}

TEST(Scheduler, ARequestThatOutgrowsTheCacheAloneFailsAloneAndTheNextOneRuns) {
    Bench bench({.token_pages = 3});
    bench.add(1, 10, 50);
    bench.add(2, 5, 2);
    while (bench.finish(1) == FinishReason::kNone) {
        bench.step();
    }

    EXPECT_EQ(bench.finish(1), FinishReason::kError);
    EXPECT_EQ(bench.updates[1].back().error.code, Errc::kResourceExhausted);
    EXPECT_EQ(bench.updates[1].size(), 16U - 10 + 1 + 1);  // 16 positions, the token after them, and the error
    while (bench.step().first != step::Phase::kIdle) {
    }
    EXPECT_EQ(bench.finish(2), FinishReason::kLength);
}

TEST(Scheduler, AbortsInEveryState) {
    Bench bench({.max_running = 2, .chunk = 10});
    bench.add(1, 4, 50);
    bench.step();  // 1 runs
    bench.add(2, 30, 5);
    bench.step();        // 2 is partly prefilled
    bench.add(3, 4, 5);  // 3 waits

    for (const std::uint64_t id : {3U, 2U, 1U, 1U, 77U}) {
        bench.scheduler().abort(RequestId{id});
    }

    for (const std::uint64_t id : {1U, 2U, 3U}) {
        EXPECT_EQ(bench.finish(id), FinishReason::kAbort);
        EXPECT_EQ(bench.updates[id].back().token, -1);
    }
    EXPECT_EQ(bench.updates[1].size(), 2U);  // its token and one abort
    EXPECT_EQ(bench.held_pages(), 0);
    EXPECT_TRUE(bench.scheduler().idle());
}

TEST(Scheduler, AbortsARetractedRequest) {
    Bench bench(tight());
    run_until_retraction(bench);

    bench.scheduler().abort(RequestId{2});

    EXPECT_EQ(bench.finish(2), FinishReason::kAbort);
    EXPECT_EQ(bench.scheduler().num_waiting(), 0);
}

TEST(Scheduler, AbortBetweenProposalAndTheNextOneIsForgottenByTheCandidate) {
    Bench bench;
    bench.add(1, 4, 5);
    bench.add(2, 4, 5);
    bench.scheduler().propose();

    bench.scheduler().abort(RequestId{1});

    EXPECT_EQ(ids(bench.scheduler().propose()), Ids{2});
}

TEST(Scheduler, DescribesItselfInTheProposal) {
    Bench bench({.chunk = 10});
    bench.add(1, 14, 5);
    bench.add(2, 6, 5);
    bench.step();
    bench.scheduler().propose();

    step::StepProposal proposal;
    bench.scheduler().describe(proposal);

    EXPECT_EQ(proposal.phase, static_cast<std::int64_t>(step::Phase::kExtend));
    EXPECT_EQ(proposal.n_tokens, 10);
    EXPECT_EQ(proposal.n_logit_rows, 2);
    EXPECT_EQ(proposal.running_reqs, 1);
    EXPECT_EQ(proposal.waiting_reqs, 1);
    EXPECT_EQ(proposal.pending_prefill_tokens, 4 + 6);
    EXPECT_TRUE(proposal.has(step::StepProposal::kHasPartialChunk));
    EXPECT_TRUE(proposal.has(step::StepProposal::kAnyUnfinished));
}

TEST(NewTokenRatio, FollowsTheSpec) {
    NewTokenRatio ratio(1.0);
    EXPECT_DOUBLE_EQ(ratio.value(), 0.7);
    for (int i = 0; i < 300; ++i) {
        ratio.on_decode_step();
    }
    EXPECT_NEAR(ratio.value(), (0.7 + 0.098) / 2, 1e-12);
    for (int i = 0; i < 1000; ++i) {
        ratio.on_decode_step();
    }
    EXPECT_NEAR(ratio.value(), 0.098, 1e-12);

    ratio.on_retraction(3, 40, 199);
    EXPECT_DOUBLE_EQ(ratio.value(), (40 + 20 * 3) / 200.0);
    ratio.on_retraction(3, 400, 199);
    EXPECT_DOUBLE_EQ(ratio.value(), 1);
    ratio.on_idle();
    EXPECT_DOUBLE_EQ(ratio.value(), 0.7);
}

TEST(ExtendBudget, AdmitsOnlyWhatLeavesAPageToSpare) {
    // Next to a running request that expects 0 more: 160 - 8 tokens free; need = prompt + max_tokens + page < 152.
    const auto admitted = [](std::int32_t max_tokens) {
        Bench bench({.conservativeness = 0});
        bench.add(1, 8, 100);
        bench.step();
        bench.add(2, 20, max_tokens);
        return bench.scheduler().propose().phase == step::Phase::kExtend;
    };

    EXPECT_TRUE(admitted(152 - 20 - 8 - 1));
    EXPECT_FALSE(admitted(152 - 20 - 8));
}

TEST(ExtendBudget, LooksAheadAtMost4096Tokens) {
    Bench bench({.token_pages = 2000});
    bench.add(1, 8, 100'000);
    bench.add(2, 8, 100'000);

    EXPECT_EQ(ids(bench.scheduler().propose()), (Ids{1, 2}));
}

}  // namespace
}  // namespace megamoe::engine
