// One rank of the engine: its scheduler, its model and its clients' sinks, moved forward one agreed step at a time.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "comm/rank_group.h"
#include "engine/forward_port.h"
#include "engine/mailbox.h"
#include "engine/scheduler.h"
#include "model/sampler.h"
#include "step/step_plan.h"

namespace megamoe::engine {

struct RankConfig {
    SchedulerConfig scheduler;
    std::int32_t vocab_size = 0;
};

// Holds no clock, no thread and no collective of its own: run_rank() drives it on a real rank, a test in lock step.
// Thread  the rank's
class Rank {
  public:
    // All references must outlive this object.
    Rank(const RankConfig& config, kv::Pools& pools, ForwardPort& port, Mailbox& mailbox);

    // COLLECT and PROPOSE. `wake_wave` was read before this call.
    step::StepProposal propose(std::uint32_t wake_wave);

    // PREPARE, EXECUTE and COMMIT of a plan that is not skipped.
    // Error whatever the forward returns; the rank cannot go on
    [[nodiscard]] Result<Done> run(const step::StepPlan& plan);

    // Ends every request with kError.
    void fail_all(const Error& error);

    std::int64_t step_no() const { return step_no_; }
    const Scheduler& scheduler() const { return scheduler_; }

  private:
    void collect();
    std::vector<Result<model::Sampled>> sample(std::span<const float> logits);
    void report();

    const RankConfig config_;
    kv::Pools& pools_;
    ForwardPort& port_;
    Mailbox& mailbox_;
    Scheduler scheduler_;
    model::Sampler sampler_;
    std::unordered_map<std::uint64_t, UpdateSink> sinks_;  // by request id
    std::vector<float> logits_;                            // [max_running, vocab]
    kv::Sequence dummy_;
    Segment dummy_segment_;
    bool stop_ = false;
    std::int64_t step_no_ = 0;  // steps executed, idle ones included: equal on all ranks
    RankStats stats_;
};

// Steps until all ranks have been told to stop and none has work.
// Error the first failure of any rank; this rank's requests are still open then
[[nodiscard]] Result<Done> run_rank(const comm::RankContext& context, Rank& rank, const step::StepPolicy& policy);

// Gathers every rank's proposal and agrees on the plan. Collective.
// Error as all_gather and agree
[[nodiscard]] Result<step::StepPlan> exchange(const comm::RankContext& context, const step::StepProposal& mine,
                                              const step::StepPolicy& policy);

}  // namespace megamoe::engine
