// Rotary position embedding: frequencies of both kinds, and the rotation of interleaved pairs in the last channels of a
// head.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/model_geometry.h"

namespace megamoe::ops {

enum class RopeKind : std::uint8_t {
    kMain,      // layers with ratio 0: base rope_theta, no YaRN
    kCompress,  // layers with ratio > 0: base compress_rope_theta with YaRN, for everything in the layer
};

// f_i for i in [0, rope_dim / 2), evaluated in float64 and rounded once.
// Spec  model spec, 3.1 (the check values are a test)
std::vector<float> rope_frequencies(const ModelGeometry& geometry, RopeKind kind);

// cos and sin of position * f_i; the angle is the float32 product.
// Out   cos_sin [rope_dim]: cos of pair 0, sin of pair 0, cos of pair 1, ...
void rope_angles(std::span<const float> frequencies, std::int32_t position, std::span<float> cos_sin);

// Rotates the last cos_sin.size() channels of `head` in place; inverse = by the negative angle.
// With round_bf16 each result is rounded to bfloat16.
void rotate(std::span<float> head, std::span<const float> cos_sin, bool inverse, bool round_bf16);

// The normalised Walsh-Hadamard transform in natural order, in place; the size is a power of two. Results are rounded
// to bfloat16.
// Spec  model spec, 3.8
void hadamard_bf16(std::span<float> x);

}  // namespace megamoe::ops
