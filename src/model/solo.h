// A model on one rank without the engine: for reference checks, tests and offline generation. It schedules nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/rank_group.h"
#include "comm/symmetric_heap.h"
#include "model/forward.h"

namespace megamoe::model {

struct SoloOptions {
    Profile profile = Profile::kDs;
    cpu::Isa isa = cpu::detect_isa();
    MoeBackend backend = MoeBackend::kStandard;
    std::int32_t threads = 1;
    std::int32_t max_rows = 512;  // tokens one call may bring
    std::int32_t max_sequences = 4;
    std::int32_t max_length = 0;             // tokens a sequence may reach; 0 = the model's limit
    std::int32_t page_size = 0;              // 0 = smallest multiple of every ratio that is >= 256
    std::optional<float> swiglu_limit = {};  // instead of the model's, for the clamp's own reference
};

class Solo {
  public:
    [[nodiscard]] static Result<std::unique_ptr<Solo>> create(std::shared_ptr<const LoadedModel> model,
                                                              const SoloOptions& options);

    // An empty sequence. Error kResourceExhausted: max_sequences are open.
    [[nodiscard]] Result<kv::Sequence> open();

    // Feeds the tokens in one step (at most max_rows) and returns the logits [num_logits, V] of the last ones.
    [[nodiscard]] Result<std::vector<float>> extend(kv::Sequence& sequence, std::span<const std::int32_t> tokens,
                                                    std::int32_t num_logits, Tap* tap = nullptr);

    // Several sequences in one step; logits of each one's last num_logits tokens, in order.
    struct Feed {
        kv::Sequence* sequence;
        std::span<const std::int32_t> tokens;
        std::int32_t num_logits;
    };
    [[nodiscard]] Result<std::vector<float>> extend(std::span<const Feed> feeds, Tap* tap = nullptr);

    const ModelGeometry& geometry() const { return model_->geometry(); }
    const kv::Pools& pools() const { return *pools_; }
    std::int32_t max_rows() const { return options_.max_rows; }

  private:
    Solo(std::shared_ptr<const LoadedModel> model, const SoloOptions& options);

    std::shared_ptr<const LoadedModel> model_;
    SoloOptions options_;
    Workers workers_;
    comm::RankGroup group_{1};
    comm::SymmetricHeap heap_;
    std::unique_ptr<kv::Pools> pools_;
    std::unique_ptr<moe::Operator> moe_;
    std::unique_ptr<Forward> forward_;
};

// The smallest page that holds whole entries of every layer and at least `at_least` tokens.
std::int32_t page_size_for(const ModelGeometry& geometry, std::int32_t at_least);

}  // namespace megamoe::model
