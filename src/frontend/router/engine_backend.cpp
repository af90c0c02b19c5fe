#include "frontend/router/engine_backend.h"

#include <utility>

namespace megamoe::router {

Result<Done> EngineBackend::submit(engine::Request request, engine::UpdateSink sink) {
    if (engine::Engine* const target = engine()) {
        return target->submit(std::move(request), std::move(sink));
    }
    return Error{Errc::kUnavailable, "the model is still loading", "wait until /health answers 200"};
}

void EngineBackend::abort(RequestId id) {
    if (engine::Engine* const target = engine()) {
        target->abort(id);
    }
}

Phase EngineBackend::phase() const {
    const engine::Engine* const target = engine();
    if (target == nullptr) {
        return Phase::kStarting;
    }
    return target->failure().empty() ? Phase::kReady : Phase::kFailed;
}

std::string EngineBackend::failure() const {
    const engine::Engine* const target = engine();
    return target == nullptr ? std::string() : target->failure();
}

std::vector<engine::RankStats> EngineBackend::stats() const {
    const engine::Engine* const target = engine();
    return target == nullptr ? std::vector<engine::RankStats>() : target->stats();
}

}  // namespace megamoe::router
