#include "model/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "compute/cpu/latent_ops.h"
#include "compute/ops/formats.h"
#include "model/compressor.h"
#include "model/indexer.h"
#include "model/kv_codec.h"

namespace megamoe::model {
namespace {

constexpr std::int32_t kKvGroup = 64;  // channels that share a scale in the FP8 simulation of keys

// Profile ds: keys and entries carry FP8 values in their plain channels.
void simulate_kv(const StepContext& c, std::span<float> latent) {
    if (c.ds()) {
        ops::simulate_fp8(latent.data(), c.g.plain_dim(), kKvGroup);
    }
}

struct Queries {
    const float* latent;  // [rows, Q], after q_norm and quantisation: the indexer's queries start from it too
    float* q;             // [rows, N, D], rotated
};

// In    latent [rows, Q]: wq_a x; normed and quantised in place
Queries make_queries(const StepContext& c, const Layer& layer, ops::RopeKind kind, float* latent) {
    const std::int64_t n = c.num_rows();
    const std::int64_t heads_width = std::int64_t{c.g.num_heads} * c.g.head_dim;
    const Queries out{latent, c.scratch.take(n * heads_width)};
    c.workers.run(n, [&](std::int64_t row) {
        float* x = latent + row * c.g.q_lora_rank;
        cpu::rms_norm(c.isa, x, layer.raw->q_norm.data(), c.g.q_lora_rank, c.g.rms_eps, c.rounding(), x);
        c.quantise(x, c.g.q_lora_rank);
    });
    c.multiply(latent, c.g.q_lora_rank, {{layer.wq_b, out.q, heads_width}});
    c.workers.run(n, [&](std::int64_t row) {
        const auto angles = c.row_angles(kind, row);
        for (std::int32_t head = 0; head < c.g.num_heads; ++head) {
            float* q = out.q + row * heads_width + std::int64_t{head} * c.g.head_dim;
            cpu::head_norm(c.isa, q, c.g.head_dim, c.g.rms_eps, c.rounding());
        }
        cpu::rotate_heads(c.isa, out.q + row * heads_width, c.g.num_heads, c.g.head_dim, angles, false, c.ds());
    });
    return out;
}

// In    k [rows, D]: wkv x; becomes the keys of the window
void write_window(const StepContext& c, std::int32_t layer_idx, const Layer& layer, ops::RopeKind kind, float* k) {
    const std::int64_t d = c.g.head_dim;
    c.workers.run(c.num_rows(), [&](std::int64_t row) {
        const Row& r = c.rows[static_cast<std::size_t>(row)];
        const std::span<float> key(k + row * d, static_cast<std::size_t>(d));
        cpu::rms_norm(c.isa, key.data(), layer.raw->kv_norm.data(), c.g.head_dim, c.g.rms_eps, c.rounding(),
                      key.data());
        ops::rotate(key, c.row_angles(kind, row), false, c.ds());
        simulate_kv(c, key);
        store_latent(key, c.profile, c.pools.window_row(layer_idx, *r.sequence, r.position));
    });
}

void write_entries(const StepContext& c, std::int32_t layer_idx, const Layer& layer, const float* x) {
    const CompressorSite site{&layer.compressor, c.g.head_dim, layer.ratio, kv::StateKind::kAttention, layer_idx};
    run_compressor(c, site, x, [&](const kv::Sequence& sequence, std::int32_t window, std::span<float> entry) {
        simulate_kv(c, entry);
        store_latent(entry, c.profile, c.pools.entry_row(layer_idx, sequence, window));
    });
}

// Working memory of one thread for one row's candidates.
struct Candidates {
    std::vector<std::byte> rows;
    std::vector<float> scratch;
    std::vector<float> weights;
    std::vector<std::int32_t> entries;
};

// Copies the candidates of a row next to each other: window oldest first, then the chosen entries by index.
std::int32_t gather(const StepContext& c, std::int32_t layer_idx, const Row& r, Candidates& out) {
    const std::int32_t first = std::max(0, r.position - c.g.window + 1);
    const std::int32_t window = r.position - first + 1;
    const auto total = window + static_cast<std::int32_t>(out.entries.size());
    const std::size_t bytes = latent_bytes(c.g.head_dim, c.profile);
    if (out.rows.size() < static_cast<std::size_t>(total) * bytes) {
        out.rows.resize(static_cast<std::size_t>(total) * bytes);
    }
    std::byte* to = out.rows.data();
    for (std::int32_t p = first; p <= r.position; ++p, to += bytes) {
        std::memcpy(to, c.pools.window_row(layer_idx, *r.sequence, p), bytes);
    }
    for (const std::int32_t entry : out.entries) {
        std::memcpy(to, c.pools.entry_row(layer_idx, *r.sequence, entry), bytes);
        to += bytes;
    }
    return total;
}

void attend_row(const StepContext& c, std::int32_t layer_idx, const Layer& layer, std::int64_t row, const float* q,
                Candidates& cand, float* out) {
    const Row& r = c.rows[static_cast<std::size_t>(row)];
    const std::int32_t total = gather(c, layer_idx, r, cand);
    cand.scratch.resize(static_cast<std::size_t>(cpu::attend_scratch(c.g.num_heads, c.g.head_dim, total)));
    cpu::Attend call{.q = q,
                     .kv = cand.rows.data(),
                     .kv_bf16 = c.ds(),
                     .heads = c.g.num_heads,
                     .dim = c.g.head_dim,
                     .rows = total,
                     .scale = 1.0F / std::sqrt(static_cast<float>(c.g.head_dim)),
                     .sink = layer.raw->attn_sink.data(),
                     .rounding = c.rounding(),
                     .out = out,
                     .scratch = cand.scratch.data()};
    if (c.tap != nullptr) {
        cand.weights.resize(static_cast<std::size_t>(total) * static_cast<std::size_t>(c.g.num_heads));
        call.probabilities = cand.weights.data();
    }
    cpu::attend(c.isa, call);
    if (c.tap != nullptr) {
        const auto window = total - static_cast<std::int32_t>(cand.entries.size());
        c.tap->attention(layer_idx, row, r.position - window + 1, window, cand.entries, cand.weights.data());
    }
}

// y [rows, G*O]: each group of heads through its own block of wo_a.
float* project_groups(const StepContext& c, const Layer& layer, const float* o) {
    const std::int64_t group_width = std::int64_t{c.g.num_heads} * c.g.head_dim / c.g.o_groups;
    const std::int64_t out_width = std::int64_t{c.g.o_groups} * c.g.o_lora_rank;
    float* y = c.scratch.take(c.num_rows() * out_width);
    for (std::int32_t group = 0; group < c.g.o_groups; ++group) {
        c.multiply(
            o + group * group_width, std::int64_t{c.g.num_heads} * c.g.head_dim,
            {{layer.wo_a[static_cast<std::size_t>(group)], y + std::int64_t{group} * c.g.o_lora_rank, out_width}});
    }
    return y;
}

}  // namespace

void run_attention(const StepContext& c, std::int32_t layer_idx, const float* x, float* out) {
    const Layer& layer = c.model.layers()[static_cast<std::size_t>(layer_idx)];
    const auto kind = layer.ratio > 0 ? ops::RopeKind::kCompress : ops::RopeKind::kMain;
    const std::int64_t n = c.num_rows();
    const std::int64_t h = c.g.hidden_size;
    float* quantised_x = c.scratch.take(n * h);
    std::copy_n(x, n * h, quantised_x);
    c.workers.run(n, [&](std::int64_t row) { c.quantise(quantised_x + row * h, c.g.hidden_size); });

    float* latent = c.scratch.take(n * c.g.q_lora_rank);
    float* k = c.scratch.take(n * c.g.head_dim);
    c.multiply(quantised_x, h, {{layer.wq_a, latent, c.g.q_lora_rank}, {layer.wkv, k, c.g.head_dim}});
    const Queries queries = make_queries(c, layer, kind, latent);
    write_window(c, layer_idx, layer, kind, k);
    if (layer.ratio > 0) {
        write_entries(c, layer_idx, layer, x);
    }
    IndexQueries index;
    if (layer.kind == LayerKind::kCsa) {
        index = prepare_indexer(c, layer_idx, layer, x, queries.latent);
    }

    const std::int64_t heads_width = std::int64_t{c.g.num_heads} * c.g.head_dim;
    float* o = c.scratch.take(n * heads_width);
    c.workers.run(n, [&](std::int64_t row) {
        thread_local Candidates cand;
        const Row& r = c.rows[static_cast<std::size_t>(row)];
        const std::int32_t visible = layer.ratio > 0 ? (r.position + 1) / layer.ratio : 0;
        if (layer.kind == LayerKind::kCsa) {
            choose_entries(c, layer_idx, index, row, visible, cand.entries);
        } else {
            cand.entries.resize(static_cast<std::size_t>(visible));
            for (std::int32_t w = 0; w < visible; ++w) {
                cand.entries[static_cast<std::size_t>(w)] = w;
            }
        }
        float* head = o + row * heads_width;
        attend_row(c, layer_idx, layer, row, queries.q + row * heads_width, cand, head);
        cpu::rotate_heads(c.isa, head, c.g.num_heads, c.g.head_dim, c.row_angles(kind, row), true, c.ds());
    });

    const std::int32_t y_width = c.g.o_groups * c.g.o_lora_rank;
    float* y = project_groups(c, layer, o);
    c.workers.run(n, [&](std::int64_t row) { c.quantise(y + row * y_width, y_width); });
    c.multiply(y, y_width, {{layer.wo_b, out, h}});
    if (c.tap != nullptr) {
        c.tap->floats(layer_idx, "attn", out, n, h);
    }
}

}  // namespace megamoe::model
