#include "frontend/router/dispatcher.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "frontend/testing/scripted_backend.h"

namespace megamoe::router {
namespace {

using frontend::testing::ScriptedBackend;

// The I/O thread's queue, run by hand.
struct Loop {
    std::vector<std::function<void()>> tasks;

    void run() {
        for (const auto& task : std::exchange(tasks, {})) {
            task();
        }
    }
};

struct Recorder final : UpdateListener {
    std::vector<std::pair<std::int32_t, std::int32_t>> tokens;  // tag, token
    std::vector<engine::FinishReason> ends;

    void on_update(std::int32_t tag, engine::Update update) override {
        if (update.token >= 0) {
            tokens.emplace_back(tag, update.token);
        }
        if (update.finish != engine::FinishReason::kNone) {
            ends.push_back(update.finish);
        }
    }
};

class DispatcherTest : public ::testing::Test {
  protected:
    Result<RequestId> submit(std::vector<std::int32_t> prompt, std::int32_t max_tokens, std::int32_t tag = 0) {
        engine::Request request{.prompt = std::move(prompt), .sampling = {}};
        request.sampling.max_tokens = max_tokens;
        return dispatcher_.submit(std::move(request), recorder_, tag);
    }
    std::int64_t routed_tokens() const {
        std::int64_t sum = 0;
        for (const RankLoad& load : dispatcher_.rank_router().loads()) {
            sum += load.tokens;
        }
        return sum;
    }

    Loop loop_;
    ScriptedBackend backend_{2};
    std::shared_ptr<Recorder> recorder_ = std::make_shared<Recorder>();
    Dispatcher dispatcher_{backend_, BalanceMethod::kTotalTokens, 2,
                           [this](std::function<void()> task) { loop_.tasks.push_back(std::move(task)); }};
};

TEST_F(DispatcherTest, UpdatesArriveInOrderWithTheirTag) {
    ASSERT_TRUE(submit({7, 8, 9}, 3, /*tag=*/5));

    while (backend_.step()) {
    }
    loop_.run();

    EXPECT_EQ(recorder_->tokens, (std::vector<std::pair<std::int32_t, std::int32_t>>{{5, 7}, {5, 8}, {5, 9}}));
    EXPECT_EQ(recorder_->ends, std::vector{engine::FinishReason::kLength});
    EXPECT_EQ(dispatcher_.num_live(), 0U);
}

TEST_F(DispatcherTest, ManyUpdatesMakeOneTask) {
    ASSERT_TRUE(submit({1, 2, 3}, 100));

    while (backend_.step()) {
    }

    EXPECT_EQ(loop_.tasks.size(), 1U);
}

TEST_F(DispatcherTest, ACancelledRequestIsSilentAndCountsUntilTheEngineLetsGo) {
    const auto id = submit({1, 2, 3}, 100);
    backend_.step();

    dispatcher_.cancel(id.value());
    dispatcher_.cancel(id.value());

    EXPECT_EQ(dispatcher_.num_live(), 1U);
    EXPECT_EQ(backend_.num_live(), 0U);
    loop_.run();
    EXPECT_EQ(dispatcher_.num_live(), 0U);
    EXPECT_TRUE(recorder_->tokens.empty());
    EXPECT_TRUE(recorder_->ends.empty());
    EXPECT_EQ(routed_tokens(), 0);
}

TEST_F(DispatcherTest, AnAbortedRequestReportsItsEnd) {
    const auto id = submit({1, 2, 3}, 100);

    dispatcher_.abort(id.value());
    loop_.run();

    EXPECT_EQ(recorder_->ends, std::vector{engine::FinishReason::kAbort});
}

TEST_F(DispatcherTest, ARefusedRequestLeavesNoTrace) {
    backend_.refuse_with({Errc::kResourceExhausted, "the queue is full", {}});

    const auto refused = submit({1, 2, 3}, 10);

    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().what, "the queue is full");
    EXPECT_EQ(dispatcher_.num_live(), 0U);
    EXPECT_EQ(routed_tokens(), 0);
}

TEST_F(DispatcherTest, LoadsGrowWithTokensAndFallAtTheEnd) {
    ASSERT_TRUE(submit({1, 2, 3}, 3));
    ASSERT_TRUE(submit({1, 2, 3}, 2));
    EXPECT_EQ(routed_tokens(), 6);
    backend_.step();
    loop_.run();
    EXPECT_EQ(routed_tokens(), 8);

    while (backend_.step()) {
    }
    loop_.run();

    EXPECT_EQ(routed_tokens(), 0);
}

TEST_F(DispatcherTest, SaysWhenTheLastRequestIsGone) {
    int idle = 0;
    dispatcher_.on_idle([&] { ++idle; });
    ASSERT_TRUE(submit({1}, 1));
    ASSERT_TRUE(submit({1}, 2));

    while (backend_.step()) {
        loop_.run();
    }

    EXPECT_EQ(idle, 1);
}

TEST(Dispatcher, ALateUpdateAfterItsEndIsDropped) {
    Loop loop;
    ScriptedBackend backend;
    auto dispatcher = std::make_unique<Dispatcher>(backend, BalanceMethod::kRoundRobin, 1,
                                                   [&](std::function<void()> task) { loop.tasks.push_back(task); });
    ASSERT_TRUE(dispatcher->submit({.prompt = {1}, .sampling = {}}, std::make_shared<Recorder>(), 0));

    dispatcher.reset();
    backend.step();

    EXPECT_TRUE(loop.tasks.empty());
}

}  // namespace
}  // namespace megamoe::router
