// What a geometry costs before any weight is loaded: parameters, bytes, operations and cache of a V4 model.
#pragma once

#include <array>
#include <cstdint>

#include "config/model_geometry.h"
#include "weights/naming.h"

namespace megamoe::weights {

// One number for each WeightKind.
using KindTotals = std::array<std::int64_t, kWeightKinds.size()>;

inline std::int64_t& at(KindTotals& totals, WeightKind kind) {
    return totals[static_cast<std::size_t>(kind)];
}
inline std::int64_t at(const KindTotals& totals, WeightKind kind) {
    return totals[static_cast<std::size_t>(kind)];
}

std::int64_t sum(const KindTotals& totals);

// Of the main model; the integers of hash tables are no parameters.
// Spec  model spec, 9.1
KindTotals count_parameters(const ModelGeometry& geometry);

// Of one MTP layer, which shares embedding and head with the model.
// Spec  model spec, 2.3
std::int64_t count_mtp_parameters(const ModelGeometry& geometry);

// Bytes of the main model's tensors in the released format: FP4 experts, FP8 dense, scales included.
// Spec  model spec, 9.2
KindTotals count_bytes(const ModelGeometry& geometry);

// How much of `totals` (parameters, or bytes) one decoded token touches: top_k of the routed experts and all the rest,
// without the embedding and the hash tables (a row each) and without MTP.
std::int64_t touched_by_token(const KindTotals& totals, const ModelGeometry& geometry);

// Operations for one decoded token, 2 for a multiply-add. `context` counts tokens in the cache.
// Spec  model spec, 9.3
double linear_flops(const ModelGeometry& geometry);  // projections, experts, mHC, head
double attention_flops(const ModelGeometry& geometry, std::int64_t context);
double indexer_flops(const ModelGeometry& geometry, std::int64_t context);

// Cache of a sequence: BF16 entries that grow with it, and what it needs at any length.
// Spec  model spec, 4.4
double cache_bytes_per_token(const ModelGeometry& geometry);
std::int64_t cache_window_bytes(const ModelGeometry& geometry);
std::int64_t cache_state_bytes(const ModelGeometry& geometry);  // float32 rings of the compressors

}  // namespace megamoe::weights
