#include "compute/cpu/latent_ops.h"

#include "compute/cpu/latent_kernels.h"
#include "compute/ops/formats.h"
#include "compute/ops/rope.h"

namespace megamoe::cpu {
namespace {

constexpr std::int32_t kFp4Group = 32;  // channels that share a scale

}  // namespace

void rotate_heads(Isa isa, float* heads, std::int32_t num_heads, std::int32_t dim, std::span<const float> cos_sin,
                  bool inverse, bool round_bf16) {
    if (isa >= Isa::kAvx512 && cos_sin.size() % 16 == 0) {
        rotate_heads_avx512(heads, num_heads, dim, cos_sin.data(), static_cast<std::int32_t>(cos_sin.size()), inverse,
                            round_bf16);
        return;
    }
    for (std::int32_t h = 0; h < num_heads; ++h, heads += dim) {
        ops::rotate({heads, static_cast<std::size_t>(dim)}, cos_sin, inverse, round_bf16);
    }
}

void hadamard_fp4(Isa isa, std::span<float> x) {
    if (isa >= Isa::kAvx512 && x.size() >= 32) {
        hadamard_fp4_avx512(x.data(), static_cast<std::int32_t>(x.size()));
        return;
    }
    ops::hadamard_bf16(x);
    ops::simulate_fp4(x.data(), static_cast<std::int64_t>(x.size()), kFp4Group);
    for (float& v : x) {
        v = ops::round_bf16(v);
    }
}

}  // namespace megamoe::cpu
