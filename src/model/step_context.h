// What every operator of one forward pass needs to know: the rows, where their caches are, and how to compute.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "base/workers.h"
#include "compute/cpu/gemm.h"
#include "compute/cpu/row_ops.h"
#include "kv/pools.h"
#include "model/loaded_model.h"
#include "model/scratch.h"

namespace megamoe::model {

// New tokens of one sequence: positions start .. start + tokens.size() - 1. Its pages for these positions exist
// already.
struct Segment {
    const kv::Sequence* sequence = nullptr;
    std::span<const std::int32_t> tokens;
    std::int32_t start = 0;
    std::int32_t num_logits = 1;  // logits of the last so many tokens are wanted
};

struct Row {
    const kv::Sequence* sequence = nullptr;
    std::int32_t position = 0;
    std::int32_t token = 0;
};

// Receives intermediate results of a forward, for comparison with reference dumps.
class Tap {
  public:
    virtual ~Tap() = default;
    // `data` [rows, cols]. Names: attn, gate, gate.1 (weights), mlp, out (streams)
    virtual void floats(std::int32_t layer, std::string_view name, const float* data, std::int64_t rows,
                        std::int64_t cols) = 0;
    virtual void experts(std::int32_t layer, const std::int32_t* ids, std::int64_t rows, std::int64_t top_k) = 0;
    // Attention weights of one row: `window` rows from position first_window on, then the named compressed entries.
    // `weights` [heads, window + entries.size()]. Called from compute threads.
    virtual void attention(std::int32_t layer, std::int64_t row, std::int32_t first_window, std::int32_t window,
                           std::span<const std::int32_t> entries, const float* weights) = 0;
};

struct StepContext {
    const LoadedModel& model;
    const ModelGeometry& g;
    cpu::Isa isa;
    Profile profile;
    kv::Pools& pools;
    Workers& workers;
    Scratch& scratch;
    std::span<const Segment> segments;
    std::vector<Row> rows;
    const float* angles[2] = {};  // by RopeKind: [rows, rope_dim] cos and sin
    Tap* tap = nullptr;

    bool ds() const { return profile == Profile::kDs; }
    cpu::Rounding rounding() const { return ds() ? cpu::Rounding::kBf16 : cpu::Rounding::kNone; }
    std::int32_t num_rows() const { return static_cast<std::int32_t>(rows.size()); }
    std::span<const float> row_angles(ops::RopeKind kind, std::int64_t row) const {
        return {angles[static_cast<int>(kind)] + row * g.rope_dim, static_cast<std::size_t>(g.rope_dim)};
    }

    // y [rows, w.rows()] = x * w^T for all rows of the step; x rows are lda apart. Rounded to bfloat16 in profile ds,
    // unless the model keeps float32 there (gate logits, compressor inputs).
    struct Product {
        const cpu::PackedMatrix& w;
        float* y;
        std::int64_t ldo;
        bool keep_f32 = false;
    };
    void multiply(const float* x, std::int64_t lda, std::initializer_list<Product> products) const {
        std::vector<cpu::Gemm> calls;
        for (const Product& p : products) {
            calls.push_back({.w = &p.w,
                             .a = x,
                             .lda = lda,
                             .m = num_rows(),
                             .out = p.y,
                             .ldo = p.ldo,
                             .math = ds() ? cpu::Math::kBf16 : cpu::Math::kF32,
                             .round_bf16 = ds() && !p.keep_f32});
        }
        cpu::gemm(isa, workers, calls);
    }
    // In place: what FP8 activation quantisation makes of `x` in profile ds; nothing in hf.
    void quantise(float* x, std::int32_t n) const {
        if (ds()) {
            cpu::quantise_fp8(isa, x, n, moe::kActGroup);
        }
    }
};

}  // namespace megamoe::model
