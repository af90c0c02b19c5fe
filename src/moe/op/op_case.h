// Operands of a test of the operator: sizes, experts as released codes, rows. Random, and for one seed the same on
// every machine; no checkpoint is written.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/workers.h"
#include "compute/ops/matrix.h"
#include "moe/expert.h"

namespace megamoe::moe::op {

struct Geometry {
    std::string_view name;
    std::int32_t hidden = 0;       // [H]
    std::int32_t inter = 0;        // [I]
    std::int32_t num_experts = 0;  // [E], all ranks together
    std::int32_t top_k = 0;        // [K]
};

inline constexpr float kSwigluLimit = 10;  // of the released models

// One GPU's share of the released models, and one for tests.
std::span<const Geometry> geometries();
// Error kInvalidArgument: no such name; the nearest one
[[nodiscard]] Result<Geometry> find_geometry(std::string_view name);

// "fp4", "fp8", "bf16"
[[nodiscard]] Result<ops::WeightFormat> parse_format(std::string_view name);
std::string_view name_of(ops::WeightFormat format);

// A matrix as a checkpoint stores it, scales in UE8M0.
struct RawMatrix {
    ops::WeightFormat format{};
    std::int32_t rows = 0;
    std::int32_t cols = 0;
    std::vector<std::uint8_t> codes;
    std::vector<std::uint8_t> scales;

    ops::MatrixView view() const;
};

struct RawExpert {
    RawMatrix w1;  // gate [I, H]
    RawMatrix w3;  // up   [I, H]
    RawMatrix w2;  // down [H, I]
};

inline constexpr std::int32_t kSharedExpert = -1;

// Every finite code and several scales occur. Gate and up are large enough for some of their outputs to pass
// kSwigluLimit.
// In    index  0..E-1, or kSharedExpert, which is FP8 where the routed ones are FP4, as in the released models
RawExpert random_expert(const Geometry& geometry, ops::WeightFormat format, std::uint64_t seed, std::int32_t index);

PackedExpert pack(const RawExpert& raw);
// The experts of a layer, packed; their codes are not kept.
LayerExperts random_layer(const Geometry& geometry, ops::WeightFormat format, std::uint64_t seed, Workers& workers);

// Bytes of codes and scales of all experts; packed they are about as many.
std::int64_t layer_bytes(const Geometry& geometry, ops::WeightFormat format);
// Error kResourceExhausted: this machine has no `bytes` left (with some room); the hint names --experts
[[nodiscard]] Result<Done> check_memory(std::int64_t bytes, const Geometry& geometry);

// [rows, H], normal, bfloat16 values.
std::vector<float> random_rows(std::int64_t rows, std::int32_t hidden, std::uint64_t seed);

}  // namespace megamoe::moe::op
