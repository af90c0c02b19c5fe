// The lightning indexer of a CSA layer: its own compressed keys, and the choice of entries that a query attends to.
#pragma once

#include <cstdint>
#include <vector>

#include "model/step_context.h"

namespace megamoe::model {

struct IndexQueries {               // empty when no row of the step sees more than index_topk entries
    const float* q = nullptr;       // [rows, M, J], rotated (profile ds: Hadamard and FP4 values)
    const float* weight = nullptr;  // [rows, M], both constants multiplied in
};

// Writes the step's index keys and prepares its queries.
// In    x [rows, H]; query_latent [rows, Q] as the query path's second product saw it
// Spec  model spec, 3.7 and 3.8
IndexQueries prepare_indexer(const StepContext& c, std::int32_t layer_idx, const Layer& layer, const float* x,
                             const float* query_latent);

// The entries below `visible` that row attends to, ascending: all of them, or the index_topk best.
void choose_entries(const StepContext& c, std::int32_t layer_idx, const IndexQueries& queries, std::int64_t row,
                    std::int32_t visible, std::vector<std::int32_t>& out);

}  // namespace megamoe::model
