// A checkpoint seen as a V4 model: every tensor found, checked and named by its role. Views only: it packs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compute/ops/matrix.h"
#include "config/model_geometry.h"
#include "weights/checkpoint.h"

namespace megamoe::weights {

// A vector as float32, decoded from F32 or BF16 at load (norms, sinks, mHC parameters: small).
using FloatVector = std::vector<float>;

struct HyperWeights {    // [X] streams
    ops::MatrixView fn;  // [(2+X)*X, X*H], head: [X, X*H]; F32
    FloatVector base;    // [(2+X)*X], head: [X]
    FloatVector scale;   // [3], head: [1]
};

struct CompressorWeights {  // c = 2 for ratio 4, else 1; d = D or J
    ops::MatrixView wkv;    // [c*d, H] BF16
    ops::MatrixView wgate;  // [c*d, H] BF16
    FloatVector ape;        // [r, c*d]
    FloatVector norm;       // [d]
};

struct IndexerWeights {
    ops::MatrixView wq_b;          // [M*J, Q]
    ops::MatrixView weights_proj;  // [M, H]
    CompressorWeights compressor;
};

struct ExpertWeights {
    ops::MatrixView w1;  // gate [I, H]
    ops::MatrixView w3;  // up   [I, H]
    ops::MatrixView w2;  // down [H, I]
};

struct LayerWeights {
    FloatVector attn_norm, ffn_norm;  // [H]
    HyperWeights hc_attn, hc_ffn;
    FloatVector attn_sink;  // [N]
    ops::MatrixView wq_a, wq_b, wkv, wo_a, wo_b;
    FloatVector q_norm;                       // [Q]
    FloatVector kv_norm;                      // [D]
    CompressorWeights compressor;             // ratio > 0
    IndexerWeights indexer;                   // ratio 4
    ops::MatrixView gate;                     // [E, H]
    FloatVector gate_bias;                    // [E], score layers
    std::vector<std::int16_t> token_experts;  // [V, K], hash layers (tid2eid, range-checked)
    ExpertWeights shared;
    std::vector<ExpertWeights> experts;  // [E]
};

struct V4Weights {
    std::shared_ptr<const Checkpoint> checkpoint;  // keeps the views alive
    ModelGeometry geometry;
    ops::WeightFormat expert_format{};  // as found in the tensors, never from config
    std::int32_t num_mtp_tensors = 0;   // seen and skipped
    ops::MatrixView embed;              // [V, H]
    ops::MatrixView head;               // [V, H]
    FloatVector norm;                   // [H]
    HyperWeights hc_head;
    std::vector<LayerWeights> layers;
};

// Opens DIR (config.json and tensors), accepts the released and the transformers naming (stacked experts too), checks
// every shape and format and the inventory count, and says what it skipped through the log.
// Error kNotFound / kInvalidArgument with file, tensor, found and expected; all problems in one text (first 10 by name)
// Spec  model spec, 2
[[nodiscard]] Result<std::shared_ptr<const V4Weights>> load_v4(const std::string& dir);

// Number of tensors that the main model of this geometry has in the released naming.
// Spec  model spec, 2.4
std::int64_t expected_tensor_count(const ModelGeometry& geometry);

}  // namespace megamoe::weights
