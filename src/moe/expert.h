// One expert on a batch of rows: the three products and the clamped activation between them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/workers.h"
#include "compute/cpu/gemm.h"
#include "compute/cpu/row_ops.h"
#include "config/engine_config.h"

namespace megamoe::moe {

struct PackedExpert {
    cpu::PackedMatrix w1;  // gate [I, H]
    cpu::PackedMatrix w3;  // up   [I, H]
    cpu::PackedMatrix w2;  // down [H, I]
};

// The experts of one layer. A rank reads only those it owns, and the shared one.
struct LayerExperts {
    std::vector<PackedExpert> routed;  // [E]
    PackedExpert shared;
};

// What stays the same for every expert of a model.
struct ExpertMath {
    cpu::Isa isa{};
    Profile profile{};
    std::int32_t hidden = 0;  // [H]
    std::int32_t inter = 0;   // [I]
    float limit = 0;          // swiglu_limit

    bool ds() const { return profile == Profile::kDs; }
    cpu::Math math() const { return ds() ? cpu::Math::kBf16 : cpu::Math::kF32; }
    cpu::Rounding rounding() const { return ds() ? cpu::Rounding::kBf16 : cpu::Rounding::kNone; }
};

inline constexpr std::int32_t kActGroup = 128;  // channels that share an FP8 activation scale

// In    x       [rows, H]; profile ds: already FP8-quantised values (cpu::quantise_fp8 by kActGroup)
//       weight  [rows], multiplied in before w2 (ds) or after it (hf); null = 1
// Out   out     [rows, H]; ds: bfloat16 values
// Same  row i depends on x[i], weight[i] and the expert alone
// Spec  model spec, 3.9 and 3.10
void run_expert(const ExpertMath& math, Workers& workers, const PackedExpert& expert, const float* x,
                const float* weight, std::int32_t rows, float* out);

}  // namespace megamoe::moe
