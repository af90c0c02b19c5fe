// What the tests of this folder share: the small models, loaded once, and random token texts.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/workers.h"
#include "model/loaded_model.h"

namespace megamoe::model::testing {

inline std::shared_ptr<const LoadedModel> load(const std::string& dir) {
    Workers workers(1);
    auto model = LoadedModel::load(dir, workers);
    MM_CHECK(static_cast<bool>(model), dir, model ? "" : to_string(model.error()));
    return std::move(model).take();
}

inline std::shared_ptr<const LoadedModel> tiny() {
    static const auto model = load("tests/golden/tiny-b");
    return model;
}

inline std::shared_ptr<const LoadedModel> mini() {
    static const auto model = load("models/mini");
    return model;
}

inline std::vector<std::int32_t> random_tokens(const ModelGeometry& g, std::size_t count, std::uint32_t seed) {
    std::mt19937 rng(seed);
    std::vector<std::int32_t> out(count);
    for (auto& token : out) {
        token = static_cast<std::int32_t>(rng() % static_cast<std::uint32_t>(g.vocab_size));
    }
    return out;
}

}  // namespace megamoe::model::testing
