// The residual streams around a sub-layer: collapse X streams to its input, expand its output back into them.
#pragma once

#include <cstdint>

#include "model/step_context.h"

namespace megamoe::model {

struct HyperCoefficients {
    float* pre = nullptr;   // [rows, X]
    float* post = nullptr;  // [rows, X]
    float* comb = nullptr;  // [rows, X, X]

    static HyperCoefficients take(Scratch& scratch, std::int64_t rows, std::int64_t num_streams);
};

// A sub-layer's output that the streams have not taken up yet. Expanding it together with the next collapse saves the
// streams a way to memory and back.
struct PendingOutput {
    HyperCoefficients k;
    const float* o = nullptr;  // [rows, H]; null: nothing pending
};

// In    streams [rows, X, H]
//       pending: is expanded into the streams first
// Out   x [rows, H]: the normed input of the sub-layer; k: its coefficients
// Spec  model spec, 3.3 and 3.4
void enter_sublayer(const StepContext& c, const Hyper& hyper, const weights::FloatVector& norm,
                    const PendingOutput& pending, float* streams, const HyperCoefficients& k, float* x);

// streams = post * o + comb^T * streams, in place.
void expand_pending(const StepContext& c, const PendingOutput& pending, float* streams);

// The head: collapses the given rows' streams and norms them. out [num, H]
void collapse_head(const StepContext& c, const float* streams, std::int32_t num, float* out);

}  // namespace megamoe::model
