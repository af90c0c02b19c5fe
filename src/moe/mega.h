// Backend `megamoe`: dispatch, both expert products and the return in one pass over a task stream, without a barrier.
// Ranks meet through epoch-tagged words only; a rank waits for nothing but the rows it needs.
//   version 1  the same protocol, one phase after another: pull everything, first layer, second layer, return
//   version 2  pulls, products and returns of different units interleave; the shared expert fills the waits
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "compute/cpu/gemm_stages.h"
#include "compute/mega/layout.h"
#include "compute/mega/schedule.h"
#include "moe/mega_ring.h"
#include "moe/mega_wait.h"
#include "moe/operator.h"

namespace megamoe::moe {

class MegaOperator final : public Operator {
  public:
    MegaOperator(const OperatorConfig& config, std::int32_t version, const MegaOptions& options,
                 const comm::RankContext& context, comm::SymmetricBlock block, Workers& workers);

    static mega::Shape shape_of(const OperatorConfig& config, std::int32_t num_ranks);
    static mega::Wire wire_of(const ExpertMath& math);

    std::string_view name() const override { return version_ == 2 ? "megamoe 2" : "megamoe 1"; }

  private:
    Result<Done> run(const Input& input, const LayerExperts& experts, const step::StepPlan& plan, float* out) override;
    // What one launch works on; lives for one forward().
    struct Launch {
        const Input& input;
        const LayerExperts& experts;
        mega::Epoch epoch;
        bool shared_done = false;
    };

    void stage_rows(const Launch& launch);
    void publish_routes(const Launch& launch);
    Result<Done> collect_counts(Launch& launch);
    const std::uint32_t* find_list(const Launch& launch, std::int32_t local, std::int32_t source, std::int32_t count);
    void run_shared(Launch& launch);
    void run_tasks(const Launch& launch);
    void pull_all(const Launch& launch);
    void return_all(const Launch& launch);
    void work(const Launch& launch, std::atomic<std::int64_t>& ticket);
    void pull(const Launch& launch, const mega::Task& task, BlockSlot& slot);
    void first_layer(const Launch& launch, const mega::Task& task, BlockSlot& slot);
    void second_layer(const Launch& launch, const mega::Task& task, BlockSlot& slot);
    void returned(const Launch& launch, const BlockSlot& slot);
    Result<Done> await_returns(Launch& launch);

    std::int32_t block_rows(const mega::Task& task) const;
    std::byte* return_row(const RowOrigin& origin) const;
    void delay(Edge edge) const {
        if (delay_) {
            delay_(edge);
        }
    }

    const std::int32_t version_;
    const WaitPolicy wait_;
    const std::function<void(Edge)> delay_;
    const comm::SymmetricBlock block_;
    Workers& workers_;
    const mega::Shape shape_;
    const mega::Wire wire_;
    const mega::HeapLayout layout_;
    const ExpertShard shard_;
    std::vector<std::byte*> bases_;
    mega::RankView view_;
    mega::Schedule schedule_;
    mega::Epoch epoch_;

    std::vector<std::int32_t> counts_;                    // [local expert][source] of this launch
    std::vector<const std::uint32_t*> lists_;             // [local expert][source] its pairs
    std::vector<std::vector<std::uint32_t>> long_lists_;  // those that outgrew the heap's
    std::vector<std::int32_t> rows_;                      // [local expert]
    std::vector<mega::ExpertBegin> begins_;               // [local expert + 1]
    std::vector<std::int32_t> sent_;                      // [rank] rows this rank sent there in this launch
    std::vector<std::atomic<std::int32_t>> remaining_;    // [source] rows not yet returned to it
    BlockRing ring_;
    std::vector<float> quantised_;
    std::vector<float> shared_;
};

}  // namespace megamoe::moe
