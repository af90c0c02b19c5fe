// A weight matrix in the order the CPU kernels read it: panels of 16 output rows, codes kept in their released width.
// It does not keep the checkpoint alive: packing copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "compute/ops/matrix.h"

namespace megamoe::cpu {

inline constexpr std::int32_t kPanelRows = 16;   // one 512-bit lane an output row
inline constexpr std::int32_t kColPad = 32;      // columns are padded with zero codes to a multiple of this

class PackedMatrix {
  public:
    PackedMatrix() = default;
    // Packs rows [row_begin, row_begin + num_rows) of `m`.
    // Same  every element decodes to matrix_element() of the source
    static PackedMatrix pack(const ops::MatrixView& m, std::int32_t row_begin, std::int32_t num_rows);
    static PackedMatrix pack(const ops::MatrixView& m) { return pack(m, 0, m.rows); }

    ops::WeightFormat format() const { return format_; }
    std::int32_t rows() const { return rows_; }
    std::int32_t cols() const { return cols_; }
    std::int32_t num_panels() const { return (rows_ + kPanelRows - 1) / kPanelRows; }
    std::int32_t padded_cols() const { return (cols_ + kColPad - 1) / kColPad * kColPad; }
    // Bytes a product with this matrix must read: codes and scales, padding included.
    std::int64_t bytes() const { return bytes_; }
    const std::byte* codes(std::int32_t panel) const { return data_.get() + panel * panel_bytes_; }
    // kFp8: one float32 a (panel, 128 columns). kFp4: 16 UE8M0 bytes a (panel, 32 columns). Else null.
    const std::byte* scales(std::int32_t panel) const { return scales_.get() + panel * panel_scale_bytes_; }

  private:
    struct Free {
        void operator()(std::byte* p) const;
    };
    using Buffer = std::unique_ptr<std::byte[], Free>;  // 64-byte aligned

    ops::WeightFormat format_ = ops::WeightFormat::kF32;
    std::int32_t rows_ = 0;
    std::int32_t cols_ = 0;
    std::int64_t panel_bytes_ = 0;
    std::int64_t panel_scale_bytes_ = 0;
    std::int64_t bytes_ = 0;
    Buffer data_;
    Buffer scales_;
};

}  // namespace megamoe::cpu
