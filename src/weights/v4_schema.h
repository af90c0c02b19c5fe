// Which tensors a V4 model has: name, shape and released format of each, in one walk. The loader, the synthesiser and
// the cost model are visitors of it, so they cannot disagree.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/model_geometry.h"
#include "weights/naming.h"
#include "weights/v4_weights.h"

namespace megamoe::weights {

// How the released checkpoints store a tensor.
enum class Storage : std::uint8_t {
    kFp4,  // NAME.weight and NAME.scale
    kFp8,  // NAME.weight and NAME.scale
    kBf16,
    kF32,
    kI64,
};

struct TensorSpec {
    std::string name;  // released, with its `.weight` where it has one
    Storage storage{};
    std::vector<std::int64_t> shape;  // logical: an FP4 matrix has cols / 2 bytes a row

    std::int64_t num_elements() const;
    std::int64_t num_bytes() const;  // in the released format, with its scales
    std::string scale_name() const;  // of kFp4 and kFp8
    bool quantised() const { return storage == Storage::kFp4 || storage == Storage::kFp8; }
};

// Shape of the scales of a quantised matrix, or of a stack of matrices.
// Spec  model spec, 2.5
std::vector<std::int64_t> scale_shape(Storage storage, std::span<const std::int64_t> shape);

class TensorVisitor {
  public:
    virtual ~TensorVisitor() = default;
    virtual void matrix(const TensorSpec& spec, ops::MatrixView& into) = 0;
    virtual void vector(const TensorSpec& spec, FloatVector& into) = 0;  // small, whatever its rank
    virtual void table(const TensorSpec& spec, std::vector<std::int16_t>& into) = 0;
};

// Spec  model spec, 2.1 and 2.2
void visit_globals(const ModelGeometry& geometry, V4Weights& into, TensorVisitor& visitor);
// All tensors of a layer but its routed experts.
void visit_layer(const ModelGeometry& geometry, std::int32_t layer, LayerWeights& into, TensorVisitor& visitor);
void visit_expert(const ModelGeometry& geometry, std::int32_t layer, std::int32_t expert, ExpertWeights& into,
                  TensorVisitor& visitor);

// The same walk as lists.
std::vector<TensorSpec> global_tensors(const ModelGeometry& geometry);
std::vector<TensorSpec> layer_tensors(const ModelGeometry& geometry, std::int32_t layer);
std::vector<TensorSpec> expert_tensors(const ModelGeometry& geometry, std::int32_t layer, std::int32_t expert);

}  // namespace megamoe::weights
