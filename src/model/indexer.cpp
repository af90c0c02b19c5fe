#include "model/indexer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compute/cpu/latent_ops.h"
#include "compute/ops/compress.h"
#include "compute/ops/formats.h"
#include "model/compressor.h"
#include "model/kv_codec.h"

namespace megamoe::model {
namespace {

constexpr std::int32_t kRatio = 4;

// Profile ds: Hadamard rotation, then FP4 values. Query and key alike, or their product means nothing.
void rotate_and_quantise(const StepContext& c, std::span<float> x) {
    if (c.ds()) {
        cpu::hadamard_fp4(c.isa, x);
    }
}

}  // namespace

IndexQueries prepare_indexer(const StepContext& c, std::int32_t layer_idx, const Layer& layer, const float* x,
                             const float* query_latent) {
    const std::int64_t n = c.num_rows();
    const std::int64_t width = std::int64_t{c.g.index_heads} * c.g.index_dim;
    const CompressorSite site{&layer.indexer.compressor, c.g.index_dim, kRatio, kv::StateKind::kIndexer, layer_idx};
    run_compressor(c, site, x, [&](const kv::Sequence& sequence, std::int32_t window, std::span<float> key) {
        rotate_and_quantise(c, key);
        store_latent(key, c.profile, c.pools.index_row(layer_idx, sequence, window));
    });

    // Where every visible entry is taken anyway, nobody asks for a score.
    const bool scored = std::any_of(c.rows.begin(), c.rows.end(),
                                    [&](const Row& row) { return (row.position + 1) / kRatio > c.g.index_topk; });
    if (!scored) {
        return {};
    }
    float* q = c.scratch.take(n * width);
    float* weight = c.scratch.take(n * c.g.index_heads);
    c.multiply(query_latent, c.g.q_lora_rank, {{layer.indexer.wq_b, q, width}});
    c.multiply(x, c.g.hidden_size, {{layer.indexer.weights_proj, weight, c.g.index_heads}});
    const auto constant = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.g.index_dim) * c.g.index_heads));
    c.workers.run(n, [&](std::int64_t row) {
        float* heads = q + row * width;
        cpu::rotate_heads(c.isa, heads, c.g.index_heads, c.g.index_dim, c.row_angles(ops::RopeKind::kCompress, row),
                          false, c.ds());
        for (std::int32_t head = 0; head < c.g.index_heads; ++head) {
            rotate_and_quantise(c,
                                {heads + std::int64_t{head} * c.g.index_dim, static_cast<std::size_t>(c.g.index_dim)});
            float& w = weight[row * c.g.index_heads + head];
            w = c.ds() ? ops::round_bf16(w * constant) : w * constant;
        }
    });
    return {q, weight};
}

void choose_entries(const StepContext& c, std::int32_t layer_idx, const IndexQueries& queries, std::int64_t row,
                    std::int32_t visible, std::vector<std::int32_t>& out) {
    if (visible <= c.g.index_topk) {
        // Every visible entry is taken whatever its score.
        out.resize(static_cast<std::size_t>(visible));
        std::iota(out.begin(), out.end(), 0);
        return;
    }
    thread_local std::vector<float> score;
    score.resize(static_cast<std::size_t>(visible));
    const Row& r = c.rows[static_cast<std::size_t>(row)];
    const std::int64_t width = std::int64_t{c.g.index_heads} * c.g.index_dim;
    const std::int32_t per_page = c.pools.layout().page_size / kRatio;
    for (std::int32_t first = 0; first < visible; first += per_page) {
        const std::int32_t count = std::min(per_page, visible - first);
        cpu::index_scores(c.isa, queries.q + row * width, c.pools.index_row(layer_idx, *r.sequence, first), c.ds(),
                          queries.weight + row * c.g.index_heads, c.g.index_heads, c.g.index_dim, count, c.rounding(),
                          score.data() + first);
    }
    ops::select_top(score, c.g.index_topk, out);
}

}  // namespace megamoe::model
