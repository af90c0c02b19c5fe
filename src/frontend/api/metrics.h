// What /metrics shows: request timings measured here, and the ranks' own counts. Prometheus text format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/request.h"
#include "frontend/router/rank_router.h"

namespace megamoe::api {

// A value that was never measured is absent, not 0. Health probes are not counted.
// Thread  any
// Spec  serving spec, 10.1 and 10.2
class Metrics {
  public:
    explicit Metrics(const std::string& model_name);
    ~Metrics();

    void observe_first_token(double seconds);  // since the request's arrival
    // `tokens` that came together, `seconds` after the ones before.
    void observe_tokens(double seconds, std::int32_t tokens);
    // The last byte was handed over. One call a choice.
    void observe_end(double seconds, engine::FinishReason reason);
    void count_response(int status);

    struct Snapshot {
        bool ready = false;
        std::vector<engine::RankStats> ranks;
        std::vector<router::RankLoad> loads;
    };
    std::string render(const Snapshot& snapshot) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace megamoe::api
