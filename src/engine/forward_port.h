// What the engine needs from a model: one forward over a rank's rows. The step loop knows nothing else of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/rank_group.h"
#include "config/model_geometry.h"
#include "kv/pools.h"
#include "step/step_plan.h"

namespace megamoe::engine {

// New tokens of one request, at positions start .. start + tokens.size() - 1.
struct Segment {
    const kv::Sequence* seq = nullptr;     // length() == start; pages for all new positions are reserved
    std::span<const std::int32_t> tokens;  // >= 1
    std::int32_t start = 0;
    bool want_logits = false;  // of the last token
};

// The model as one rank sees it. Thread: the rank's own.
class ForwardPort {
  public:
    virtual ~ForwardPort() = default;

    // Runs one step; every rank calls it with the same plan. The segments' tokens sum to plan.run[rank]. An idle rank
    // passes one dummy segment (token 0 at position 0 of the dummy sequence): it takes part in every collective, but
    // its row (>= plan.real[rank]) reaches no expert and no live page.
    //
    // Out   logits [plan.logit[rank], vocab_size]: one row a segment that wants them, in order
    // Error anything: fatal for the whole engine
    [[nodiscard]] virtual Result<Done> forward(std::span<const Segment> segments, const step::StepPlan& plan,
                                               std::span<float> logits) = 0;
};

// Bounds of one step on one rank.
struct ForwardLimits {
    std::int32_t num_ranks = 1;
    std::int32_t max_tokens_per_rank = 1;  // rows [MTPR]
    std::int32_t max_segments = 1;         // requests; also logit rows
};

struct MemoryItem {
    std::string purpose;
    std::int64_t bytes = 0;
};

// Makes the ports of one engine.
class ForwardFactory {
  public:
    virtual ~ForwardFactory() = default;

    virtual const ModelGeometry& geometry() const = 0;
    virtual std::int32_t cache_value_bytes() const = 0;  // of one cached value: 4 = float32, 2 = bfloat16
    // What create() will allocate for one rank, for the memory plan.
    virtual std::vector<MemoryItem> memory(const ForwardLimits& limits) const = 0;
    // Called once on each rank's thread, on all at the same time: collectives are allowed. `pools` outlives the port.
    // Error anything: the engine does not start
    [[nodiscard]] virtual Result<std::unique_ptr<ForwardPort>> create(const comm::RankContext& rank, kv::Pools& pools,
                                                                      const ForwardLimits& limits) const = 0;
};

}  // namespace megamoe::engine
