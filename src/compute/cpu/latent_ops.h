// Operators on queries and latent vectors that the forward calls for every head of every token: ops::rotate,
// ops::hadamard_bf16 and ops::simulate_fp4 with variants by instruction set.
// Same  the bits of the reference in compute/ops, on every ISA
#pragma once

#include <cstdint>
#include <span>

#include "compute/cpu/isa.h"

namespace megamoe::cpu {

// `num_heads` heads of `dim` values next to each other, all at the same position.
void rotate_heads(Isa isa, float* heads, std::int32_t num_heads, std::int32_t dim, std::span<const float> cos_sin,
                  bool inverse, bool round_bf16);

// Hadamard rotation, FP4 values by groups of 32, rounded to bfloat16: what profile ds makes of an index key or query.
void hadamard_fp4(Isa isa, std::span<float> x);

}  // namespace megamoe::cpu
