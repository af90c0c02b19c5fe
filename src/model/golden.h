// A model folder against its reference outputs (golden.safetensors made by transformers): the gate of everything
// numeric.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "compute/cpu/isa.h"
#include "model/loaded_model.h"

namespace megamoe::model {

// What decides. Layer dumps are printed with their errors and decide nothing alone: an error there shows in the logits.
struct GoldenBars {
    float logit_error = 2e-4F;         // largest absolute error of a logit, profile hf
    float nll_error = 1e-3F;           // of a token's loss, profile hf
    double ds_loss_difference = 0.02;  // mean loss of profile ds minus that of the reference, in every domain
};

// Runs every reference that DIR/golden.safetensors holds, whatever the sizes:
//   N.tokens with N.logits, N.layerL.{attn,attn.1,gate,gate.1,gate.2,mlp,out}, N.logits_swiglu_limit_C, N.greedy_from_P
//   D.j.tokens with D.j.nll, D.j.top8_id, D.j.top8_logit, D.j.last_logits, D.j.greedy_from_P (texts j of domain D)
// Texts with losses also run in profile ds, and the mean loss of each domain is printed beside the reference.
//
// In    print: called with each line of the report
// Out   number of comparisons that missed their bar
// Error as LoadedModel::load and weights::Checkpoint::open_file; kInvalidArgument: nothing to compare
[[nodiscard]] Result<std::int32_t> check_golden(std::shared_ptr<const LoadedModel> model, cpu::Isa isa,
                                                std::int32_t threads, const GoldenBars& bars,
                                                const std::function<void(std::string_view)>& print);

}  // namespace megamoe::model
