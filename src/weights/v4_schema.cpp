#include "weights/v4_schema.h"

#include <fmt/format.h>

#include <functional>
#include <numeric>
#include <utility>

namespace megamoe::weights {
namespace {

using Shape = std::vector<std::int64_t>;

std::int64_t product(const Shape& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Visits tensors that share the beginning of their names.
class Scope {
  public:
    Scope(TensorVisitor& visitor, std::string prefix) : visitor_(visitor), prefix_(std::move(prefix)) {}

    void matrix(std::string_view name, Storage storage, std::int64_t rows, std::int64_t cols, ops::MatrixView& into) {
        visitor_.matrix({prefix_ + std::string(name), storage, {rows, cols}}, into);
    }
    void vector(std::string_view name, Storage storage, Shape shape, FloatVector& into) {
        visitor_.vector({prefix_ + std::string(name), storage, std::move(shape)}, into);
    }
    void table(std::string_view name, Shape shape, std::vector<std::int16_t>& into) {
        visitor_.table({prefix_ + std::string(name), Storage::kI64, std::move(shape)}, into);
    }
    Scope inside(std::string_view name) const { return {visitor_, prefix_ + std::string(name)}; }

  private:
    TensorVisitor& visitor_;
    std::string prefix_;
};

void visit_hyper(Scope scope, const ModelGeometry& g, HyperWeights& into) {
    const std::int64_t mixes = (2 + g.hc_mult) * g.hc_mult;
    scope.matrix("fn", Storage::kF32, mixes, std::int64_t{g.hc_mult} * g.hidden_size, into.fn);
    scope.vector("base", Storage::kF32, {mixes}, into.base);
    scope.vector("scale", Storage::kF32, {3}, into.scale);
}

void visit_compressor(Scope scope, const ModelGeometry& g, std::int64_t ratio, std::int64_t dim,
                      CompressorWeights& into) {
    const std::int64_t width = ratio == 4 ? 2 * dim : dim;  // [c*d]
    scope.matrix("wkv.weight", Storage::kBf16, width, g.hidden_size, into.wkv);
    scope.matrix("wgate.weight", Storage::kBf16, width, g.hidden_size, into.wgate);
    scope.vector("ape", Storage::kF32, {ratio, width}, into.ape);
    scope.vector("norm.weight", Storage::kBf16, {dim}, into.norm);
}

void visit_attention(Scope scope, const ModelGeometry& g, std::int32_t layer, LayerWeights& into) {
    const std::int64_t heads = std::int64_t{g.num_heads} * g.head_dim;
    const std::int64_t out_rank = std::int64_t{g.o_groups} * g.o_lora_rank;
    scope.vector("attn_sink", Storage::kF32, {g.num_heads}, into.attn_sink);
    scope.matrix("wq_a.weight", Storage::kFp8, g.q_lora_rank, g.hidden_size, into.wq_a);
    scope.vector("q_norm.weight", Storage::kBf16, {g.q_lora_rank}, into.q_norm);
    scope.matrix("wq_b.weight", Storage::kFp8, heads, g.q_lora_rank, into.wq_b);
    scope.matrix("wkv.weight", Storage::kFp8, g.head_dim, g.hidden_size, into.wkv);
    scope.vector("kv_norm.weight", Storage::kBf16, {g.head_dim}, into.kv_norm);
    scope.matrix("wo_a.weight", Storage::kFp8, out_rank, heads / g.o_groups, into.wo_a);
    scope.matrix("wo_b.weight", Storage::kFp8, g.hidden_size, out_rank, into.wo_b);
    const std::int32_t ratio = g.ratios[static_cast<std::size_t>(layer)];
    if (g.kind(layer) != LayerKind::kWindow) {
        visit_compressor(scope.inside("compressor."), g, ratio, g.head_dim, into.compressor);
    }
    if (g.kind(layer) == LayerKind::kCsa) {
        Scope indexer = scope.inside("indexer.");
        indexer.matrix("wq_b.weight", Storage::kFp8, std::int64_t{g.index_heads} * g.index_dim, g.q_lora_rank,
                       into.indexer.wq_b);
        indexer.matrix("weights_proj.weight", Storage::kBf16, g.index_heads, g.hidden_size, into.indexer.weights_proj);
        visit_compressor(indexer.inside("compressor."), g, ratio, g.index_dim, into.indexer.compressor);
    }
}

void visit_mlp(Scope scope, Storage storage, const ModelGeometry& g, ExpertWeights& into) {
    scope.matrix("w1.weight", storage, g.expert_inter, g.hidden_size, into.w1);
    scope.matrix("w3.weight", storage, g.expert_inter, g.hidden_size, into.w3);
    scope.matrix("w2.weight", storage, g.hidden_size, g.expert_inter, into.w2);
}

class Lister : public TensorVisitor {
  public:
    void matrix(const TensorSpec& spec, ops::MatrixView&) override { specs.push_back(spec); }
    void vector(const TensorSpec& spec, FloatVector&) override { specs.push_back(spec); }
    void table(const TensorSpec& spec, std::vector<std::int16_t>&) override { specs.push_back(spec); }

    std::vector<TensorSpec> specs;
};

}  // namespace

std::int64_t TensorSpec::num_elements() const {
    return product(shape);
}

std::int64_t TensorSpec::num_bytes() const {
    switch (storage) {
        case Storage::kFp4:
            return num_elements() / 2 + product(scale_shape(storage, shape));
        case Storage::kFp8:
            return num_elements() + product(scale_shape(storage, shape));
        case Storage::kBf16:
            return num_elements() * 2;
        case Storage::kF32:
            return num_elements() * 4;
        default:
            return num_elements() * 8;
    }
}

std::string TensorSpec::scale_name() const {
    return name.substr(0, name.size() - std::string_view("weight").size()) + "scale";
}

std::vector<std::int64_t> scale_shape(Storage storage, std::span<const std::int64_t> shape) {
    std::vector<std::int64_t> scales(shape.begin(), shape.end());
    const std::int64_t rows = storage == Storage::kFp8 ? 128 : 1;
    const std::int64_t cols = storage == Storage::kFp8 ? 128 : 32;
    scales.rbegin()[1] = (scales.rbegin()[1] + rows - 1) / rows;
    scales.back() = (scales.back() + cols - 1) / cols;
    return scales;
}

void visit_globals(const ModelGeometry& g, V4Weights& into, TensorVisitor& visitor) {
    Scope scope(visitor, "");
    scope.matrix("embed.weight", Storage::kBf16, g.vocab_size, g.hidden_size, into.embed);
    scope.matrix("head.weight", Storage::kBf16, g.vocab_size, g.hidden_size, into.head);
    scope.vector("norm.weight", Storage::kBf16, {g.hidden_size}, into.norm);
    scope.matrix("hc_head_fn", Storage::kF32, g.hc_mult, std::int64_t{g.hc_mult} * g.hidden_size, into.hc_head.fn);
    scope.vector("hc_head_base", Storage::kF32, {g.hc_mult}, into.hc_head.base);
    scope.vector("hc_head_scale", Storage::kF32, {1}, into.hc_head.scale);
}

void visit_layer(const ModelGeometry& g, std::int32_t layer, LayerWeights& into, TensorVisitor& visitor) {
    Scope scope(visitor, fmt::format("layers.{}.", layer));
    scope.vector("attn_norm.weight", Storage::kBf16, {g.hidden_size}, into.attn_norm);
    scope.vector("ffn_norm.weight", Storage::kBf16, {g.hidden_size}, into.ffn_norm);
    visit_hyper(scope.inside("hc_attn_"), g, into.hc_attn);
    visit_hyper(scope.inside("hc_ffn_"), g, into.hc_ffn);
    visit_attention(scope.inside("attn."), g, layer, into);
    scope.matrix("ffn.gate.weight", Storage::kBf16, g.num_experts, g.hidden_size, into.gate);
    if (g.hash_routed(layer)) {
        scope.table("ffn.gate.tid2eid", {g.vocab_size, g.top_k}, into.token_experts);
    } else {
        scope.vector("ffn.gate.bias", Storage::kF32, {g.num_experts}, into.gate_bias);
    }
    visit_mlp(scope.inside("ffn.shared_experts."), Storage::kFp8, g, into.shared);
}

void visit_expert(const ModelGeometry& g, std::int32_t layer, std::int32_t expert, ExpertWeights& into,
                  TensorVisitor& visitor) {
    visit_mlp(Scope(visitor, fmt::format("layers.{}.ffn.experts.{}.", layer, expert)), Storage::kFp4, g, into);
}

std::vector<TensorSpec> global_tensors(const ModelGeometry& geometry) {
    Lister lister;
    V4Weights ignored;
    visit_globals(geometry, ignored, lister);
    return std::move(lister.specs);
}

std::vector<TensorSpec> layer_tensors(const ModelGeometry& geometry, std::int32_t layer) {
    Lister lister;
    LayerWeights ignored;
    visit_layer(geometry, layer, ignored, lister);
    return std::move(lister.specs);
}

std::vector<TensorSpec> expert_tensors(const ModelGeometry& geometry, std::int32_t layer, std::int32_t expert) {
    Lister lister;
    ExpertWeights ignored;
    visit_expert(geometry, layer, expert, ignored, lister);
    return std::move(lister.specs);
}

}  // namespace megamoe::weights
