// What the server needs of an engine, as a port: the real one sits behind EngineBackend, tests put a scripted one
// there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/request.h"

namespace megamoe::router {

enum class Phase : std::uint8_t {
    kStarting,  // no requests yet
    kReady,
    kFailed,  // for good; failure() says why
};

class Backend {
  public:
    virtual ~Backend() = default;

    // The sink may be called before submit() returns, from any thread; a refused request's sink is never called.
    // Error as engine::Engine::submit; kUnavailable also before the engine is ready
    [[nodiscard]] virtual Result<Done> submit(engine::Request request, engine::UpdateSink sink) = 0;

    // Ends a request with FinishReason::kAbort; unknown or finished ids are ignored. Thread: any.
    virtual void abort(RequestId id) = 0;

    virtual Phase phase() const = 0;
    // Empty unless kFailed, then what failed on which rank.
    virtual std::string failure() const = 0;
    // One entry a rank; empty before the engine is ready.
    virtual std::vector<engine::RankStats> stats() const = 0;
};

}  // namespace megamoe::router
