#include "model/hyper.h"

#include <algorithm>
#include <vector>

#include "compute/ops/hyper.h"

namespace megamoe::model {
namespace {

// Rows that go through all steps of a passage together: their streams stay in the cache from one step to the next.
constexpr std::int32_t kRowBlock = 16;

// Calls fn(first row, rows) for blocks of rows, spread over the rank's threads.
template <class Fn>
void for_row_blocks(const StepContext& c, std::int32_t num, Fn fn) {
    c.workers.run((num + kRowBlock - 1) / kRowBlock, [&](std::int64_t block) {
        const auto first = static_cast<std::int32_t>(block) * kRowBlock;
        fn(first, std::min(kRowBlock, num - first));
    });
}

// mix [num, fn.rows()] = fn * (vec(streams) / rms(vec(streams))), always in float32. At most kRowBlock rows.
void mix_streams(const StepContext& c, const Hyper& hyper, const float* streams, std::int32_t num, float* mix) {
    thread_local std::vector<float> normed;
    const std::int32_t width = c.g.hc_mult * c.g.hidden_size;
    normed.resize(static_cast<std::size_t>(kRowBlock) * static_cast<std::size_t>(width));
    for (std::int64_t row = 0; row < num; ++row) {
        cpu::rms_norm(c.isa, streams + row * width, nullptr, width, c.g.rms_eps, cpu::Rounding::kNone,
                      normed.data() + row * width);
    }
    Workers alone(1);
    cpu::gemm(c.isa, alone,
              {.w = &hyper.fn,
               .a = normed.data(),
               .lda = width,
               .m = num,
               .out = mix,
               .ldo = hyper.fn.rows(),
               .math = cpu::Math::kF32});
}

std::span<float> span_of(float* p, std::int64_t n) {
    return {p, static_cast<std::size_t>(n)};
}

}  // namespace

HyperCoefficients HyperCoefficients::take(Scratch& scratch, std::int64_t rows, std::int64_t num_streams) {
    return {scratch.take(rows * num_streams), scratch.take(rows * num_streams),
            scratch.take(rows * num_streams * num_streams)};
}

namespace {

void expand_rows(const StepContext& c, const PendingOutput& pending, std::int64_t first, std::int64_t count,
                 float* streams) {
    const std::int64_t n = c.g.hc_mult;
    const std::int64_t h = c.g.hidden_size;
    for (std::int64_t row = first; row < first + count; ++row) {
        cpu::hc_expand(c.isa, pending.o + row * h, pending.k.post + row * n, pending.k.comb + row * n * n, c.g.hc_mult,
                       c.g.hidden_size, c.rounding(), streams + row * n * h);
    }
}

}  // namespace

void expand_pending(const StepContext& c, const PendingOutput& pending, float* streams) {
    for_row_blocks(c, c.num_rows(),
                   [&](std::int32_t first, std::int32_t count) { expand_rows(c, pending, first, count, streams); });
}

void enter_sublayer(const StepContext& c, const Hyper& hyper, const weights::FloatVector& norm,
                    const PendingOutput& pending, float* streams, const HyperCoefficients& k, float* x) {
    const std::int32_t rows = c.num_rows();
    const std::int64_t n = c.g.hc_mult;
    const std::int64_t h = c.g.hidden_size;
    const std::int64_t outs = hyper.fn.rows();
    float* mix = c.scratch.take(rows * outs);
    const ops::HyperShape shape{c.g.hc_mult, c.g.hc_iters, c.g.hc_eps};
    for_row_blocks(c, rows, [&](std::int32_t first, std::int32_t count) {
        if (pending.o != nullptr) {
            expand_rows(c, pending, first, count, streams);
        }
        mix_streams(c, hyper, streams + first * n * h, count, mix + first * outs);
        for (std::int64_t row = first; row < first + count; ++row) {
            ops::hyper_coefficients(shape, {mix + row * outs, static_cast<std::size_t>(outs)}, hyper.raw->scale,
                                    hyper.raw->base, span_of(k.pre + row * n, n), span_of(k.post + row * n, n),
                                    span_of(k.comb + row * n * n, n * n));
            float* u = x + row * h;
            cpu::hc_collapse(c.isa, streams + row * n * h, k.pre + row * n, c.g.hc_mult, c.g.hidden_size, c.rounding(),
                             u);
            cpu::rms_norm(c.isa, u, norm.data(), c.g.hidden_size, c.g.rms_eps, c.rounding(), u);
        }
    });
}

void collapse_head(const StepContext& c, const float* streams, std::int32_t num, float* out) {
    const Hyper& hyper = c.model.hc_head();
    const std::int64_t x = c.g.hc_mult;
    const std::int64_t h = c.g.hidden_size;
    float* mix = c.scratch.take(num * x);
    float* pre = c.scratch.take(num * x);
    for_row_blocks(c, num, [&](std::int32_t first, std::int32_t count) {
        mix_streams(c, hyper, streams + first * x * h, count, mix + first * x);
        for (std::int64_t row = first; row < first + count; ++row) {
            ops::hyper_pre({mix + row * x, static_cast<std::size_t>(x)}, hyper.raw->scale[0], hyper.raw->base,
                           c.g.hc_eps, span_of(pre + row * x, x));
            float* u = out + row * h;
            cpu::hc_collapse(c.isa, streams + row * x * h, pre + row * x, c.g.hc_mult, c.g.hidden_size, c.rounding(),
                             u);
            cpu::rms_norm(c.isa, u, c.model.weights().norm.data(), c.g.hidden_size, c.g.rms_eps, c.rounding(), u);
        }
    });
}

}  // namespace megamoe::model
