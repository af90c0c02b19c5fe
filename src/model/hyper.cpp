#include "model/hyper.h"

#include "compute/ops/hyper.h"

namespace megamoe::model {
namespace {

// mix [num, fn.rows()] = fn * (vec(streams) / rms(vec(streams))), always in float32.
float* mix_streams(const StepContext& c, const Hyper& hyper, const float* streams, std::int32_t num) {
    const std::int32_t width = c.g.hc_mult * c.g.hidden_size;
    const std::int32_t outs = hyper.fn.rows();
    float* normed = c.scratch.take(std::int64_t{num} * width);
    float* mix = c.scratch.take(std::int64_t{num} * outs);
    c.workers.run(num, [&](std::int64_t row) {
        cpu::rms_norm(c.isa, streams + row * width, nullptr, width, c.g.rms_eps, cpu::Rounding::kNone,
                      normed + row * width);
    });
    cpu::gemm(c.isa, c.workers,
              {.w = &hyper.fn, .a = normed, .lda = width, .m = num, .out = mix, .ldo = outs, .math = cpu::Math::kF32});
    return mix;
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
    const float* mix = mix_streams(c, hyper, streams, n);
    const HyperCoefficients k{c.scratch.take(n * streams_per_row), c.scratch.take(n * streams_per_row),
                              c.scratch.take(n * streams_per_row * streams_per_row)};
    const ops::HyperShape shape{c.g.hc_mult, c.g.hc_iters, c.g.hc_eps};
    const std::int64_t outs = hyper.fn.rows();
    c.workers.run(n, [&](std::int64_t row) {
        ops::hyper_coefficients(
            shape, {mix + row * outs, static_cast<std::size_t>(outs)}, hyper.raw->scale, hyper.raw->base,
            span_of(k.pre + row * streams_per_row, streams_per_row),
            span_of(k.post + row * streams_per_row, streams_per_row),
            span_of(k.comb + row * streams_per_row * streams_per_row, streams_per_row * streams_per_row));
        float* u = x + row * h;
        cpu::hc_collapse(c.isa, streams + row * streams_per_row * h, k.pre + row * streams_per_row, c.g.hc_mult,
                         c.g.hidden_size, c.rounding(), u);
        cpu::rms_norm(c.isa, u, norm.data(), c.g.hidden_size, c.g.rms_eps, c.rounding(), u);
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
    const float* mix = mix_streams(c, hyper, streams, num);
    const std::int64_t x = c.g.hc_mult;
    const std::int64_t h = c.g.hidden_size;
    float* pre = c.scratch.take(num * x);
    c.workers.run(num, [&](std::int64_t row) {
        ops::hyper_pre({mix + row * x, static_cast<std::size_t>(x)}, hyper.raw->scale[0], hyper.raw->base, c.g.hc_eps,
                       span_of(pre + row * x, x));
        float* u = out + row * h;
        cpu::hc_collapse(c.isa, streams + row * x * h, pre + row * x, c.g.hc_mult, c.g.hidden_size, c.rounding(), u);
        cpu::rms_norm(c.isa, u, c.model.weights().norm.data(), c.g.hidden_size, c.g.rms_eps, c.rounding(), u);
    });
}

}  // namespace megamoe::model
