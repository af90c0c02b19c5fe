// Fills the weights of a V4 model from a checkpoint: finds each tensor of the schema, checks dtype and shape, and
// collects everything that is wrong. It decodes the small vectors and leaves matrices where they are mapped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "weights/checkpoint.h"
#include "weights/v4_schema.h"
#include "weights/v4_weights.h"

namespace megamoe::weights {

class WeightLoader : public TensorVisitor {
  public:
    // Both must outlive the loader, `checkpoint` the views that it makes too.
    WeightLoader(const Checkpoint& checkpoint, const ModelGeometry& geometry);

    void matrix(const TensorSpec& spec, ops::MatrixView& into) override;
    void vector(const TensorSpec& spec, FloatVector& into) override;
    void table(const TensorSpec& spec, std::vector<std::int16_t>& into) override;

    // The routed experts of a layer, one tensor for each or stacked.
    void experts(std::int32_t layer, std::vector<ExpertWeights>& into);

    // After the walk: which format the routed experts have, or all problems in one error.
    [[nodiscard]] Result<ops::WeightFormat> finish() const;

    // One line for MTP tensors, one for those that the model does not know; none if there are none.
    void log_skipped() const;

    std::int32_t num_mtp() const { return num_mtp_; }
    std::int64_t num_used() const { return num_used_; }  // tensors of the checkpoint that found a place
    // Each expert matrix a tensor of its own, quantised matrices with scales: then num_used() is the inventory count.
    bool as_released() const { return as_released_; }

  private:
    struct Found {
        const std::string* file_name;  // of the tensor, as its file spells it
        const Tensor* tensor;
        bool used = false;
    };
    // One matrix or a stack of equal ones, checked.
    struct Stack {
        ops::WeightFormat format{};
        ops::ScaleFormat scale_format{};
        std::int64_t rows = 0;  // of one matrix
        std::int64_t cols = 0;
        const std::byte* weight = nullptr;
        const std::byte* scale = nullptr;
    };

    const Found* use(const std::string& name);  // null: missing, and noted as such
    std::optional<Stack> check_stack(const TensorSpec& spec);
    bool check_scale(const TensorSpec& spec, Stack& stack);
    bool check_shape(const Found& found, std::span<const std::int64_t> expected);
    bool load_stacked_experts(std::int32_t layer, std::vector<ExpertWeights>& into);  // false: there are none
    void add_problem(const Found& found, const std::string& text);

    static ops::MatrixView view(const Stack& stack, std::int64_t index, std::int64_t first_row, std::int64_t num_rows);

    const Checkpoint& checkpoint_;
    const ModelGeometry& geometry_;
    std::map<std::string, Found, std::less<>> found_;  // by released name
    std::vector<std::string> missing_;
    std::vector<std::string> problems_;
    std::optional<ops::WeightFormat> expert_format_;  // of the first routed expert; all others must have it too
    std::int64_t num_used_ = 0;
    std::int32_t num_mtp_ = 0;
    bool as_released_ = true;
};

}  // namespace megamoe::weights
