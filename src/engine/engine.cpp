#include "engine/engine.h"

#include <fmt/format.h>

#include <latch>
#include <limits>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/memory.h"
#include "comm/rank_threads.h"
#include "comm/symmetric_heap.h"
#include "engine/dispatcher.h"
#include "engine/engine_plan.h"
#include "engine/rank.h"

namespace megamoe::engine {

struct Engine::State {
    State(const EngineConfig& engine_config, EnginePlan engine_plan,
          std::shared_ptr<const ForwardFactory> forward_factory)
        : config(engine_config),
          plan(std::move(engine_plan)),
          factory(std::move(forward_factory)),
          group(config.num_ranks, {.timeout_ms = config.exchange_timeout_ms}),
          dispatcher(plan, group) {}

    Result<Done> serve(const comm::RankContext& context);
    Result<Done> run(const comm::RankContext& context);
    Error fail(const comm::RankContext& context, const Error& why);
    Result<Done> warm_up();

    const EngineConfig config;
    const EnginePlan plan;
    const std::shared_ptr<const ForwardFactory> factory;
    comm::RankGroup group;
    comm::SymmetricHeap heap;
    Dispatcher dispatcher;
    std::mutex shutdown_mutex;
    std::unique_ptr<comm::RankThreads> threads;  // last: joined before anything they use goes
};

// The life of one rank thread. However it ends, no request is left without a last update.
Result<Done> Engine::State::run(const comm::RankContext& context) {
    const Result<Done> result = serve(context);
    const Error why =
        result ? Error{Errc::kUnavailable, "the engine has shut down", {}} : fail(context, result.error());
    dispatcher.mailbox(context.rank).close(raw(context.rank), why);
    if (!result) {
        log::error("rank ended: " + to_string(why));
    }
    return result;
}

Result<Done> Engine::State::serve(const comm::RankContext& context) {
    MM_TRY(const auto pools, kv::Pools::create(plan.layout, plan.pools.sizes));
    MM_TRY(const auto port, factory->create(context, *pools, plan.limits));
    RankConfig rank_config{.scheduler = plan.scheduler, .vocab_size = plan.vocab_size};
    rank_config.scheduler.rank = raw(context.rank);
    Rank rank(rank_config, *pools, *port, dispatcher.mailbox(context.rank));
    Result<Done> result = run_rank(context, rank, plan.policy);
    if (!result) {
        rank.fail_all(fail(context, result.error()));
    }
    return result;
}

// Ends the others' waits and returns the failure of the whole group. Comes before any client hears of it, so that who
// does finds the engine failed.
Error Engine::State::fail(const comm::RankContext& context, const Error& why) {
    group.poison(context.rank, why);
    return *group.failure();
}

// One short request through every rank, so that whatever breaks breaks before the first client does.
Result<Done> Engine::State::warm_up() {
    struct Outcome {
        explicit Outcome(std::int32_t num_ranks) : open(num_ranks) {}
        std::latch open;
        std::mutex mutex;
        std::optional<Error> error;
    };
    const auto outcome = std::make_shared<Outcome>(plan.num_ranks);
    for (std::int32_t r = 0; r < plan.num_ranks; ++r) {
        Request request{.id = RequestId{std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(r)},
                        .prompt = {factory->geometry().bos_id}};
        request.sampling.temperature = 0;
        request.sampling.max_tokens = 1;
        request.routed_rank = r;
        MM_TRY_DONE(dispatcher.submit(std::move(request), [outcome](const Update& update) {
            if (update.finish == FinishReason::kError) {
                const std::lock_guard lock(outcome->mutex);
                outcome->error = update.error;
            }
            outcome->open.count_down();  // the only update: one token
        }));
    }
    outcome->open.wait();
    const std::lock_guard lock(outcome->mutex);
    if (outcome->error) {
        return Error{Errc::kUnavailable, "the warm-up failed: " + outcome->error->what, outcome->error->hint};
    }
    return Done{};
}

Result<std::unique_ptr<Engine>> Engine::start(const EngineConfig& config,
                                              std::shared_ptr<const ForwardFactory> factory) {
    MM_TRY(EnginePlan plan, make_engine_plan(config, *factory, available_memory_bytes()));
    const std::string text = to_string(plan);
    for (std::string_view rest = text; !rest.empty();) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        log::info(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    std::unique_ptr<Engine> engine(new Engine(std::make_unique<State>(config, std::move(plan), std::move(factory))));
    State& state = *engine->state_;
    state.threads = std::make_unique<comm::RankThreads>(
        state.group, state.heap, [&state](const comm::RankContext& context) { return state.run(context); });
    MM_TRY_DONE(state.warm_up());
    state.dispatcher.rebase_stats();
    log::info(fmt::format("engine ready, {} ranks warm", state.plan.num_ranks));
    return engine;
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}

Engine::~Engine() {
    shutdown(0);
}

Result<Done> Engine::submit(Request request, UpdateSink sink) {
    return state_->dispatcher.submit(std::move(request), std::move(sink));
}

void Engine::abort(RequestId id) {
    state_->dispatcher.abort(id);
}

void Engine::shutdown(std::int64_t drain_ms) {
    State& state = *state_;
    const std::lock_guard lock(state.shutdown_mutex);
    if (!state.threads) {
        return;
    }
    state.dispatcher.close();
    if (!state.dispatcher.wait_until_empty(drain_ms)) {
        state.dispatcher.abort_all();
        state.dispatcher.wait_until_empty(-1);
    }
    state.dispatcher.stop_ranks();
    state.threads.reset();
}

std::string Engine::failure() const {
    const std::optional<Error> failure = state_->group.failure();
    return failure ? to_string(*failure) : std::string();
}

std::vector<RankStats> Engine::stats() const {
    return state_->dispatcher.stats();
}

const EngineConfig& Engine::config() const {
    return state_->config;
}

std::string Engine::memory_plan() const {
    return to_string(state_->plan);
}

}  // namespace megamoe::engine
