// Backend `reference`: every rank shows all its rows to all, and each computes its own experts one row at a time.
#pragma once

#include <vector>

#include "moe/operator.h"

namespace megamoe::moe {

class ReferenceOperator final : public Operator {
  public:
    ReferenceOperator(const OperatorConfig& config, const comm::RankContext& context, comm::SymmetricBlock block,
                      Workers& workers)
        : Operator(config, context), block_(block), workers_(workers) {}

    static std::int64_t heap_bytes(const OperatorConfig& config);
    std::string_view name() const override { return "reference"; }

  private:
    Result<Done> run(const Input& input, const LayerExperts& experts, const step::StepPlan& plan, float* out) override;
    void publish(const Input& input);
    void compute_for(RankId owner, std::int32_t rows, const LayerExperts& experts);

    comm::SymmetricBlock block_;
    Workers& workers_;
    std::vector<float> quantised_;
    std::vector<float> shared_;
    std::vector<float> row_in_;
    std::vector<float> row_out_;
};

}  // namespace megamoe::moe
