// The engine: R ranks that step together over one loaded model. Submit token ids, receive token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/engine_config.h"
#include "engine/request.h"

namespace megamoe::model {
class LoadedModel;
}

namespace megamoe::engine {

class ForwardFactory;

// Counters are since start, without the warm-up.
struct RankStats {
    std::int32_t running = 0;
    std::int32_t waiting = 0;
    std::int64_t free_pages = 0;
    std::int64_t total_pages = 0;
    std::int64_t prompt_tokens = 0;
    std::int64_t generated_tokens = 0;
    std::int64_t extend_steps = 0;
    std::int64_t decode_steps = 0;
    std::int64_t idle_steps = 0;
    std::int64_t retractions = 0;
};

class Engine {
  public:
    // Plans memory, checks it against what is free, allocates, starts the rank threads and runs one request through
    // every rank; ready when it returns. The second form takes any model behind the port.
    //
    // Error kInvalidArgument: a setting; kResourceExhausted: the memory plan does not fit (the plan is in the text);
    //       kUnavailable: a rank failed, with its reason
    [[nodiscard]] static Result<std::unique_ptr<Engine>> start(const EngineConfig& config,
                                                               std::shared_ptr<const model::LoadedModel> model);
    [[nodiscard]] static Result<std::unique_ptr<Engine>> start(const EngineConfig& config,
                                                               std::shared_ptr<const ForwardFactory> factory);
    ~Engine();  // shutdown(0)

    // Without routed_rank it goes to the rank with the fewest prompt tokens. The sink may be called before it returns.
    //
    // Error kInvalidArgument: prompt empty, too long for the context (both lengths named) or for a rank's cache, an id
    //       outside the vocabulary, sampling values, an id in use; kResourceExhausted: queue full; kUnavailable:
    //       draining or failed
    // Thread  any
    [[nodiscard]] Result<Done> submit(Request request, UpdateSink sink);

    // Ends a request with kAbort; unknown or finished ids are ignored. Thread: any.
    void abort(RequestId id);

    // Stops taking requests, waits up to drain_ms for the live ones, aborts the rest, joins the ranks. Idempotent.
    // Thread  any but a rank's: not from a sink
    void shutdown(std::int64_t drain_ms);

    // Sticky: empty while healthy, else what failed on which rank.
    std::string failure() const;
    std::vector<RankStats> stats() const;
    const EngineConfig& config() const;
    // Effective sizes and bytes by purpose, as logged at start.
    std::string memory_plan() const;

  private:
    struct State;
    explicit Engine(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace megamoe::engine
