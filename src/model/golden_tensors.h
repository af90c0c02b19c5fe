// Reading reference tensors, and collecting the same tensors from our own forward.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/step_context.h"
#include "weights/checkpoint.h"

namespace megamoe::model {

// The tensor's values; integer tensors too (I32, I64). Error kNotFound / kInvalidArgument by name.
Result<std::vector<float>> read_floats(const weights::Checkpoint& file, std::string_view name);
Result<std::vector<std::int32_t>> read_ids(const weights::Checkpoint& file, std::string_view name);

// Keeps what a forward of one whole sequence shows, under the reference's names: layerL.attn, layerL.attn.1, ...
class DumpTap final : public Tap {
  public:
    DumpTap(const ModelGeometry& geometry, std::int32_t num_tokens) : geometry_(geometry), num_tokens_(num_tokens) {}

    void floats(std::int32_t layer, std::string_view name, const float* data, std::int64_t rows,
                std::int64_t cols) override;
    void experts(std::int32_t layer, const std::int32_t* ids, std::int64_t rows, std::int64_t top_k) override;
    void attention(std::int32_t layer, std::int64_t row, std::int32_t first_window, std::int32_t window,
                   std::span<const std::int32_t> entries, const float* weights) override;

    const std::map<std::string, std::vector<float>>& dumps() const { return dumps_; }
    const std::map<std::int32_t, std::vector<std::int32_t>>& expert_ids() const { return expert_ids_; }

  private:
    ModelGeometry geometry_;
    std::int32_t num_tokens_;
    std::mutex mutex_;  // attention() comes from compute threads
    std::map<std::string, std::vector<float>> dumps_;
    std::map<std::int32_t, std::vector<std::int32_t>> expert_ids_;
};

}  // namespace megamoe::model
