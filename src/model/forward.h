// One forward pass of one rank: new tokens of several sequences through all layers, caches written, logits out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "base/workers.h"
#include "kv/pools.h"
#include "model/loaded_model.h"
#include "model/scratch.h"
#include "model/step_context.h"
#include "moe/operator.h"
#include "step/step_plan.h"

namespace megamoe::model {

class Forward {
  public:
    // All arguments but `model` must outlive this object.
    Forward(std::shared_ptr<const LoadedModel> model, Profile profile, cpu::Isa isa, kv::Pools& pools,
            moe::Operator& moe, Workers& workers);

    // Every rank of the group calls it for every step that is not skipped, with the same plan.
    //
    // In    segments: the rank's new tokens, real or one dummy of one token; rows at and past plan.real[me] dispatch no
    //       expert. Pages for all positions must exist.
    // Out   logits [sum of num_logits, V] float32, in segment order
    // Error kUnavailable: from the MoE exchange; the caches of this step are then undefined
    // Same  bit-identical for any split of a sequence into steps, any batch neighbours, any rank or thread count, on
    //       one ISA
    // Spec  model spec, 3
    [[nodiscard]] Result<Done> run(std::span<const Segment> segments, const step::StepPlan& plan, RankId me,
                                   std::span<float> logits, Tap* tap = nullptr);

  private:
    Result<Done> run_moe(const StepContext& c, std::int32_t layer_idx, const step::StepPlan& plan, std::int32_t real,
                         const float* x, float* out);
    void run_head(const StepContext& c, const float* streams, std::span<float> logits);

    std::shared_ptr<const LoadedModel> model_;
    Profile profile_;
    cpu::Isa isa_;
    kv::Pools& pools_;
    moe::Operator& moe_;
    Workers& workers_;
    Scratch step_scratch_;   // lives for the whole step: streams, angles
    Scratch layer_scratch_;  // reset after every sub-layer
};

// The operator configuration that this model needs; `max_rows` = rows a rank may bring to one step.
moe::OperatorConfig operator_config(const LoadedModel& model, Profile profile, cpu::Isa isa, std::int32_t max_rows);

}  // namespace megamoe::model
