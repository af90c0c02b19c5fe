// Number formats of the released checkpoints: one code at a time, exact, the oracle for every packed kernel.
#pragma once

#include <bit>
#include <cstdint>

namespace megamoe::ops {

// Rounds to the nearest bfloat16, ties to even; NaN stays NaN.
inline std::uint16_t to_bf16(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {
        return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
    }
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

inline float from_bf16(std::uint16_t code) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(code) << 16);
}

inline float round_bf16(float x) {
    return from_bf16(to_bf16(x));
}

// E4M3 (fn): bias 7, max 448, no infinity, NaN = 0x7F and 0xFF.
float from_e4m3(std::uint8_t code);
// Clamps to +-448, then nearest, ties to even. NaN gives 0x7F.
std::uint8_t to_e4m3(float x);

// E2M1: codes 0..7 = 0, .5, 1, 1.5, 2, 3, 4, 6; bit 3 is the sign.
float from_e2m1(std::uint8_t code);
// Clamps to +-6, then nearest, ties to the even code.
std::uint8_t to_e2m1(float x);

// UE8M0: value 2^(b-127); 255 is NaN.
float from_e8m0(std::uint8_t code);

// 2^ceil(log2 v) for positive normal v, from the bits.
float pow2_ceil(float v);

// Quantise and dequantise `count` values in place by groups (the last may be shorter).
// FP8: scale 2^ceil(log2(max(amax, 1e-4) / 448)); FP4: scale 2^ceil(log2(max(amax, 6 * 2^-126) / 6)).
// Same  bit-identical to oracle.py's `simulate`
// Spec  model spec, 3.10
void simulate_fp8(float* x, std::int64_t count, std::int32_t group);
void simulate_fp4(float* x, std::int64_t count, std::int32_t group);

}  // namespace megamoe::ops
