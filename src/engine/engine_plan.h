// What an engine's configuration comes to on each rank: sizes, policy and memory, before anything is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/engine_config.h"
#include "engine/forward_port.h"
#include "engine/scheduler.h"
#include "kv/pool_plan.h"
#include "step/step_plan.h"

namespace megamoe::engine {

struct EnginePlan {
    std::int32_t num_ranks = 1;
    std::int32_t vocab_size = 0;
    std::int32_t context_length = 0;  // tokens of one request, prompt and output
    std::int64_t max_live = 0;        // requests that run or queue, all ranks together
    SchedulerConfig scheduler;        // of rank 0; other ranks differ in `rank` only
    ForwardLimits limits;
    step::StepPolicy policy;
    kv::PoolLayout layout;
    kv::PoolPlan pools;              // a rank
    std::vector<MemoryItem> memory;  // a rank, pools included
    std::int64_t available_bytes = -1;

    std::int64_t rank_bytes() const;
    std::int64_t total_bytes() const { return rank_bytes() * num_ranks; }
};

// Derives per-rank values from global ones and sizes the pools. `available_bytes` is the free memory, -1 when unknown.
//
// Error kInvalidArgument: a setting out of range, or that the model's sizes do not allow; kResourceExhausted: the plan
//       needs more than is available (the plan is in the text)
// Spec  serving spec, 4.1, 5.2
[[nodiscard]] Result<EnginePlan> make_engine_plan(const EngineConfig& config, const ForwardFactory& factory,
                                                  std::int64_t available_bytes);

// The effective values and the bytes by purpose, a few lines.
std::string to_string(const EnginePlan& plan);

}  // namespace megamoe::engine
