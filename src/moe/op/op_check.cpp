#include "moe/op/op_check.h"

#include <algorithm>
#include <bit>

#include "moe/op/op_oracle.h"
#include "moe/op/op_run.h"

namespace megamoe::moe::op {
namespace {

constexpr MoeBackend kBackends[] = {MoeBackend::kReference, MoeBackend::kStandard, MoeBackend::kMegaMoe1,
                                    MoeBackend::kMegaMoe2};

// A layer as the oracle reads it and as the backends do.
struct Layer {
    std::vector<RawExpert> routed;
    RawExpert shared;
    LayerExperts packed;
};

Layer make_layer(const CheckOptions& o, ops::WeightFormat format) {
    Layer layer;
    for (std::int32_t e = 0; e < o.geometry.num_experts; ++e) {
        layer.routed.push_back(random_expert(o.geometry, format, o.seed, e));
        layer.packed.routed.push_back(pack(layer.routed.back()));
    }
    layer.shared = random_expert(o.geometry, format, o.seed, kSharedExpert);
    layer.packed.shared = pack(layer.shared);
    return layer;
}

std::int64_t count_different(const std::vector<float>& got, const std::vector<float>& expected) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        count += std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(expected[i]) ? 1 : 0;
    }
    return count;
}

}  // namespace

Result<bool> run_check(const CheckOptions& o, const std::function<void(const CheckRow&)>& report) {
    const Batch batch =
        make_batch(o.routing, o.geometry, *std::max_element(o.ranks.begin(), o.ranks.end()), o.tokens, o.seed);
    Workers workers(o.threads_per_rank);
    bool passed = true;
    for (const ops::WeightFormat format : o.formats) {
        MM_TRY_DONE(check_memory(2 * layer_bytes(o.geometry, format), o.geometry));
        const Layer layer = make_layer(o, format);
        const Arm alone{MoeBackend::kReference, 1, 1, o.isa};
        MM_TRY(const auto expected, run_once(alone, o.geometry, layer.packed, batch, split_evenly(batch.rows, 1)));
        const std::vector<double> exact = run_oracle({.routed = layer.routed,
                                                      .shared = &layer.shared,
                                                      .x = batch.x.data(),
                                                      .expert_id = batch.routes.expert_id.data(),
                                                      .weight = batch.routes.weight.data(),
                                                      .rows = batch.rows,
                                                      .top_k = o.geometry.top_k},
                                                     workers);
        for (const MoeBackend backend : kBackends) {
            for (const std::int32_t ranks : o.ranks) {
                const Arm arm{backend, ranks, o.threads_per_rank, o.isa};
                MM_TRY(const auto got,
                       run_once(arm, o.geometry, layer.packed, batch, split_unevenly(batch.rows, ranks)));
                const CheckRow row{format, backend, ranks, count_different(got, expected), relative_error(got, exact)};
                passed = passed && row.passed();
                report(row);
            }
        }
    }
    return passed;
}

}  // namespace megamoe::moe::op
