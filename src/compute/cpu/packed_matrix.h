// A weight matrix in the order the CPU kernels read it: panels of 16 output rows, codes kept in their released width.
// It does not keep the checkpoint alive: packing copies.
//
// Within a panel, output row n owns the 32-bit lane n of every 64-byte vector; columns ascend from vector to vector:
//   kF32   1 column a vector:  lane = the float32
//   kBf16  2 columns a vector: lane = even column in the low half, odd column in the high half
//   kFp8   4 columns a vector: each 16-byte quarter holds 4 rows; its low 8 bytes are columns 0 and 1 of these rows,
//          its high 8 bytes columns 2 and 3, so that unpacking bytes to 16-bit words gives the lanes of kBf16
//   kFp4   8 columns a vector: nibble j of a lane's low half is column 2j, nibble j of its high half column 2j + 1
// The vectors of 4 panels (fewer in the last group) take turns, and so do their scales: a product with one row then
// reads memory in one ascending stream, which a core fetches half as fast again as four short ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "compute/ops/matrix.h"

namespace megamoe::cpu {

inline constexpr std::int32_t kPanelRows = 16;   // one 512-bit lane an output row
inline constexpr std::int32_t kGroupPanels = 4;  // panels whose vectors are interleaved
inline constexpr std::int32_t kColPad = 32;      // columns are padded with zero codes to a multiple of this

class PackedMatrix {
  public:
    PackedMatrix() = default;
    // Packs rows [row_begin, row_begin + num_rows) of `m`. FP4 needs cols to be a multiple of 32.
    // Same  every element decodes to matrix_element() of the source
    static PackedMatrix pack(const ops::MatrixView& m, std::int32_t row_begin, std::int32_t num_rows);
    static PackedMatrix pack(const ops::MatrixView& m) { return pack(m, 0, m.rows); }

    ops::WeightFormat format() const { return format_; }
    ops::ScaleFormat scale_format() const { return scale_format_; }  // kE8m0 or kF32 for FP8 and FP4, else kNone
    std::int32_t rows() const { return rows_; }
    std::int32_t cols() const { return cols_; }
    std::int32_t num_panels() const { return (rows_ + kPanelRows - 1) / kPanelRows; }
    std::int32_t padded_cols() const { return (cols_ + kColPad - 1) / kColPad * kColPad; }
    // Columns that share a scale: 128 for kFp8, 32 for kFp4, 0 for formats without scales.
    std::int32_t group_cols() const;
    // Bytes a product with this matrix must read: codes and scales, padding included.
    std::int64_t bytes() const { return codes_.bytes() + scales_.bytes(); }
    // The first vector of a panel, and the bytes from each to the panel's next.
    const std::byte* codes(std::int32_t panel) const { return codes_.first(panel); }
    std::int64_t code_stride(std::int32_t panel) const { return codes_.stride(panel, num_panels()); }
    // 16 scales (one a row) for each group of columns, as bytes (kE8m0) or float32 (kF32). Null without scales.
    const std::byte* scales(std::int32_t panel) const { return scales_.first(panel); }
    std::int64_t scale_stride(std::int32_t panel) const { return scales_.stride(panel, num_panels()); }

  private:
    // Fixed-size items of each panel, those of a group of panels taking turns.
    class Interleaved {
      public:
        void allocate(std::int32_t num_panels, std::int64_t items, std::int64_t item_bytes);
        std::int64_t bytes() const { return bytes_; }
        std::byte* first(std::int32_t panel) const;
        std::int64_t stride(std::int32_t panel, std::int32_t num_panels) const {
            return item_bytes_ * std::min(kGroupPanels, num_panels - panel / kGroupPanels * kGroupPanels);
        }

      private:
        struct Free {
            void operator()(std::byte* p) const;
        };
        std::unique_ptr<std::byte[], Free>
            data_;                // 64-byte aligned; large ones on huge pages where the system has them
        std::int64_t items_ = 0;  // of each panel
        std::int64_t item_bytes_ = 0;
        std::int64_t bytes_ = 0;
    };
    void pack_codes(const ops::MatrixView& m, std::int32_t row_begin);
    void pack_scales(const ops::MatrixView& m, std::int32_t row_begin);

    ops::WeightFormat format_ = ops::WeightFormat::kF32;
    ops::ScaleFormat scale_format_ = ops::ScaleFormat::kNone;
    std::int32_t rows_ = 0;
    std::int32_t cols_ = 0;
    Interleaved codes_;
    Interleaved scales_;
};

// Columns of a 64-byte vector.
std::int32_t cols_a_vector(ops::WeightFormat format);

}  // namespace megamoe::cpu
