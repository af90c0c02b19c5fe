#include "model/loaded_model.h"

#include <fmt/format.h>

#include "base/memory.h"

namespace megamoe::model {
namespace {

using cpu::PackedMatrix;

Hyper pack(const weights::HyperWeights& raw) {
    return {PackedMatrix::pack(raw.fn), &raw};
}

Compressor pack(const weights::CompressorWeights& raw) {
    return {PackedMatrix::pack(raw.wkv), PackedMatrix::pack(raw.wgate), &raw};
}

moe::PackedExpert pack(const weights::ExpertWeights& raw) {
    return {PackedMatrix::pack(raw.w1), PackedMatrix::pack(raw.w3), PackedMatrix::pack(raw.w2)};
}

Layer pack_layer(const ModelGeometry& g, std::int32_t index, const weights::LayerWeights& raw, Workers& workers) {
    Layer out;
    out.kind = g.kind(index);
    out.ratio = g.ratios[static_cast<std::size_t>(index)];
    out.raw = &raw;
    out.attn_hc = pack(raw.hc_attn);
    out.ffn_hc = pack(raw.hc_ffn);
    out.wq_a = PackedMatrix::pack(raw.wq_a);
    out.wq_b = PackedMatrix::pack(raw.wq_b);
    out.wkv = PackedMatrix::pack(raw.wkv);
    for (std::int32_t group = 0; group < g.o_groups; ++group) {
        out.wo_a.push_back(PackedMatrix::pack(raw.wo_a, group * g.o_lora_rank, g.o_lora_rank));
    }
    out.wo_b = PackedMatrix::pack(raw.wo_b);
    if (out.ratio > 0) {
        out.compressor = pack(raw.compressor);
    }
    if (out.kind == LayerKind::kCsa) {
        out.indexer = {PackedMatrix::pack(raw.indexer.wq_b), PackedMatrix::pack(raw.indexer.weights_proj),
                       pack(raw.indexer.compressor)};
    }
    out.gate = PackedMatrix::pack(raw.gate);
    out.experts.routed.resize(raw.experts.size());
    workers.run(static_cast<std::int64_t>(raw.experts.size()), [&](std::int64_t e) {
        const auto at = static_cast<std::size_t>(e);
        out.experts.routed[at] = pack(raw.experts[at]);
    });
    out.experts.shared = pack(raw.shared);
    return out;
}

std::int64_t bytes_of(const moe::PackedExpert& e) {
    return e.w1.bytes() + e.w3.bytes() + e.w2.bytes();
}

// Bytes of a layer without its routed experts: all of them are read for every token.
std::int64_t dense_bytes(const Layer& l) {
    std::int64_t sum = l.attn_hc.fn.bytes() + l.ffn_hc.fn.bytes() + l.wq_a.bytes() + l.wq_b.bytes() + l.wkv.bytes() +
                       l.wo_b.bytes() + l.gate.bytes() + bytes_of(l.experts.shared) + l.compressor.wkv.bytes() +
                       l.compressor.wgate.bytes() + l.indexer.wq_b.bytes() + l.indexer.weights_proj.bytes() +
                       l.indexer.compressor.wkv.bytes() + l.indexer.compressor.wgate.bytes();
    for (const auto& w : l.wo_a) {
        sum += w.bytes();
    }
    return sum;
}

std::int64_t checkpoint_bytes(const weights::V4Weights& w) {
    std::int64_t sum = 0;
    for (const auto& [name, tensor] : w.checkpoint->tensors()) {
        sum += static_cast<std::int64_t>(tensor.bytes.size());
    }
    return sum;
}

}  // namespace

Result<std::shared_ptr<const LoadedModel>> LoadedModel::load(const std::string& dir, Workers& workers,
                                                             const std::function<void(std::string_view)>& progress) {
    MM_TRY(auto raw, weights::load_v4(dir));
    const std::int64_t need = checkpoint_bytes(*raw);
    const std::int64_t have = available_memory_bytes();
    if (have >= 0 && need > have) {
        return Error{Errc::kResourceExhausted,
                     fmt::format("model {}: its weights need {:.2f} GiB of memory, {:.2f} GiB are free", dir,
                                 static_cast<double>(need) / (1 << 30), static_cast<double>(have) / (1 << 30)),
                     "free memory, or use a smaller model"};
    }
    std::shared_ptr<LoadedModel> model(new LoadedModel);
    model->weights_ = raw;
    model->directory_ = dir;
    const ModelGeometry& g = raw->geometry;
    model->main_frequencies_ = ops::rope_frequencies(g, ops::RopeKind::kMain);
    model->compress_frequencies_ = ops::rope_frequencies(g, ops::RopeKind::kCompress);
    model->hc_head_ = pack(raw->hc_head);
    model->head_ = PackedMatrix::pack(raw->head);
    model->bytes_per_token_ = model->head_.bytes() + model->hc_head_.fn.bytes();
    model->bytes_ = model->bytes_per_token_;
    for (std::int32_t l = 0; l < g.num_layers; ++l) {
        Layer layer = pack_layer(g, l, raw->layers[static_cast<std::size_t>(l)], workers);
        const std::int64_t dense = dense_bytes(layer);
        const std::int64_t expert = bytes_of(layer.experts.routed.front());
        model->bytes_ += dense + expert * g.num_experts;
        model->bytes_per_token_ += dense + expert * g.top_k;
        model->layers_.push_back(std::move(layer));
        if (progress) {
            progress(fmt::format("packed layer {}/{}", l + 1, g.num_layers));
        }
    }
    return std::shared_ptr<const LoadedModel>(std::move(model));
}

}  // namespace megamoe::model
