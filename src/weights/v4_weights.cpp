#include "weights/v4_weights.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "weights/v4_schema.h"
#include "weights/weight_loader.h"

namespace megamoe::weights {
namespace {

Result<ModelGeometry> read_geometry(const std::string& dir) {
    const std::string path = dir + "/config.json";
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        return Error{Errc::kNotFound, fmt::format("{}: {}", path, std::strerror(errno)),
                     "give the folder that holds config.json and the safetensors files"};
    }
    auto geometry = parse_model_geometry(std::string(std::istreambuf_iterator<char>(file), {}));
    if (!geometry) {
        return Error{geometry.error().code, fmt::format("{}/{}", dir, geometry.error().what), geometry.error().hint};
    }
    return geometry;
}

std::int64_t count_in_files(const std::vector<TensorSpec>& specs) {
    std::int64_t count = 0;
    for (const TensorSpec& spec : specs) {
        count += spec.quantised() ? 2 : 1;
    }
    return count;
}

}  // namespace

Result<std::shared_ptr<const V4Weights>> load_v4(const std::string& dir) {
    auto weights = std::make_shared<V4Weights>();
    MM_TRY(weights->geometry, read_geometry(dir));
    MM_TRY(weights->checkpoint, Checkpoint::open(dir));
    const ModelGeometry& geometry = weights->geometry;
    WeightLoader loader(*weights->checkpoint, geometry);
    visit_globals(geometry, *weights, loader);
    weights->layers.resize(static_cast<std::size_t>(geometry.num_layers));
    for (std::int32_t l = 0; l < geometry.num_layers; ++l) {
        LayerWeights& layer = weights->layers[static_cast<std::size_t>(l)];
        visit_layer(geometry, l, layer, loader);
        loader.experts(l, layer.experts);
    }
    auto expert_format = loader.finish();
    if (!expert_format) {
        return invalid(fmt::format("{}: {}", dir, expert_format.error().what));
    }
    MM_CHECK(!loader.as_released() || loader.num_used() == expected_tensor_count(geometry), "inventory",
             loader.num_used());
    loader.log_skipped();
    weights->expert_format = expert_format.value();
    weights->num_mtp_tensors = loader.num_mtp();
    return std::shared_ptr<const V4Weights>(std::move(weights));
}

std::int64_t expected_tensor_count(const ModelGeometry& geometry) {
    std::int64_t count = count_in_files(global_tensors(geometry));
    for (std::int32_t l = 0; l < geometry.num_layers; ++l) {
        count += count_in_files(layer_tensors(geometry, l));
        count += count_in_files(expert_tensors(geometry, l, 0)) * geometry.num_experts;
    }
    return count;
}

}  // namespace megamoe::weights
