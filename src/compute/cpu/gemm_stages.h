// The two halves of gemm(), for callers that keep rows packed between products or cut a product into their own tasks.
// Single-threaded; the sums are those of gemm(), bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/cpu/gemm.h"

namespace megamoe::cpu {

inline constexpr std::int32_t kPackCols =
    128;  // packed rows are cut into blocks of so many columns: [block][row][column]
inline constexpr std::int32_t kTaskPanels = 4;                       // panels of one task
inline constexpr std::int32_t kTaskRows = kTaskPanels * kPanelRows;  // output columns of one task
inline constexpr std::int32_t kMaxTaskRows = 384;                    // rows of `a` one task takes at most

// How rows are packed for products with matrices of one format.
struct Packing {
    Isa isa{};
    bool bf16 = false;  // elements are bfloat16, else float32
    std::int32_t element_bytes() const { return bf16 ? 2 : 4; }
    std::int64_t block_bytes(std::int32_t rows) const { return std::int64_t{kPackCols} * element_bytes() * rows; }
    std::int64_t bytes(std::int32_t rows, std::int32_t cols) const {
        return block_bytes(rows) * ((cols + kPackCols - 1) / kPackCols);
    }
};
Packing packing_for(Isa isa, Math math, ops::WeightFormat format);

// Packs columns [0, cols) of one row at place `row` of `rows`, with zeros up to a multiple of kColPad.
// In    a: float32 (rounded if the packing is bfloat16), or bfloat16 codes
void pack_row(Packing packing, const float* a, std::int32_t cols, std::int32_t row, std::int32_t rows,
              std::byte* packed);
void pack_row(Packing packing, const std::uint16_t* a, std::int32_t cols, std::int32_t row, std::int32_t rows,
              std::byte* packed);

// out[r, 0..width) = rows of `packed` times panels [first_panel, first_panel + kTaskPanels) of w, width = what w has
// left.
// In    rows in 1..kMaxTaskRows, packed for w's format; out row stride ldo
void gemm_task(Isa isa, Math math, const PackedMatrix& w, std::int32_t first_panel, const std::byte* packed,
               std::int32_t rows, bool round_bf16, float* out, std::int64_t ldo);

}  // namespace megamoe::cpu
