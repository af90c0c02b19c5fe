// The AVX-512 halves of latent_ops.h. Internal to this folder; included by a file compiled with wide flags.
#pragma once

#include <cstdint>

namespace megamoe::cpu {

// Rotates the last `rope_dim` (a multiple of 16) of `dim` values of each head.
void rotate_heads_avx512(float* heads, std::int32_t num_heads, std::int32_t dim, const float* cos_sin,
                         std::int32_t rope_dim, bool inverse, bool round_bf16);

// `n` a power of two >= 32.
void hadamard_fp4_avx512(float* x, std::int32_t n);

}  // namespace megamoe::cpu
