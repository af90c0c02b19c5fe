// The whole engine over the fake model: real rank threads, real waiting, clients on their own threads.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "engine/testing.h"

namespace megamoe::engine {
namespace {

using testing::Answer;
using testing::expected_answer;
using testing::FakeFactory;

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

std::unique_ptr<Engine> start(const EngineConfig& config, testing::ForwardHook hook = {}) {
    auto engine = Engine::start(config, std::make_shared<const FakeFactory>(std::move(hook)));
    if (!engine) {
        ADD_FAILURE() << to_string(engine.error());
        return nullptr;
    }
    return std::move(engine).take();
}

Request make_request(std::uint64_t id, std::int32_t num_prompt, std::int32_t max_tokens) {
    Request request;
    request.id = RequestId{id};
    for (std::int32_t i = 0; i < num_prompt; ++i) {
        request.prompt.push_back(static_cast<std::int32_t>(2 + (id * 5 + static_cast<std::uint64_t>(i)) % 30));
    }
    request.sampling.max_tokens = max_tokens;
    request.sampling.seed = id;
    request.sampling.ignore_eos = true;
    return request;
}

// What clients heard, by request.
class Ears {
  public:
    struct Heard {
        Answer answer;
        Error error;
        std::int32_t rank = -1;
        bool over = false;
    };

    UpdateSink sink(RequestId id) {
        return [this, id](const Update& update) {
            const std::lock_guard lock(mutex_);
            Heard& heard = heard_[raw(id)];
            EXPECT_FALSE(heard.over) << "an update after the last one";
            EXPECT_EQ(raw(update.id), raw(id));
            if (update.token >= 0) {
                heard.answer.tokens.push_back(update.token);
            }
            heard.answer.finish = update.finish;
            heard.error = update.error;
            heard.rank = update.rank;
            heard.over = update.finish != FinishReason::kNone;
            changed_.notify_all();
        };
    }

    Heard wait(RequestId id) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return heard_[raw(id)].over; });
        return heard_[raw(id)];
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::uint64_t, Heard> heard_;
};

// Holds rank 0's decode steps while it is closed.
class Gate {
  public:
    testing::ForwardHook hook() {
        return [this](RankId rank, const step::StepPlan& plan) -> Result<Done> {
            if (raw(rank) == 0 && plan.phase == step::Phase::kDecode) {
                std::unique_lock lock(mutex_);
                held_ = true;
                changed_.notify_all();
                changed_.wait(lock, [this] { return open_; });
            }
            return Done{};
        };
    }
    // Returns while a decode step is in flight.
    void wait_held() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return held_; });
    }
    void open() {
        const std::lock_guard lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
    bool held_ = false;
};

class EngineRanks : public ::testing::TestWithParam<std::int32_t> {};

TEST_P(EngineRanks, AnswersManyClientsFromManyThreadsEachWithItsOwnTokens) {
    const std::int32_t num_ranks = GetParam();
    EngineConfig config = small_config(num_ranks);
    config.max_total_tokens = 160;  // a few requests: they queue, and some are retracted
    std::mutex mutex;
    std::map<std::int64_t, std::set<std::int32_t>> ranks_by_step;
    const auto engine = start(config, [&](RankId rank, const step::StepPlan& plan) -> Result<Done> {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(ranks_by_step[plan.step_no].insert(raw(rank)).second) << "a step ran twice";
        return Done{};
    });
    ASSERT_NE(engine, nullptr);

    Ears ears;
    std::vector<std::thread> clients;
    for (std::uint64_t c = 0; c < 4; ++c) {
        clients.emplace_back([&, c] {
            std::mt19937 random(static_cast<unsigned>(c));
            for (std::uint64_t i = 1; i <= 40; ++i) {
                const RequestId id{100 * (c + 1) + i};
                const Request request = make_request(raw(id), 1 + static_cast<std::int32_t>(random() % 60),
                                                     1 + static_cast<std::int32_t>(random() % 60));
                EXPECT_TRUE(engine->submit(request, ears.sink(id)));
                if (random() % 4 == 0) {
                    (void)ears.wait(id);
                }
            }
        });
    }
    std::int64_t prompt_tokens = 0;
    std::int64_t generated_tokens = 0;
    for (std::thread& client : clients) {
        client.join();
    }
    for (std::uint64_t c = 0; c < 4; ++c) {
        std::mt19937 random(static_cast<unsigned>(c));
        for (std::uint64_t i = 1; i <= 40; ++i) {
            const RequestId id{100 * (c + 1) + i};
            const Request request = make_request(raw(id), 1 + static_cast<std::int32_t>(random() % 60),
                                                 1 + static_cast<std::int32_t>(random() % 60));
            (void)random();
            const Answer want = expected_answer(request);
            const Ears::Heard heard = ears.wait(id);
            EXPECT_EQ(heard.answer.tokens, want.tokens) << "request " << raw(id);
            EXPECT_EQ(heard.answer.finish, want.finish);
            prompt_tokens += want.tokens.empty() ? 0 : std::ssize(request.prompt);
            generated_tokens += std::ssize(want.tokens);
        }
    }

    for (const RankStats& stats : engine->stats()) {
        prompt_tokens -= stats.prompt_tokens;
        generated_tokens -= stats.generated_tokens;
        EXPECT_EQ(stats.free_pages, stats.total_pages);
        EXPECT_EQ(stats.running + stats.waiting, 0);
    }
    EXPECT_EQ(prompt_tokens, 0);
    EXPECT_EQ(generated_tokens, 0);
    engine->shutdown(0);
    EXPECT_EQ(engine->failure(), "");
    for (const auto& [step, ranks] : ranks_by_step) {
        EXPECT_EQ(ranks.size(), static_cast<std::size_t>(num_ranks)) << "step " << step;
    }
    EXPECT_EQ(static_cast<std::int64_t>(ranks_by_step.size()), ranks_by_step.rbegin()->first + 1);
}

INSTANTIATE_TEST_SUITE_P(Sizes, EngineRanks, ::testing::Values(1, 2, 3, 8));

TEST(Engine, GivesRequestsToTheRankWithTheFewestPromptTokensOrToTheOneNamed) {
    Gate gate;  // so that none ends before all are there
    const auto engine = start(small_config(3), gate.hook());
    ASSERT_NE(engine, nullptr);
    Ears ears;
    std::vector<std::int32_t> ranks;
    Request pinned = make_request(1, 10, 100);
    pinned.routed_rank = 1;
    ASSERT_TRUE(engine->submit(pinned, ears.sink(RequestId{1})));
    ASSERT_TRUE(engine->submit(make_request(2, 5, 100), ears.sink(RequestId{2})));
    ASSERT_TRUE(engine->submit(make_request(3, 20, 100), ears.sink(RequestId{3})));
    ASSERT_TRUE(engine->submit(make_request(4, 1, 100), ears.sink(RequestId{4})));
    gate.open();

    for (std::uint64_t id = 1; id <= 4; ++id) {
        ranks.push_back(ears.wait(RequestId{id}).rank);
    }

    EXPECT_EQ(ranks, (std::vector{1, 0, 2, 0}));
}

TEST(Engine, AnAbortEndsARunningRequestAfterTheStepInFlight) {
    Gate gate;
    const auto engine = start(small_config(2), gate.hook());
    ASSERT_NE(engine, nullptr);
    Ears ears;
    const RequestId id{1};
    ASSERT_TRUE(engine->submit(make_request(1, 3, 100), ears.sink(id)));
    gate.wait_held();

    engine->abort(id);
    engine->abort(id);
    gate.open();
    const Ears::Heard heard = ears.wait(id);
    engine->abort(id);

    EXPECT_EQ(heard.answer.finish, FinishReason::kAbort);
    EXPECT_EQ(heard.answer.tokens.size(), 2U);
    EXPECT_EQ(engine->stats()[0].free_pages, engine->stats()[0].total_pages);
}

TEST(Engine, AnIdMayBeUsedAgainAsSoonAsItsRequestIsOver) {
    const auto engine = start(small_config(2));
    ASSERT_NE(engine, nullptr);
    std::latch over(2);
    Result<Done> again = Done{};
    const auto last = [&](const Update& update) {
        if (update.finish != FinishReason::kNone) {
            over.count_down();
        }
    };
    const auto first = [&](const Update& update) {
        if (update.finish != FinishReason::kNone) {
            again = engine->submit(make_request(1, 3, 2), last);  // from within the sink
            over.count_down();
        }
    };

    ASSERT_TRUE(engine->submit(make_request(1, 3, 2), first));
    over.wait();

    EXPECT_TRUE(again);
}

TEST(Engine, RefusesWhatCannotBeServed) {
    const auto engine = start(small_config(2));
    ASSERT_NE(engine, nullptr);
    const auto refusal = [&](const Request& request) {
        const auto result =
            engine->submit(request, [](const Update&) { ADD_FAILURE() << "the sink of a refused request"; });
        return result ? std::string("accepted") : result.error().what;
    };
    Request empty = make_request(1, 0, 5);
    Request foreign = make_request(1, 3, 5);
    foreign.prompt[1] = testing::kVocab;
    Request nowhere = make_request(1, 3, 5);
    nowhere.routed_rank = 2;
    Request hot = make_request(1, 3, 5);
    hot.sampling.temperature = -1;

    EXPECT_EQ(refusal(empty), "the prompt has no tokens");
    EXPECT_EQ(refusal(foreign), "the prompt has token 40, the vocabulary has ids 0 to 39");
    EXPECT_EQ(refusal(nowhere), "routed_rank is 2, there are ranks 0 to 1");
    EXPECT_EQ(refusal(hot), "temperature is -1, must be finite and at least 0");
    EXPECT_EQ(refusal(make_request(1, 150, 51)),
              "the prompt has 150 tokens and max_tokens is 51, together 201; the context holds 200");
}

TEST(Engine, RefusesAPromptLongerThanTheCacheOfARank) {
    EngineConfig config = small_config(1);
    config.max_total_tokens = 80;
    const auto engine = start(config);
    ASSERT_NE(engine, nullptr);

    const auto result = engine->submit(make_request(1, 81, 1), [](const Update&) {});

    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().what, "the prompt has 81 tokens, the cache of a rank holds 80");
}

TEST(Engine, RefusesMoreThanItsQueueHoldsAndIdsInUse) {
    Gate gate;
    EngineConfig config = small_config(1);
    config.max_running_requests = 2;
    config.max_queued_requests = 1;
    const auto engine = start(config, gate.hook());
    ASSERT_NE(engine, nullptr);
    Ears ears;
    for (std::uint64_t id = 1; id <= 2; ++id) {
        ASSERT_TRUE(engine->submit(make_request(id, 3, 50), ears.sink(RequestId{id})));
    }

    const auto twice = engine->submit(make_request(2, 3, 5), [](const Update&) {});
    ASSERT_TRUE(engine->submit(make_request(3, 3, 50), ears.sink(RequestId{3})));
    const auto full = engine->submit(make_request(4, 3, 5), [](const Update&) {});
    gate.open();

    EXPECT_EQ(twice.error().code, Errc::kInvalidArgument);
    EXPECT_EQ(full.error().code, Errc::kResourceExhausted);
    EXPECT_EQ(ears.wait(RequestId{3}).answer.tokens, expected_answer(make_request(3, 3, 50)).tokens);
}

TEST(Engine, ABrokenLogitRowFailsItsRequestAlone) {
    const auto engine = start(small_config(2));
    ASSERT_NE(engine, nullptr);
    Request broken = make_request(1, 2, 5);
    for (std::int32_t i = 0; !expected_answer(broken).tokens.empty(); ++i) {
        ASSERT_LT(i, 100'000);
        broken.prompt = {i % 40, i / 40 % 40, i / 1600};
    }
    Ears ears;
    ASSERT_TRUE(engine->submit(broken, ears.sink(RequestId{1})));
    ASSERT_TRUE(engine->submit(make_request(2, 3, 5), ears.sink(RequestId{2})));

    EXPECT_EQ(ears.wait(RequestId{1}).error.what, "the model's logit of token 3 is nan");
    EXPECT_EQ(ears.wait(RequestId{2}).answer.tokens, expected_answer(make_request(2, 3, 5)).tokens);
    EXPECT_EQ(engine->failure(), "");
}

TEST(Engine, AFailingRankEndsAllRequestsAndStaysFailed) {
    std::atomic<bool> fail = false;
    const auto engine = start(small_config(3), [&](RankId rank, const step::StepPlan&) -> Result<Done> {
        if (fail && raw(rank) == 1) {
            return Error{Errc::kInternal, "device lost", {}};
        }
        return Done{};
    });
    ASSERT_NE(engine, nullptr);
    Ears ears;
    fail = true;
    std::int32_t accepted = 0;
    for (std::uint64_t id = 1; id <= 9; ++id) {
        accepted += engine->submit(make_request(id, 5, 50), ears.sink(RequestId{id})) ? 1 : 0;
        if (id == 1) {
            EXPECT_EQ(ears.wait(RequestId{1}).answer.finish, FinishReason::kError);  // whichever rank it was on
        }
    }

    EXPECT_EQ(accepted, 1);
    EXPECT_EQ(engine->failure(), "rank 1: device lost");
    const auto late = engine->submit(make_request(20, 5, 5), [](const Update&) {});
    EXPECT_EQ(late.error().code, Errc::kUnavailable);
    EXPECT_EQ(late.error().what, "rank 1: device lost");
    engine->shutdown(1000);
}

TEST(Engine, ARankThatFailsWithRequestsWaitingEverywhereLeavesNoneWithoutAnAnswer) {
    Gate gate;
    std::atomic<bool> fail = false;
    const auto engine =
        start(small_config(2), [&, held = gate.hook()](RankId rank, const step::StepPlan& plan) -> Result<Done> {
            MM_TRY_DONE(held(rank, plan));
            return fail ? Result<Done>(Error{Errc::kInternal, "device lost", {}}) : Result<Done>(Done{});
        });
    ASSERT_NE(engine, nullptr);
    Ears ears;
    for (std::uint64_t id = 1; id <= 20; ++id) {  // running, waiting, and still in the box
        ASSERT_TRUE(engine->submit(make_request(id, 5, 50), ears.sink(RequestId{id})));
    }
    gate.wait_held();

    fail = true;
    gate.open();

    for (std::uint64_t id = 1; id <= 20; ++id) {
        const Ears::Heard heard = ears.wait(RequestId{id});
        EXPECT_EQ(heard.answer.finish, FinishReason::kError);
        EXPECT_NE(heard.error.what.find("device lost"), std::string::npos);
    }
}

TEST(Engine, ARankThatStopsComingIsNamedWhenTheWaitRunsOut) {
    Gate gate;
    EngineConfig config = small_config(2);
    config.exchange_timeout_ms = 50;
    const auto engine = start(config, gate.hook());
    ASSERT_NE(engine, nullptr);
    Ears ears;
    Request request = make_request(1, 5, 50);
    request.routed_rank = 1;
    ASSERT_TRUE(engine->submit(request, ears.sink(RequestId{1})));

    EXPECT_EQ(ears.wait(RequestId{1}).answer.finish, FinishReason::kError);

    EXPECT_NE(engine->failure().find("timed out after 50 ms; missing: rank 0 (last in"), std::string::npos)
        << engine->failure();
    gate.open();
}

TEST(Engine, DoesNotStartWhenTheWarmUpFails) {
    const auto hook = [](RankId rank, const step::StepPlan&) -> Result<Done> {
        return raw(rank) == 1 ? Result<Done>(Error{Errc::kInternal, "no such kernel", {}}) : Result<Done>(Done{});
    };

    const auto engine = Engine::start(small_config(2), std::make_shared<const FakeFactory>(hook));

    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().code, Errc::kUnavailable);
    EXPECT_NE(engine.error().what.find("rank 1: no such kernel"), std::string::npos) << engine.error().what;
}

TEST(Engine, ShutdownDrainsAndThenRefuses) {
    const auto engine = start(small_config(2));
    ASSERT_NE(engine, nullptr);
    Ears ears;
    for (std::uint64_t id = 1; id <= 10; ++id) {
        ASSERT_TRUE(engine->submit(make_request(id, 5, 20), ears.sink(RequestId{id})));
    }

    engine->shutdown(60'000);
    engine->shutdown(0);

    for (std::uint64_t id = 1; id <= 10; ++id) {
        EXPECT_EQ(ears.wait(RequestId{id}).answer.tokens, expected_answer(make_request(id, 5, 20)).tokens);
    }
    const auto late = engine->submit(make_request(20, 5, 5), [](const Update&) {});
    EXPECT_EQ(late.error().what, "the engine is shutting down");
}

TEST(Engine, ShutdownWithoutPatienceAbortsWhatIsLeft) {
    Gate gate;
    const auto engine = start(small_config(2), gate.hook());
    ASSERT_NE(engine, nullptr);
    Ears ears;
    for (std::uint64_t id = 1; id <= 20; ++id) {
        ASSERT_TRUE(engine->submit(make_request(id, 5, 100), ears.sink(RequestId{id})));
    }
    gate.wait_held();

    std::thread stopper([&] { engine->shutdown(0); });
    gate.open();
    stopper.join();

    for (std::uint64_t id = 1; id <= 20; ++id) {
        EXPECT_NE(ears.wait(RequestId{id}).answer.finish, FinishReason::kNone);
    }
}

}  // namespace
}  // namespace megamoe::engine
