// A V4 model ready to run on the CPU: every matrix packed once, shared read-only by all ranks of the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/workers.h"
#include "compute/cpu/packed_matrix.h"
#include "compute/ops/rope.h"
#include "config/engine_config.h"
#include "moe/expert.h"
#include "weights/v4_weights.h"

namespace megamoe::model {

struct Hyper {
    cpu::PackedMatrix fn;
    const weights::HyperWeights* raw = nullptr;  // base and scale
};

struct Compressor {
    cpu::PackedMatrix wkv;
    cpu::PackedMatrix wgate;
    const weights::CompressorWeights* raw = nullptr;  // ape and norm
};

struct Indexer {
    cpu::PackedMatrix wq_b;
    cpu::PackedMatrix weights_proj;
    Compressor compressor;
};

struct Layer {
    LayerKind kind{};
    std::int32_t ratio = 0;
    const weights::LayerWeights* raw = nullptr;  // norms, sinks, gate bias, hash table
    Hyper attn_hc;
    Hyper ffn_hc;
    cpu::PackedMatrix wq_a;
    cpu::PackedMatrix wq_b;
    cpu::PackedMatrix wkv;
    std::vector<cpu::PackedMatrix> wo_a;  // one a group: [O, N*D/G]
    cpu::PackedMatrix wo_b;
    Compressor compressor;  // ratio > 0
    Indexer indexer;        // ratio 4
    cpu::PackedMatrix gate;
    moe::LayerExperts experts;
};

class LoadedModel {
  public:
    // Loads and packs DIR with the given number of threads. `progress` (may be empty) gets one line a layer.
    // Error as weights::load_v4; kResourceExhausted when the packed size does not fit the free memory (both named)
    [[nodiscard]] static Result<std::shared_ptr<const LoadedModel>> load(
        const std::string& dir, Workers& workers, const std::function<void(std::string_view)>& progress = {});

    const ModelGeometry& geometry() const { return weights_->geometry; }
    const weights::V4Weights& weights() const { return *weights_; }
    const std::vector<Layer>& layers() const { return layers_; }
    const Hyper& hc_head() const { return hc_head_; }
    const cpu::PackedMatrix& head() const { return head_; }
    const std::vector<float>& frequencies(ops::RopeKind kind) const {
        return kind == ops::RopeKind::kMain ? main_frequencies_ : compress_frequencies_;
    }
    const std::string& directory() const { return directory_; }
    // Memory held by packed weights.
    std::int64_t bytes() const { return bytes_; }
    // Weight bytes one token must read at batch 1: everything but the embedding table and the experts it does not
    // visit.
    std::int64_t bytes_per_decoded_token() const { return bytes_per_token_; }

  private:
    LoadedModel() = default;
    std::shared_ptr<const weights::V4Weights> weights_;
    std::vector<Layer> layers_;
    Hyper hc_head_;
    cpu::PackedMatrix head_;
    std::vector<float> main_frequencies_;
    std::vector<float> compress_frequencies_;
    std::string directory_;
    std::int64_t bytes_ = 0;
    std::int64_t bytes_per_token_ = 0;
};

}  // namespace megamoe::model
