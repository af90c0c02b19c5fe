// Backend `standard`: separate stages. Rows are pushed to the ranks that own their experts, grouped by expert,
// computed, pushed back and summed at home.
#pragma once

#include <vector>

#include "moe/operator.h"

namespace megamoe::moe {

class StandardOperator final : public Operator {
  public:
    StandardOperator(const OperatorConfig& config, const comm::RankContext& context, comm::SymmetricBlock block,
                     Workers& workers);

    static std::int64_t heap_bytes(const OperatorConfig& config, std::int32_t num_ranks);
    std::string_view name() const override { return "standard"; }

  private:
    Result<Done> run(const Input& input, const LayerExperts& experts, const step::StepPlan& plan, float* out) override;
    // A received row that one of this rank's experts must process.
    struct Task {
        std::int32_t source;  // rank
        std::int32_t slot;    // in that source's receive region
        std::int32_t token;   // row at the source
        std::int32_t k;       // which of the token's choices
        float weight;
    };
    struct Batch {
        std::vector<Task> tasks;
        std::vector<float> in;
        std::vector<float> out;
        std::vector<float> weight;
    };

    void dispatch(const Input& input);
    void group_by_expert();
    void run_batches(const LayerExperts& experts);
    void run_batch(const PackedExpert& expert, Workers& workers, Batch& batch);

    comm::SymmetricBlock block_;
    Workers& workers_;
    ExpertShard shard_;
    std::vector<Batch> batches_;        // one a local expert
    std::vector<std::int32_t> active_;  // local experts with work
    std::vector<float> quantised_;
    std::vector<float> shared_;
};

}  // namespace megamoe::moe
