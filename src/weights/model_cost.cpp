#include "weights/model_cost.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "weights/v4_schema.h"

namespace megamoe::weights {
namespace {

constexpr std::int64_t kBf16Bytes = 2;
constexpr std::int64_t kFloatBytes = 4;

std::int64_t parameters_of(const TensorSpec& spec) {
    return spec.storage == Storage::kI64 ? 0 : spec.num_elements();
}

// Sums `measure` over the schema. All routed experts of a layer are alike, so one of them stands for all.
KindTotals sum_over_schema(const ModelGeometry& g, const std::function<std::int64_t(const TensorSpec&)>& measure) {
    KindTotals totals{};
    const auto add = [&](const std::vector<TensorSpec>& specs, std::int64_t times) {
        for (const TensorSpec& spec : specs) {
            at(totals, weight_kind(spec.name)) += measure(spec) * times;
        }
    };
    add(global_tensors(g), 1);
    for (std::int32_t l = 0; l < g.num_layers; ++l) {
        add(layer_tensors(g, l), 1);
        add(expert_tensors(g, l, 0), g.num_experts);
    }
    return totals;
}

}  // namespace

std::int64_t sum(const KindTotals& totals) {
    return std::accumulate(totals.begin(), totals.end(), std::int64_t{0});
}

KindTotals count_parameters(const ModelGeometry& g) {
    return sum_over_schema(g, parameters_of);
}

std::int64_t count_mtp_parameters(const ModelGeometry& g) {
    ModelGeometry draft = g;  // a score-routed window layer, and everything around it but embedding and head
    draft.num_layers = 1;
    draft.ratios = {0};
    draft.num_hash_layers = 0;
    const KindTotals totals = count_parameters(draft);
    const std::int64_t projections = 2 * std::int64_t{g.hidden_size} * g.hidden_size;
    const std::int64_t input_norms = 2 * std::int64_t{g.hidden_size};
    return sum(totals) - at(totals, WeightKind::kEmbedding) - at(totals, WeightKind::kHead) + projections + input_norms;
}

KindTotals count_bytes(const ModelGeometry& g) {
    return sum_over_schema(g, [](const TensorSpec& spec) { return spec.num_bytes(); });
}

std::int64_t touched_by_token(const KindTotals& totals, const ModelGeometry& g) {
    KindTotals touched = totals;
    at(touched, WeightKind::kEmbedding) = 0;
    at(touched, WeightKind::kHashTables) = 0;
    at(touched, WeightKind::kMtp) = 0;
    at(touched, WeightKind::kOther) = 0;
    at(touched, WeightKind::kRoutedExperts) = at(totals, WeightKind::kRoutedExperts) / g.num_experts * g.top_k;
    return sum(touched);
}

double linear_flops(const ModelGeometry& g) {
    // Every parameter of a matrix is multiplied once. Vectors (norms, sinks, biases, bases) are not in it.
    class Multiplied : public TensorVisitor {
      public:
        void matrix(const TensorSpec& spec, ops::MatrixView&) override {
            count += weight_kind(spec.name) == WeightKind::kEmbedding ? 0 : spec.num_elements() * times;
        }
        void vector(const TensorSpec&, FloatVector&) override {}
        void table(const TensorSpec&, std::vector<std::int16_t>&) override {}

        std::int64_t times = 1;
        std::int64_t count = 0;
    };
    Multiplied multiplied;
    V4Weights ignored;
    visit_globals(g, ignored, multiplied);
    for (std::int32_t l = 0; l < g.num_layers; ++l) {
        LayerWeights layer;
        multiplied.times = 1;
        visit_layer(g, l, layer, multiplied);
        multiplied.times = g.top_k;
        ExpertWeights expert;
        visit_expert(g, l, 0, expert, multiplied);
    }
    return 2.0 * static_cast<double>(multiplied.count);
}

double attention_flops(const ModelGeometry& g, std::int64_t context) {
    const auto n = static_cast<double>(context);
    double candidates = 0;
    for (std::int32_t l = 0; l < g.num_layers; ++l) {
        const double entries = g.kind(l) == LayerKind::kWindow ? 0 : n / g.ratios[static_cast<std::size_t>(l)];
        candidates += std::min<double>(g.window, n);
        candidates += g.kind(l) == LayerKind::kCsa ? std::min<double>(g.index_topk, entries) : entries;
    }
    return 4.0 * g.num_heads * g.head_dim * candidates;  // a score and a weighted value: 2 multiply-adds a channel
}

double indexer_flops(const ModelGeometry& g, std::int64_t context) {
    const auto layers = std::count(g.ratios.begin(), g.ratios.end(), 4);
    const double for_entry = 2.0 * g.index_heads * g.index_dim + 2.0 * g.index_heads;
    return static_cast<double>(layers) * for_entry * static_cast<double>(context) / 4;
}

double cache_bytes_per_token(const ModelGeometry& g) {
    double bytes = 0;
    for (std::int32_t l = 0; l < g.num_layers; ++l) {
        if (g.kind(l) != LayerKind::kWindow) {
            const std::int64_t width = g.head_dim + (g.kind(l) == LayerKind::kCsa ? g.index_dim : 0);
            bytes += static_cast<double>(width * kBf16Bytes) / g.ratios[static_cast<std::size_t>(l)];
        }
    }
    return bytes;
}

std::int64_t cache_window_bytes(const ModelGeometry& g) {
    return std::int64_t{g.window} * g.head_dim * kBf16Bytes * g.num_layers;
}

std::int64_t cache_state_bytes(const ModelGeometry& g) {
    std::int64_t floats = 0;
    for (std::int32_t l = 0; l < g.num_layers; ++l) {
        const std::int64_t ratio = g.ratios[static_cast<std::size_t>(l)];
        if (g.kind(l) == LayerKind::kCsa) {
            floats += 2 * ratio * 2 * 2 *
                      (std::int64_t{g.head_dim} + g.index_dim);  // two windows, both series, value and gate
        } else if (g.kind(l) == LayerKind::kHca) {
            floats += ratio * 2 * g.head_dim;
        }
    }
    return floats * kFloatBytes;
}

}  // namespace megamoe::weights
