// One attention sub-layer: queries, window keys, compressed entries, the mix, and the grouped output projection.
#pragma once

#include <cstdint>

#include "model/step_context.h"

namespace megamoe::model {

// Writes the step's window keys, compressor states, entries and indexer keys into the caches, then attends.
//
// In    x   [rows, H]: the normed input (profile ds: bfloat16 values)
// Out   out [rows, H]
// Same  a row depends on its sequence's earlier tokens alone: not on how they were split into steps, nor on neighbours
// Spec  model spec, 3.5 to 3.8, 5
void run_attention(const StepContext& c, std::int32_t layer_idx, const float* x, float* out);

}  // namespace megamoe::model
