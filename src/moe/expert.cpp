#include "moe/expert.h"

#include <algorithm>

namespace megamoe::moe {
namespace {

// Grows and never shrinks, so that a steady state allocates nothing.
float* scratch(std::vector<float>& buffer, std::int64_t floats) {
    if (static_cast<std::int64_t>(buffer.size()) < floats) {
        buffer.resize(static_cast<std::size_t>(floats));
    }
    return buffer.data();
}

// Bounds the activations of a long prefill: they stay in the cache between the products.
constexpr std::int32_t kRowBlock = 512;

}  // namespace

void run_expert(const ExpertMath& math, Workers& workers, const PackedExpert& expert, const float* x,
                const float* weight, std::int32_t rows, float* out) {
    thread_local std::vector<float> gate_buffer;
    thread_local std::vector<float> up_buffer;
    for (std::int32_t begin = 0; begin < rows; begin += kRowBlock) {
        const std::int32_t n = std::min(kRowBlock, rows - begin);
        float* gate = scratch(gate_buffer, std::int64_t{n} * math.inter);
        float* up = scratch(up_buffer, std::int64_t{n} * math.inter);
        const float* in = x + std::int64_t{begin} * math.hidden;
        float* block_out = out + std::int64_t{begin} * math.hidden;
        const auto product = [&](const cpu::PackedMatrix& w, const float* a, float* y) {
            return cpu::Gemm{.w = &w,
                             .a = a,
                             .lda = w.cols(),
                             .m = n,
                             .out = y,
                             .ldo = w.rows(),
                             .math = math.math(),
                             .round_bf16 = math.ds()};
        };
        const cpu::Gemm both[] = {product(expert.w1, in, gate), product(expert.w3, in, up)};
        cpu::gemm(math.isa, workers, both);
        workers.run(n, [&](std::int64_t i) {
            float* g = gate + i * math.inter;
            const float before = math.ds() && weight != nullptr ? weight[begin + i] : 1.0F;
            cpu::swiglu(math.isa, g, up + i * math.inter, math.inter, math.limit, before, math.rounding(), g);
            if (math.ds()) {
                cpu::quantise_fp8(math.isa, g, math.inter, kActGroup);
            }
        });
        cpu::gemm(math.isa, workers, product(expert.w2, gate, block_out));
        if (!math.ds() && weight != nullptr) {
            for (std::int32_t i = 0; i < n; ++i) {
                float* row = block_out + std::int64_t{i} * math.hidden;
                for (std::int32_t c = 0; c < math.hidden; ++c) {
                    row[c] *= weight[begin + i];
                }
            }
        }
    }
}

}  // namespace megamoe::moe
