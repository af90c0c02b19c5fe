// Backend over engine::Engine. Exists before the engine does, so that the port can be open while weights load.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "frontend/router/backend.h"

namespace megamoe::router {

// Does not own the engine: attach() it when it is ready. It must outlive the server that uses this backend.
class EngineBackend final : public Backend {
  public:
    // Phase goes from kStarting to kReady. Call once. Thread: any.
    void attach(engine::Engine& engine) { engine_.store(&engine, std::memory_order_release); }

    [[nodiscard]] Result<Done> submit(engine::Request request, engine::UpdateSink sink) override;
    void abort(RequestId id) override;
    Phase phase() const override;
    std::string failure() const override;
    std::vector<engine::RankStats> stats() const override;

  private:
    engine::Engine* engine() const { return engine_.load(std::memory_order_acquire); }

    std::atomic<engine::Engine*> engine_{nullptr};
};

}  // namespace megamoe::router
