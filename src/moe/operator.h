// The MoE operator: routed and shared experts of one layer for one step, over all ranks. One contract, several
// backends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/workers.h"
#include "comm/rank_group.h"
#include "comm/symmetric_heap.h"
#include "moe/edge.h"
#include "moe/expert.h"
#include "moe/stage_clock.h"
#include "step/step_plan.h"

namespace megamoe::moe {

struct OperatorConfig {
    ExpertMath math;
    std::int32_t num_experts = 0;  // [E], a multiple of the number of ranks
    std::int32_t top_k = 0;        // [K]
    std::int32_t max_rows = 0;     // MTPR: rows a rank may bring to one step
};

// Rank r owns experts [r * E / R, (r + 1) * E / R).
struct ExpertShard {
    std::int32_t first = 0;
    std::int32_t count = 0;

    bool owns(std::int32_t expert) const { return expert >= first && expert < first + count; }
};
ExpertShard shard_of(const OperatorConfig& config, std::int32_t num_ranks, RankId rank);

struct Input {
    const float* x = nullptr;                 // [rows, H], normed; profile ds: bfloat16 values
    const std::int32_t* expert_id = nullptr;  // [rows, K]; outside [0, E): dispatched nowhere
    const float* weight = nullptr;            // [rows, K]
    std::int32_t rows = 0;                    // plan.run[me]
};

class Operator {
  public:
    virtual ~Operator() = default;
    Operator(const Operator&) = delete;
    Operator& operator=(const Operator&) = delete;

    // Every rank calls it for every layer of every step, in the same order, with the same plan.
    //
    // In    experts: this layer's; a backend reads the routed ones of its own shard and the shared one
    // Out   out [rows, H] = sum of weight * expert(x) over the row's experts by ascending id, plus shared(x); float32
    //       sums, one rounding at the end in profile ds
    // Error kInvalidArgument: more rows than max_rows; kUnavailable: another rank failed or did not come in time.
    //       Either poisons the rank group, so that no rank waits for this one, and is sticky: see status()
    // Same  a row's bits depend on that row alone: not on ranks, threads, neighbours or backend, on one ISA
    // Spec  model spec, 3.9; operator contract 1 of the design
    [[nodiscard]] Result<Done> forward(const Input& input, const LayerExperts& experts, const step::StepPlan& plan,
                                       float* out);
    // Error kUnavailable: a forward() failed, and so will all later ones; make a new operator, on all ranks
    [[nodiscard]] Result<Done> status() const;
    virtual std::string_view name() const = 0;
    // Of the last forward() on this rank.
    const StageTimes& stage_times() const { return clock_.times(); }

  protected:
    Operator(const OperatorConfig& config, const comm::RankContext& context) : config_(config), context_(context) {}

    const OperatorConfig config_;
    const comm::RankContext context_;
    StageClock clock_;

  private:
    // forward() with at most max_rows rows, on an operator that never failed.
    virtual Result<Done> run(const Input& input, const LayerExperts& experts, const step::StepPlan& plan,
                             float* out) = 0;

    std::optional<Error> failure_;  // the first
};

// What only the fused backends take.
struct MegaOptions {
    std::int64_t timeout_ms = 30000;  // of one wait for a peer; 0 = never
    std::uint32_t first_epoch = 1;    // number of the first launch; not 0
    // Tests only: called where a thread is about to hand something on, from any compute thread of the rank.
    std::function<void(Edge)> delay;
};

// Bytes of symmetric heap that one rank's block holds; pure.
std::int64_t heap_bytes(MoeBackend backend, const OperatorConfig& config, std::int32_t num_ranks);

// Collective: every rank creates its own with the same config. `workers` are the rank's compute threads.
// Error kInvalidArgument: ranks do not divide the experts, top_k or max_rows out of range, a value that differs between
//       ranks (name, both values, both ranks); or as SymmetricHeap::allocate
[[nodiscard]] Result<std::unique_ptr<Operator>> make_operator(MoeBackend backend, const OperatorConfig& config,
                                                              const comm::RankContext& context, Workers& workers,
                                                              const MegaOptions& mega = {});

}  // namespace megamoe::moe
