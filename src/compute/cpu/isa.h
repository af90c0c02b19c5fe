// Which instruction set this machine has, chosen once at start and printed.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace megamoe::cpu {

enum class Isa : std::uint8_t { kScalar, kAvx2, kAvx512, kAvx512Bf16 };  // each holds those before it

Isa detect_isa();
std::string_view name(Isa isa);
// "scalar", "avx2", "avx512", "avx512bf16"; kInvalidArgument: unknown, or more than this machine has.
Result<Isa> parse_isa(std::string_view text);

}  // namespace megamoe::cpu
