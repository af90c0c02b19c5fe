#include "model/forward.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "compute/ops/formats.h"
#include "compute/ops/route.h"
#include "model/attention.h"
#include "model/hyper.h"

namespace megamoe::model {
namespace {

// Row `token` of the embedding table, copied into all streams.
void embed(const StepContext& c, std::int32_t token, float* streams) {
    const ops::MatrixView& table = c.model.weights().embed;
    const auto h = static_cast<std::size_t>(c.g.hidden_size);
    const auto first = static_cast<std::size_t>(token) * h;
    if (table.format == ops::WeightFormat::kBf16) {
        const auto* row = static_cast<const std::byte*>(table.weight) + first * 2;
        for (std::size_t i = 0; i < h; ++i) {
            std::uint16_t code = 0;
            std::memcpy(&code, row + 2 * i, 2);
            streams[i] = ops::from_bf16(code);
        }
    } else {
        std::memcpy(streams, static_cast<const std::byte*>(table.weight) + first * 4, h * 4);
        if (c.ds()) {
            std::transform(streams, streams + h, streams, ops::round_bf16);
        }
    }
    for (std::int32_t j = 1; j < c.g.hc_mult; ++j) {
        std::copy_n(streams, h, streams + static_cast<std::size_t>(j) * h);
    }
}

void list_rows(StepContext& c) {
    for (const Segment& segment : c.segments) {
        for (std::size_t i = 0; i < segment.tokens.size(); ++i) {
            c.rows.push_back({segment.sequence, segment.start + static_cast<std::int32_t>(i), segment.tokens[i]});
        }
    }
}

void prepare_angles(StepContext& c, Scratch& scratch) {
    for (const auto kind : {ops::RopeKind::kMain, ops::RopeKind::kCompress}) {
        float* angles = scratch.take(std::int64_t{c.num_rows()} * c.g.rope_dim);
        c.angles[static_cast<int>(kind)] = angles;
        c.workers.run(c.num_rows(), [&](std::int64_t row) {
            ops::rope_angles(c.model.frequencies(kind), c.rows[static_cast<std::size_t>(row)].position,
                             {angles + row * c.g.rope_dim, static_cast<std::size_t>(c.g.rope_dim)});
        });
    }
}

// Chooses the experts of one row from its gate logits.
void route_row(const StepContext& c, const Layer& layer, const Row& row, std::span<const float> logits,
               std::span<std::int32_t> ids, std::span<float> weights) {
    thread_local std::vector<float> score;
    score.resize(logits.size());
    std::transform(logits.begin(), logits.end(), score.begin(), ops::sqrt_softplus);
    const auto& table = layer.raw->token_experts;
    if (!table.empty()) {
        const auto first = static_cast<std::size_t>(row.token) * ids.size();
        std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(first), ids.size(), ids.begin());
    } else {
        ops::select_experts(score, layer.raw->gate_bias, ids);
    }
    const float floor = c.ds() ? 0.0F : 1e-20F;
    ops::mixing_weights(score, ids, floor, static_cast<float>(c.g.routed_scale), weights);
}

}  // namespace

moe::OperatorConfig operator_config(const LoadedModel& model, Profile profile, cpu::Isa isa, std::int32_t max_rows) {
    const ModelGeometry& g = model.geometry();
    return {.math = {.isa = isa,
                     .profile = profile,
                     .hidden = g.hidden_size,
                     .inter = g.expert_inter,
                     .limit = g.swiglu_limit},
            .num_experts = g.num_experts,
            .top_k = g.top_k,
            .max_rows = max_rows};
}

Forward::Forward(std::shared_ptr<const LoadedModel> model, Profile profile, cpu::Isa isa, kv::Pools& pools,
                 moe::Operator& moe, Workers& workers)
    : model_(std::move(model)), profile_(profile), isa_(isa), pools_(pools), moe_(moe), workers_(workers) {}

Result<Done> Forward::run_moe(const StepContext& c, std::int32_t layer_idx, const step::StepPlan& plan,
                              std::int32_t real, const float* x, float* out) {
    const Layer& layer = c.model.layers()[static_cast<std::size_t>(layer_idx)];
    const std::int64_t n = c.num_rows();
    const std::int64_t experts = c.g.num_experts;
    const std::int64_t k = c.g.top_k;
    float* logits = c.scratch.take(n * experts);
    float* weights = c.scratch.take(n * k);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(n * k));
    c.multiply(x, c.g.hidden_size, {{layer.gate, logits, experts, true}});
    c.workers.run(n, [&](std::int64_t row) {
        const std::span<std::int32_t> row_ids(ids.data() + row * k, static_cast<std::size_t>(k));
        const std::span<float> row_weights(weights + row * k, static_cast<std::size_t>(k));
        route_row(c, layer, c.rows[static_cast<std::size_t>(row)],
                  {logits + row * experts, static_cast<std::size_t>(experts)}, row_ids, row_weights);
        if (row >= real) {  // a dummy takes part in the exchange and wakes no expert
            std::fill(row_ids.begin(), row_ids.end(), c.g.num_experts);
        }
    });
    const moe::Input input{x, ids.data(), weights, static_cast<std::int32_t>(n)};
    MM_TRY_DONE(moe_.forward(input, layer.experts, plan, out));
    if (c.tap != nullptr) {
        c.tap->floats(layer_idx, "gate", logits, n, experts);
        c.tap->floats(layer_idx, "gate.1", weights, n, k);
        c.tap->experts(layer_idx, ids.data(), n, k);
        c.tap->floats(layer_idx, "mlp", out, n, c.g.hidden_size);
    }
    return Done{};
}

void Forward::run_head(const StepContext& c, const float* streams, std::span<float> logits) {
    const std::int64_t row_floats = std::int64_t{c.g.hc_mult} * c.g.hidden_size;
    const auto wanted = static_cast<std::int32_t>(static_cast<std::int64_t>(logits.size()) / c.g.vocab_size);
    if (wanted == 0) {
        return;
    }
    float* picked = c.scratch.take(wanted * row_floats);
    std::int64_t row = 0;
    float* to = picked;
    for (const Segment& segment : c.segments) {
        row += static_cast<std::int64_t>(segment.tokens.size());
        to = std::copy_n(streams + (row - segment.num_logits) * row_floats, segment.num_logits * row_floats, to);
    }
    MM_CHECK(to == picked + wanted * row_floats, "logit rows", (to - picked) / row_floats, "asked", wanted);
    float* y = c.scratch.take(std::int64_t{wanted} * c.g.hidden_size);
    collapse_head(c, picked, wanted, y);
    cpu::gemm(isa_, workers_,
              {.w = &model_->head(),
               .a = y,
               .lda = c.g.hidden_size,
               .m = wanted,
               .out = logits.data(),
               .ldo = c.g.vocab_size,
               .math = c.ds() ? cpu::Math::kBf16 : cpu::Math::kF32});
}

Result<Done> Forward::run(std::span<const Segment> segments, const step::StepPlan& plan, RankId me,
                          std::span<float> logits, Tap* tap) {
    step_scratch_.reset();
    layer_scratch_.reset();
    StepContext c{.model = *model_,
                  .g = model_->geometry(),
                  .isa = isa_,
                  .profile = profile_,
                  .pools = pools_,
                  .workers = workers_,
                  .scratch = layer_scratch_,
                  .segments = segments,
                  .rows = {},
                  .angles = {},
                  .tap = tap};
    list_rows(c);
    const auto rank = static_cast<std::size_t>(raw(me));
    MM_CHECK(c.num_rows() == plan.run[rank], "rows", c.num_rows(), "planned", plan.run[rank]);
    prepare_angles(c, step_scratch_);

    const std::int64_t n = c.num_rows();
    const std::int64_t row_floats = std::int64_t{c.g.hc_mult} * c.g.hidden_size;
    float* streams = step_scratch_.take(n * row_floats);
    float* x = step_scratch_.take(n * c.g.hidden_size);
    float* o = step_scratch_.take(n * c.g.hidden_size);
    workers_.run(n, [&](std::int64_t row) {
        embed(c, c.rows[static_cast<std::size_t>(row)].token, streams + row * row_floats);
    });
    const auto around_attention = HyperCoefficients::take(step_scratch_, n, c.g.hc_mult);
    const auto around_moe = HyperCoefficients::take(step_scratch_, n, c.g.hc_mult);
    PendingOutput pending;
    for (std::int32_t l = 0; l < c.g.num_layers; ++l) {
        const Layer& layer = model_->layers()[static_cast<std::size_t>(l)];
        layer_scratch_.reset();
        enter_sublayer(c, layer.attn_hc, layer.raw->attn_norm, pending, streams, around_attention, x);
        run_attention(c, l, x, o);

        layer_scratch_.reset();
        enter_sublayer(c, layer.ffn_hc, layer.raw->ffn_norm, {around_attention, o}, streams, around_moe, x);
        MM_TRY_DONE(run_moe(c, l, plan, plan.real[rank], x, o));
        pending = {around_moe, o};
        if (tap != nullptr) {
            expand_pending(c, pending, streams);
            pending = {};
            tap->floats(l, "out", streams, n, row_floats);
        }
    }
    if (pending.o != nullptr) {
        expand_pending(c, pending, streams);
    }
    layer_scratch_.reset();
    run_head(c, streams, logits);
    return Done{};
}

}  // namespace megamoe::model
