#include "comm/rank_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "comm/rank_threads.h"
#include "comm/symmetric_heap.h"

namespace megamoe::comm {
namespace {

struct Team {
    explicit Team(std::int32_t num_ranks, RankGroupOptions options = {}) : group(num_ranks, options) {}
    RankGroup group;
    SymmetricHeap heap;

    Result<Done> run(const RankMain& main) { return run_ranks(group, heap, main); }
};

class RankGroupSizes : public testing::TestWithParam<std::int32_t> {};

TEST_P(RankGroupSizes, WhatWasWrittenBeforeABarrierIsSeenAfterIt) {
    Team team(GetParam());
    std::vector<std::int64_t> written(static_cast<std::size_t>(GetParam()));

    const auto result = team.run([&](const RankContext& me) -> Result<Done> {
        for (std::int64_t round = 1; round <= 500; ++round) {
            written[static_cast<std::size_t>(raw(me.rank))] = round;
            MM_TRY_DONE(me.barrier("written"));
            for (const std::int64_t value : written) {
                if (value != round) {
                    return Error{Errc::kInternal, "stale value", {}};
                }
            }
            MM_TRY_DONE(me.barrier("read"));
        }
        return Done{};
    });

    EXPECT_TRUE(result) << to_string(result.error());
}

TEST_P(RankGroupSizes, EveryRankGathersWhatEveryRankSent) {
    Team team(GetParam());

    const auto result = team.run([](const RankContext& me) -> Result<Done> {
        std::vector<std::int64_t> all;
        for (std::int64_t round = 0; round < 500; ++round) {
            const std::vector<std::int64_t> mine(static_cast<std::size_t>(round % 3 + 1), round * 100 + raw(me.rank));
            all.assign(mine.size() * static_cast<std::size_t>(me.size), -1);
            MM_TRY_DONE(me.all_gather("gather", mine, all));
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (all[i] != round * 100 + static_cast<std::int64_t>(i / mine.size())) {
                    return Error{Errc::kInternal, "wrong word", {}};
                }
            }
        }
        return Done{};
    });

    EXPECT_TRUE(result) << to_string(result.error());
}

TEST_P(RankGroupSizes, AnyRankCanWriteIntoEveryRanksBlock) {
    Team team(GetParam());

    const auto result = team.run([](const RankContext& me) -> Result<Done> {
        MM_TRY(const SymmetricBlock block, me.heap.allocate(me, "block", me.size * 8));
        for (std::int32_t r = 0; r < me.size; ++r) {
            if (reinterpret_cast<std::uintptr_t>(block.at(RankId{r})) % 64 != 0) {
                return Error{Errc::kInternal, "not aligned", {}};
            }
            block.as<std::int64_t>(RankId{r})[raw(me.rank)] = 10 * raw(me.rank) + r;
        }
        MM_TRY_DONE(me.barrier("written"));
        for (std::int32_t r = 0; r < me.size; ++r) {
            if (block.as<std::int64_t>(me.rank)[r] != 10 * r + raw(me.rank)) {
                return Error{Errc::kInternal, "wrong word", {}};
            }
        }
        return me.barrier("read");
    });

    EXPECT_TRUE(result) << to_string(result.error());
}

INSTANTIATE_TEST_SUITE_P(Sizes, RankGroupSizes, testing::Values(1, 2, 3, 8));

TEST(RankGroup, ATimeOutNamesTheCollectiveAndTheMissingRanks) {
    Team team(4, {.timeout_ms = 20});

    const auto result = team.run([](const RankContext& me) -> Result<Done> {
        MM_TRY_DONE(me.barrier("first"));
        if (raw(me.rank) % 2 == 1) {
            return Done{};  // leaves without a word
        }
        return me.barrier("second");
    });

    ASSERT_FALSE(result);
    const std::string text = result.error().what;
    EXPECT_NE(text.find("\"second\" timed out after 20 ms"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1 (last in \"first\", 1 calls behind)"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 3 (last in \"first\""), std::string::npos) << text;
    EXPECT_EQ(text.find("rank 0 (last"), std::string::npos) << text;
}

TEST(RankGroup, AFailingRankEndsTheWaitsOfAllOthersWithItsError) {
    Team team(3);
    std::atomic<std::int32_t> released = 0;

    const auto result = team.run([&](const RankContext& me) -> Result<Done> {
        if (raw(me.rank) == 1) {
            return Error{Errc::kResourceExhausted, "out of pages", "add memory"};
        }
        const Result<Done> wait = me.barrier("never complete");
        if (!wait && wait.error().code == Errc::kUnavailable && wait.error().what == "rank 1: out of pages") {
            ++released;
        }
        return wait;
    });

    EXPECT_EQ(released, 2);
    EXPECT_EQ(result.error().what, "rank 1: out of pages");
    EXPECT_EQ(result.error().code, Errc::kResourceExhausted);
}

TEST(RankGroup, RanksInDifferentCollectivesAreNamed) {
    Team team(3);

    const auto result = team.run([](const RankContext& me) -> Result<Done> {
        return raw(me.rank) == 2 ? me.barrier("combine") : me.barrier("dispatch");
    });

    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::kInternal);
    EXPECT_NE(result.error().what.find("rank 0 in \"dispatch\", rank 1 in \"dispatch\", rank 2 in \"combine\""),
              std::string::npos)
        << result.error().what;
}

TEST(RankGroup, GatheringDifferentLengthsFailsOnEveryRank) {
    Team team(2);
    std::atomic<std::int32_t> failed = 0;

    (void)team.run([&](const RankContext& me) -> Result<Done> {
        const std::vector<std::int64_t> mine(static_cast<std::size_t>(raw(me.rank) + 1));
        std::vector<std::int64_t> all(2 * mine.size());
        const Result<Done> result = me.all_gather("lengths", mine, all);
        failed += result ? 0 : 1;
        return result;
    });

    EXPECT_EQ(failed, 2);
}

TEST(RankGroup, BlocksOfDifferentSizesAreRefusedWithAllSizes) {
    Team team(2);

    const auto result = team.run([](const RankContext& me) -> Result<Done> {
        MM_TRY_DONE(me.heap.allocate(me, "slots", 64 + 64 * raw(me.rank)));
        return Done{};
    });

    ASSERT_FALSE(result);
    EXPECT_NE(result.error().what.find("sizes differ between ranks: 64, 128 bytes"), std::string::npos);
}

TEST(RankGroup, AWakeUpBetweenLookingForWorkAndSleepingIsNotLost) {
    Team team(2);
    const std::uint32_t seen = team.group.wake_wave();

    team.group.wake();

    EXPECT_TRUE(team.group.wait_wake(seen));
}

TEST(RankGroup, PausedRanksLeaveOnPoison) {
    Team team(3);

    const auto result = team.run([](const RankContext& me) -> Result<Done> {
        MM_TRY_DONE(me.barrier("pause"));
        if (raw(me.rank) == 0) {
            return Error{Errc::kInternal, "broken", {}};
        }
        return me.group.wait_wake(me.group.wake_wave());
    });

    EXPECT_EQ(result.error().what, "rank 0: broken");
}

TEST(RankGroup, AnExceptionOnARankPoisonsTheGroup) {
    Team team(2);

    const auto result = team.run([](const RankContext& me) -> Result<Done> {
        if (raw(me.rank) == 0) {
            throw std::runtime_error("boom");
        }
        return me.barrier("wait");
    });

    EXPECT_EQ(result.error().what, "rank 0: uncaught exception: boom");
}

}  // namespace
}  // namespace megamoe::comm
