// What one instruction set provides to convert.h. Internal to this folder; included by files compiled with wide flags.
#pragma once

#include <cstdint>

#include "compute/cpu/isa.h"

namespace megamoe::cpu {

struct ConvertKernels {
    Isa needs;
    void (*to_bf16)(const float* from, std::int64_t count, std::uint16_t* to);
    void (*add)(const float* from, std::int64_t count, float* sum);
    void (*add_bf16)(const std::uint16_t* from, std::int64_t count, float* sum);
    void (*round_bf16)(float* x, std::int64_t count);
};

extern const ConvertKernels kConvertScalar;
extern const ConvertKernels kConvertAvx512;

}  // namespace megamoe::cpu
