// The whole engine over a real model: each request gets the same tokens whatever runs beside it, on any number of
// ranks, under any memory pressure.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <random>
#include <vector>

#include "engine/engine.h"
#include "model/testing.h"

namespace megamoe::engine {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr int kRequests = 24;

Request make_request(int index) {
    std::mt19937 rng(static_cast<std::uint32_t>(index));
    const auto& g = model::testing::tiny()->geometry();
    Request out;
    out.id = RequestId{static_cast<std::uint64_t>(index + 1)};
    out.prompt = model::testing::random_tokens(g, 1 + rng() % 90, static_cast<std::uint32_t>(rng()));
    out.sampling.max_tokens = static_cast<std::int32_t>(1 + rng() % 40);
    out.sampling.temperature = index % 2 == 0 ? 0.0F : 0.9F;
    out.sampling.top_p = 0.95F;
    out.sampling.seed = rng();
    out.sampling.ignore_eos = true;
    out.sampling.presence_penalty = index % 3 == 0 ? 0.5F : 0.0F;
    return out;
}

// Tokens of all requests, submitted at once.
std::vector<Ids> run(const EngineConfig& config) {
    auto engine = Engine::start(config, model::testing::tiny());
    MM_CHECK(static_cast<bool>(engine), engine ? "" : to_string(engine.error()));
    std::vector<Ids> out(kRequests);
    std::mutex mutex;
    std::condition_variable done;
    int open = kRequests;
    for (int i = 0; i < kRequests; ++i) {
        const auto submitted = engine.value()->submit(make_request(i), [&, i](const Update& update) {
            const std::lock_guard lock(mutex);
            MM_CHECK(update.finish != FinishReason::kError, to_string(update.error));
            if (update.token >= 0) {
                out[static_cast<std::size_t>(i)].push_back(update.token);
            }
            if (update.finish != FinishReason::kNone && --open == 0) {
                done.notify_one();
            }
        });
        MM_CHECK(static_cast<bool>(submitted), submitted ? "" : to_string(submitted.error()));
    }
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return open == 0; });
    return out;
}

EngineConfig base_config() {
    EngineConfig config;
    config.page_size = 32;
    config.chunked_prefill_size = 512;
    config.context_length = 256;
    config.max_total_tokens = 4096;
    config.threads_per_rank = 1;
    return config;
}

class EngineRanks : public ::testing::TestWithParam<Profile> {};

TEST_P(EngineRanks, EachRequestGetsTheTokensItGetsAlone) {
    EngineConfig alone = base_config();
    alone.profile = GetParam();
    alone.max_running_requests = 1;
    const auto want = run(alone);
    for (int i = 0; i < kRequests; ++i) {
        EXPECT_EQ(static_cast<std::int32_t>(want[static_cast<std::size_t>(i)].size()),
                  make_request(i).sampling.max_tokens);
    }

    for (const std::int32_t ranks : {1, 2, 4, 8}) {
        EngineConfig together = base_config();
        together.profile = GetParam();
        together.num_ranks = ranks;
        EXPECT_EQ(run(together), want) << ranks << " ranks";

        EngineConfig tight = together;  // chunks that split windows, and pages for about two requests a rank
        tight.chunked_prefill_size = 17 * ranks;
        tight.max_total_tokens = 320;
        tight.moe_backend = MoeBackend::kReference;
        EXPECT_EQ(run(tight), want) << ranks << " ranks, little memory";
    }
}

INSTANTIATE_TEST_SUITE_P(Profiles, EngineRanks, ::testing::Values(Profile::kHf, Profile::kDs),
                         [](const auto& profile) { return profile.param == Profile::kHf ? "hf" : "ds"; });

}  // namespace
}  // namespace megamoe::engine
