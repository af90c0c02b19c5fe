// The residual streams around a sub-layer: collapse X streams to its input, expand its output back into them.
#pragma once

#include <cstdint>

#include "model/step_context.h"

namespace megamoe::model {

struct HyperCoefficients {
    float* pre = nullptr;   // [rows, X]
    float* post = nullptr;  // [rows, X]
    float* comb = nullptr;  // [rows, X, X]
};

// In    streams [rows, X, H]
// Out   x [rows, H]: the normed input of the sub-layer; the coefficients live in the step's scratch
// Spec  model spec, 3.3 and 3.4
HyperCoefficients enter_sublayer(const StepContext& c, const Hyper& hyper, const weights::FloatVector& norm,
                                 const float* streams, float* x);

// streams = post * o + comb^T * streams, in place. o [rows, H].
void leave_sublayer(const StepContext& c, const HyperCoefficients& k, const float* o, float* streams);

// The head: collapses the given rows' streams and norms them. out [num, H]
void collapse_head(const StepContext& c, const float* streams, std::int32_t num, float* out);

}  // namespace megamoe::model
