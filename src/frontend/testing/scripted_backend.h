// A Backend without a model, for tests: each request gets a script of tokens, one a step, and the test makes the steps.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontend/router/backend.h"

namespace megamoe::frontend::testing {

// Echoes by default: the answer is the prompt, over and over, until max_tokens. Keeps a record of what was asked.
// Thread  any
class ScriptedBackend final : public router::Backend {
  public:
    using Script = std::function<std::vector<std::int32_t>(const engine::Request& request)>;

    explicit ScriptedBackend(std::int32_t num_ranks = 1) : num_ranks_(num_ranks) {}

    ~ScriptedBackend() override { stop_running(); }

    // Before the first request. What a script does not cover ends with kStop, at `stop_token` if that is >= 0.
    void set_script(Script script, std::int32_t stop_token = -1) {
        script_ = std::move(script);
        stop_token_ = stop_token;
    }

    // One token for each live request; ended ones leave. False: none was live.
    bool step() {
        std::unique_lock lock(mutex_);
        std::vector<std::pair<engine::UpdateSink, engine::Update>> news;
        for (auto it = live_.begin(); it != live_.end();) {
            engine::Update update = next_update(it->second);
            const bool ends = update.finish != engine::FinishReason::kNone;
            news.emplace_back(it->second.sink, std::move(update));
            it = ends ? live_.erase(it) : std::next(it);
        }
        lock.unlock();
        for (auto& [sink, update] : news) {
            sink(std::move(update));
        }
        return !news.empty();
    }

    // Steps on a thread of its own, as fast as it can, until stop_running().
    void run() {
        thread_ = std::thread([this] {
            std::unique_lock lock(mutex_);
            while (!stopping_) {
                changed_.wait(lock, [this] { return stopping_ || !live_.empty(); });
                lock.unlock();
                step();
                lock.lock();
            }
        });
    }

    void stop_running() {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    // From now on submit() answers with this.
    void refuse_with(Error error) {
        const std::lock_guard lock(mutex_);
        refusal_ = std::move(error);
    }

    // All live requests end with kError, and the phase is kFailed.
    void fail(const std::string& why) {
        std::unique_lock lock(mutex_);
        failure_ = why;
        phase_ = router::Phase::kFailed;
        const auto lost = std::exchange(live_, {});
        lock.unlock();
        for (const auto& [id, live] : lost) {
            live.sink({.id = live.request.id,
                       .finish = engine::FinishReason::kError,
                       .error = {Errc::kUnavailable, why, {}}});
        }
    }

    void set_phase(router::Phase phase) {
        const std::lock_guard lock(mutex_);
        phase_ = phase;
    }

    // Blocks until `count` requests were ever submitted, and returns all of them.
    std::vector<engine::Request> wait_submitted(std::size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return submitted_.size() >= count; });
        return submitted_;
    }

    // Blocks until `count` live requests were ever aborted.
    void wait_aborted(std::size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return num_aborted_ >= count; });
    }

    std::size_t num_live() const {
        const std::lock_guard lock(mutex_);
        return live_.size();
    }

    Result<Done> submit(engine::Request request, engine::UpdateSink sink) override {
        const std::lock_guard lock(mutex_);
        if (refusal_) {
            return *refusal_;
        }
        submitted_.push_back(request);
        Live live{.request = std::move(request), .sink = std::move(sink), .script = {}};
        live.script = script_ ? script_(live.request) : echo(live.request);
        live_.emplace(raw(live.request.id), std::move(live));
        changed_.notify_all();
        return Done{};
    }

    void abort(RequestId id) override {
        std::unique_lock lock(mutex_);
        const auto found = live_.find(raw(id));
        if (found == live_.end()) {
            return;
        }
        const engine::UpdateSink sink = std::move(found->second.sink);
        live_.erase(found);
        ++num_aborted_;
        changed_.notify_all();
        lock.unlock();
        sink({.id = id, .finish = engine::FinishReason::kAbort});
    }

    router::Phase phase() const override {
        const std::lock_guard lock(mutex_);
        return phase_;
    }

    std::string failure() const override {
        const std::lock_guard lock(mutex_);
        return failure_;
    }

    std::vector<engine::RankStats> stats() const override {
        const std::lock_guard lock(mutex_);
        std::vector<engine::RankStats> ranks(static_cast<std::size_t>(num_ranks_));
        for (const auto& [id, live] : live_) {
            ranks[static_cast<std::size_t>(*live.request.routed_rank)].running += 1;
        }
        return ranks;
    }

  private:
    struct Live {
        engine::Request request;
        engine::UpdateSink sink;
        std::vector<std::int32_t> script;
        std::size_t sent = 0;
    };

    static std::vector<std::int32_t> echo(const engine::Request& request) {
        std::vector<std::int32_t> script;
        for (std::int32_t i = 0; i < request.sampling.max_tokens; ++i) {
            script.push_back(request.prompt[static_cast<std::size_t>(i) % request.prompt.size()]);
        }
        return script;
    }

    engine::Update next_update(Live& live) const {
        const engine::SamplingParams& sampling = live.request.sampling;
        engine::Update update{.id = live.request.id, .rank = *live.request.routed_rank, .error = {}};
        if (live.sent < live.script.size()) {
            update.token = live.script[live.sent++];
        } else {
            update.token = stop_token_;
            update.stop_token = stop_token_;
            update.finish = engine::FinishReason::kStop;
            return update;
        }
        if (sampling.num_logprobs >= 0) {
            update.logprob = {update.token, -0.5F};
            for (std::int32_t i = 0; i < sampling.num_logprobs; ++i) {
                update.top_logprobs.push_back({update.token + i, -0.5F - static_cast<float>(i)});
            }
        }
        if (live.sent == static_cast<std::size_t>(sampling.max_tokens)) {
            update.finish = engine::FinishReason::kLength;
        }
        return update;
    }

    const std::int32_t num_ranks_;
    Script script_;
    std::int32_t stop_token_ = -1;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::uint64_t, Live> live_;
    std::vector<engine::Request> submitted_;
    std::size_t num_aborted_ = 0;
    std::optional<Error> refusal_;
    router::Phase phase_ = router::Phase::kReady;
    std::string failure_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace megamoe::frontend::testing
