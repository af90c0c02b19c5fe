#include "engine/engine_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/testing.h"

namespace megamoe::engine {
namespace {

using testing::FakeFactory;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

EngineConfig small_config(std::int32_t num_ranks) {
    EngineConfig config;
    config.num_ranks = num_ranks;
    config.page_size = 8;
    config.max_running_requests = 4 * num_ranks;
    config.chunked_prefill_size = 24 * num_ranks;
    config.context_length = 200;
    config.max_total_tokens = 400;
    return config;
}

TEST(EnginePlan, DividesGlobalSettingsAmongRanks) {
    EngineConfig config = small_config(4);
    config.max_running_requests = 22;
    config.chunked_prefill_size = 100;
    const FakeFactory factory;

    const EnginePlan plan = make_engine_plan(config, factory, kGiB).take();

    EXPECT_EQ(plan.scheduler.max_running, 5);
    EXPECT_EQ(plan.scheduler.max_prefill_rows, 25);
    EXPECT_EQ(plan.policy.max_tokens_per_rank, 32);
    EXPECT_EQ(plan.pools.token_capacity, 400);
    EXPECT_EQ(plan.pools.sizes.state_slots, 6);
    EXPECT_NE(to_string(plan).find("5 running requests, 25 prefill rows a step, 32 rows at most"), std::string::npos);
}

TEST(EnginePlan, SpendsTheGivenFractionOfFreeMemoryOnTheCache) {
    EngineConfig config = small_config(2);
    config.max_total_tokens = 0;
    config.context_length = 100'000;
    config.max_running_requests = 2000;
    config.mem_fraction = 0.25;
    const FakeFactory factory;
    constexpr std::int64_t kFree = 64 << 20;

    const EnginePlan plan = make_engine_plan(config, factory, kFree).take();

    const std::int64_t cache = plan.pools.total_bytes() * 2;
    EXPECT_LE(cache, kFree / 4);
    EXPECT_GT(cache, kFree / 5);
    EXPECT_LE(plan.total_bytes(), kFree);
}

TEST(EnginePlan, RefusesMoreThanIsFreeAndShowsThePlan) {
    EngineConfig config = small_config(2);
    config.max_total_tokens = 10'000'000;
    config.context_length = 100'000;
    config.max_running_requests = 200;
    const FakeFactory factory;

    const auto plan = make_engine_plan(config, factory, 1 << 20);

    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Errc::kResourceExhausted);
    EXPECT_NE(plan.error().what.find("but 1.00 MiB are free"), std::string::npos) << plan.error().what;
    EXPECT_NE(plan.error().what.find("token pages"), std::string::npos);
}

TEST(EnginePlan, RefusesSettingsOutOfRange) {
    const FakeFactory factory;
    const auto refused = [&](auto change) {
        EngineConfig config = small_config(2);
        change(config);
        const auto plan = make_engine_plan(config, factory, kGiB);
        return !plan && plan.error().code == Errc::kInvalidArgument;
    };

    EXPECT_TRUE(refused([](EngineConfig& c) { c.num_ranks = 0; }));
    EXPECT_TRUE(refused([](EngineConfig& c) { c.num_ranks = 65; }));
    EXPECT_TRUE(refused([](EngineConfig& c) { c.chunked_prefill_size = 0; }));
    EXPECT_TRUE(refused([](EngineConfig& c) { c.max_running_requests = 0; }));
    EXPECT_TRUE(refused([](EngineConfig& c) { c.context_length = 200'000; }));
    EXPECT_TRUE(refused([](EngineConfig& c) { c.page_size = 12; }));
    EXPECT_TRUE(refused([](EngineConfig& c) { c.max_total_tokens = -1; }));
    EXPECT_TRUE(refused([](EngineConfig& c) { c.max_total_tokens = 0, c.mem_fraction = 0; }));
}

}  // namespace
}  // namespace megamoe::engine
