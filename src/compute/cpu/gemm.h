// out = a * w^T for packed weights: the one matrix product of the CPU engine, for 1 row (decode) to thousands
// (prefill).
#pragma once

#include <cstdint>
#include <span>

#include "base/workers.h"
#include "compute/cpu/isa.h"
#include "compute/cpu/packed_matrix.h"

namespace megamoe::cpu {

// How products are formed. Scales of FP8 and FP4 weights are applied to the float32 sum of their group (128 or 32
// columns).
enum class Math : std::uint8_t {
    kF32,   // float32 fused multiply-add (profile hf)
    kBf16,  // `a` holds bfloat16 values; exact products, float32 sums (profile ds). A value that is not bf16 is rounded.
};

struct Gemm {
    const PackedMatrix* w = nullptr;
    const float* a = nullptr;  // [m, cols], row stride lda
    std::int64_t lda = 0;
    std::int32_t m = 0;    // may be 0
    float* out = nullptr;  // [m, rows], row stride ldo
    std::int64_t ldo = 0;
    Math math = Math::kF32;
    bool round_bf16 = false;  // round each output to bfloat16
};

// Same  out[i, j] depends on row i of `a` and row j of `w` alone: bit-identical for any m, any team size, any
//       neighbours on one ISA (kF32: all ISAs; kBf16: AVX-512-BF16 rounds otherwise than the rest, 1e-5 relative)
// Cost  m <= 16: weights are decoded in registers, for 4 rows at a time; larger m: once a block of 384 rows, to L1.
//       No allocation once a thread has seen its largest call
// Thread  the owner of `workers`; panels, and rows if panels are few, are spread over the team
void gemm(Isa isa, Workers& workers, const Gemm& g);

// Several products of the same rows: `a`, lda, m, math and the matrices' cols are equal. The rows are packed once.
void gemm(Isa isa, Workers& workers, std::span<const Gemm> products);

}  // namespace megamoe::cpu
