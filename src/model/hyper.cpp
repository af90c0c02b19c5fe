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

HyperCoefficients enter_sublayer(const StepContext& c, const Hyper& hyper, const weights::FloatVector& norm,
                                 const float* streams, float* x) {
    const std::int32_t n = c.num_rows();
    const std::int64_t streams_per_row = c.g.hc_mult;
    const std::int64_t h = c.g.hidden_size;
    const std::int64_t outs = hyper.fn.rows();
    float* mix = c.scratch.take(n * outs);
    const HyperCoefficients k{c.scratch.take(n * streams_per_row), c.scratch.take(n * streams_per_row),
                              c.scratch.take(n * streams_per_row * streams_per_row)};
    const ops::HyperShape shape{c.g.hc_mult, c.g.hc_iters, c.g.hc_eps};
    for_row_blocks(c, n, [&](std::int32_t first, std::int32_t count) {
        mix_streams(c, hyper, streams + first * streams_per_row * h, count, mix + first * outs);
        for (std::int64_t row = first; row < first + count; ++row) {
            ops::hyper_coefficients(
                shape, {mix + row * outs, static_cast<std::size_t>(outs)}, hyper.raw->scale, hyper.raw->base,
                span_of(k.pre + row * streams_per_row, streams_per_row),
                span_of(k.post + row * streams_per_row, streams_per_row),
                span_of(k.comb + row * streams_per_row * streams_per_row, streams_per_row * streams_per_row));
            float* u = x + row * h;
            cpu::hc_collapse(c.isa, streams + row * streams_per_row * h, k.pre + row * streams_per_row, c.g.hc_mult,
                             c.g.hidden_size, c.rounding(), u);
            cpu::rms_norm(c.isa, u, norm.data(), c.g.hidden_size, c.g.rms_eps, c.rounding(), u);
        }
    });
    return k;
}

void leave_sublayer(const StepContext& c, const HyperCoefficients& k, const float* o, float* streams) {
    const std::int64_t x = c.g.hc_mult;
    const std::int64_t h = c.g.hidden_size;
    c.workers.run(c.num_rows(), [&](std::int64_t row) {
        cpu::hc_expand(c.isa, o + row * h, k.post + row * x, k.comb + row * x * x, c.g.hc_mult, c.g.hidden_size,
                       c.rounding(), streams + row * x * h);
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
