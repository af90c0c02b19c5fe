#include "frontend/router/rank_router.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace megamoe::router {
namespace {

std::int32_t dispatch(RankRouter& router, std::int64_t tokens) {
    return router.dispatch(tokens, std::nullopt).value();
}

TEST(RankRouter, RoundRobinTakesTheRanksInTurnWhateverTheirLoad) {
    RankRouter router(BalanceMethod::kRoundRobin, 3);

    std::vector<std::int32_t> ranks;
    for (const std::int64_t tokens : {1000, 1, 1, 1, 1}) {
        ranks.push_back(dispatch(router, tokens));
    }

    EXPECT_EQ(ranks, (std::vector{0, 1, 2, 0, 1}));
}

TEST(RankRouter, TotalRequestsCountsRequestsAndNotTokens) {
    RankRouter router(BalanceMethod::kTotalRequests, 2);

    EXPECT_EQ(dispatch(router, 1), 0);
    EXPECT_EQ(dispatch(router, 1000), 1);
    EXPECT_EQ(dispatch(router, 1), 0);
    router.finish(1, 1000);
    EXPECT_EQ(dispatch(router, 1), 1);
    EXPECT_EQ(dispatch(router, 1), 1);
}

TEST(RankRouter, TotalTokensPrefersTheLighterRank) {
    RankRouter router(BalanceMethod::kTotalTokens, 2);

    EXPECT_EQ(dispatch(router, 1000), 0);
    EXPECT_EQ(dispatch(router, 400), 1);
    EXPECT_EQ(dispatch(router, 400), 1);
    EXPECT_EQ(dispatch(router, 400), 1);
    EXPECT_EQ(dispatch(router, 1), 0);
}

TEST(RankRouter, GeneratedTokensWeighAsWell) {
    RankRouter router(BalanceMethod::kTotalTokens, 2);
    EXPECT_EQ(dispatch(router, 10), 0);
    EXPECT_EQ(dispatch(router, 10), 1);
    router.grow(0);

    EXPECT_EQ(dispatch(router, 0), 1);
}

TEST(RankRouter, ABurstOnAnIdleEngineSpreadsEvenly) {
    for (const BalanceMethod method :
         {BalanceMethod::kRoundRobin, BalanceMethod::kTotalRequests, BalanceMethod::kTotalTokens}) {
        RankRouter router(method, 8);

        for (int i = 0; i < 64; ++i) {
            dispatch(router, 100);
        }

        for (const RankLoad& load : router.loads()) {
            EXPECT_EQ(load.requests, 8) << to_string(method);
        }
    }
}

TEST(RankRouter, AnEngineThatIsIdleBetweenRequestsStillUsesEveryRank) {
    RankRouter router(BalanceMethod::kTotalTokens, 4);
    std::set<std::int32_t> used;

    for (int i = 0; i < 4; ++i) {
        const std::int32_t rank = dispatch(router, 5);
        router.finish(rank, 5);
        used.insert(rank);
    }

    EXPECT_EQ(used.size(), 4U);
}

TEST(RankRouter, AWishWinsAndIsCounted) {
    RankRouter router(BalanceMethod::kTotalTokens, 2);

    EXPECT_EQ(router.dispatch(10, 1).value(), 1);
    EXPECT_EQ(router.dispatch(10, 1).value(), 1);

    EXPECT_EQ(router.loads()[1].requests, 2);
    EXPECT_EQ(dispatch(router, 1), 0);
}

TEST(RankRouter, ARankThatDoesNotExistIsRefusedWithBothBounds) {
    RankRouter router(BalanceMethod::kTotalTokens, 2);

    const auto refused = router.dispatch(10, 2);

    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what, "routed_dp_rank is 2, must be in [0, 1]");
    EXPECT_EQ(router.loads()[0].requests + router.loads()[1].requests, 0);
}

TEST(RankRouter, LoadsAreWhatIsLiveAndTheChoiceIsNeverTheHeaviest) {
    EXPECT_TRUE(rc::check([](const std::vector<std::uint8_t>& actions) {
        RankRouter router(BalanceMethod::kTotalTokens, 3);
        std::vector<std::pair<std::int32_t, std::int64_t>> live;
        for (const std::uint8_t action : actions) {
            if (action % 3 == 0 && !live.empty()) {
                const std::size_t i = action % live.size();
                router.finish(live[i].first, live[i].second);
                live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
                continue;
            }
            const auto before = router.loads();
            const std::int32_t rank = dispatch(router, action);
            live.emplace_back(rank, action);
            for (const RankLoad& load : before) {
                RC_ASSERT(before[static_cast<std::size_t>(rank)].tokens <= load.tokens);
            }
        }
        for (std::int32_t rank = 0; rank < 3; ++rank) {
            RankLoad sum;
            for (const auto& [r, tokens] : live) {
                sum.requests += r == rank ? 1 : 0;
                sum.tokens += r == rank ? tokens : 0;
            }
            RC_ASSERT(router.loads()[static_cast<std::size_t>(rank)].requests == sum.requests);
            RC_ASSERT(router.loads()[static_cast<std::size_t>(rank)].tokens == sum.tokens);
        }
    }));
}

TEST(BalanceMethod, NamesReadBack) {
    for (const std::string_view name : {"round_robin", "total_requests", "total_tokens"}) {
        EXPECT_EQ(to_string(parse_balance_method(name).value()), name);
    }
    EXPECT_FALSE(parse_balance_method("shortest_queue"));
}

}  // namespace
}  // namespace megamoe::router
