// Rows between float32 and bfloat16 codes: how they travel between ranks and come back.
#pragma once

#include <cstdint>

#include "compute/cpu/isa.h"

namespace megamoe::cpu {

// to[i] = ops::to_bf16(from[i]).  Same: the same bits on every ISA
void to_bf16(Isa isa, const float* from, std::int64_t count, std::uint16_t* to);

// sum[i] += from[i], and the same from codes.  Same: the same bits on every ISA
void add(Isa isa, const float* from, std::int64_t count, float* sum);
void add_bf16(Isa isa, const std::uint16_t* from, std::int64_t count, float* sum);

// x[i] = bfloat16(x[i]), kept as float32.  Same: the same bits on every ISA
void round_bf16(Isa isa, float* x, std::int64_t count);

}  // namespace megamoe::cpu
