#include "compute/cpu/packed_matrix.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/check.h"

namespace megamoe::cpu {
namespace {

using ops::ScaleFormat;
using ops::WeightFormat;

constexpr std::int64_t kVector = 64;  // bytes
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

constexpr std::int32_t bits_per_code(WeightFormat format) {
    switch (format) {
        case WeightFormat::kF32:
            return 32;
        case WeightFormat::kBf16:
            return 16;
        case WeightFormat::kFp8:
            return 8;
        case WeightFormat::kFp4:
            return 4;
    }
    return 0;
}

constexpr std::int64_t row_bytes(WeightFormat format, std::int32_t cols) {
    return static_cast<std::int64_t>(cols) * bits_per_code(format) / 8;
}

template <class T>
T load(const std::byte* p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

template <class T>
void store(std::byte* p, T value) {
    std::memcpy(p, &value, sizeof value);
}

// Nibbles 0, 2, 4, 6 of x, in the low 16 bits.
constexpr std::uint32_t even_nibbles(std::uint32_t x) {
    x &= 0x0F0F0F0FU;
    x = (x | x >> 4) & 0x00FF00FFU;
    return (x | x >> 8) & 0xFFFFU;
}

// Writes one row, 4 bytes a vector at a time, into its lane of the panel. `source` is padded to whole vectors.
void place_row(WeightFormat format, const std::byte* source, std::int64_t bytes, std::int32_t row, std::byte* panel,
               std::int64_t stride) {
    for (std::int64_t i = 0; i < bytes; i += 4, panel += stride) {
        const auto word = load<std::uint32_t>(source + i);
        switch (format) {
            case WeightFormat::kF32:
            case WeightFormat::kBf16:
                store(panel + row * 4, word);
                break;
            case WeightFormat::kFp8: {
                std::byte* quarter = panel + row / 4 * 16 + row % 4 * 2;
                store(quarter, static_cast<std::uint16_t>(word));
                store(quarter + 8, static_cast<std::uint16_t>(word >> 16));
                break;
            }
            case WeightFormat::kFp4:
                store(panel + row * 4, even_nibbles(word) | even_nibbles(word >> 4) << 16);
                break;
        }
    }
}

}  // namespace

std::int32_t cols_a_vector(WeightFormat format) {
    return 32 / bits_per_code(format);
}

void PackedMatrix::Interleaved::Free::operator()(std::byte* p) const {
    std::free(p);
}

void PackedMatrix::Interleaved::allocate(std::int32_t num_panels, std::int64_t items, std::int64_t item_bytes) {
    items_ = items;
    item_bytes_ = item_bytes;
    bytes_ = num_panels * items * item_bytes;
    const bool large = bytes_ >= 2 * kHugePage;
    const std::int64_t alignment = large ? kHugePage : kVector;
    const auto size = static_cast<std::size_t>(round_up(std::max<std::int64_t>(bytes_, 1), alignment));
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(static_cast<std::size_t>(alignment), size)));
    MM_CHECK(data_ != nullptr, "out of memory for packed weights, bytes", bytes_);
    if (large) {
        // A hint: streaming gigabytes through 4 kB pages costs a page walk every 64 lines.
        (void)madvise(data_.get(), size, MADV_HUGEPAGE);
    }
    std::memset(data_.get(), 0, size);
}

std::byte* PackedMatrix::Interleaved::first(std::int32_t panel) const {
    const std::int64_t group_begin = panel / kGroupPanels * kGroupPanels;
    return data_ ? data_.get() + (group_begin * items_ + panel % kGroupPanels) * item_bytes_ : nullptr;
}

std::int32_t PackedMatrix::group_cols() const {
    return format_ == WeightFormat::kFp8 ? 128 : format_ == WeightFormat::kFp4 ? 32 : 0;
}

PackedMatrix PackedMatrix::pack(const ops::MatrixView& m, std::int32_t row_begin, std::int32_t num_rows) {
    MM_CHECK(row_begin >= 0 && num_rows >= 0 && row_begin + num_rows <= m.rows, "rows", row_begin, num_rows, m.rows);
    MM_CHECK(m.format != WeightFormat::kFp4 || m.cols % 32 == 0, "FP4 columns", m.cols);
    PackedMatrix packed;
    packed.format_ = m.format;
    packed.rows_ = num_rows;
    packed.cols_ = m.cols;
    packed.pack_codes(m, row_begin);
    if (packed.group_cols() != 0) {
        MM_CHECK(m.scale_format != ScaleFormat::kNone, "FP8 and FP4 weights need scales");
        packed.scale_format_ = m.scale_format;
        packed.pack_scales(m, row_begin);
    }
    return packed;
}

void PackedMatrix::pack_codes(const ops::MatrixView& m, std::int32_t row_begin) {
    const std::int64_t source_bytes = row_bytes(format_, cols_);
    std::vector<std::byte> row(static_cast<std::size_t>(row_bytes(format_, padded_cols())));
    codes_.allocate(num_panels(), padded_cols() / cols_a_vector(format_), kVector);
    for (std::int32_t r = 0; r < rows_; ++r) {
        const std::int32_t panel = r / kPanelRows;
        std::memcpy(row.data(), static_cast<const std::byte*>(m.weight) + (row_begin + r) * source_bytes,
                    static_cast<std::size_t>(source_bytes));
        place_row(format_, row.data(), std::ssize(row), r % kPanelRows, codes_.first(panel), code_stride(panel));
    }
}

// One scale a row, although a 128x128 block shares one: any range of rows then packs alike, for 0.8 % of the bytes.
void PackedMatrix::pack_scales(const ops::MatrixView& m, std::int32_t row_begin) {
    const std::int64_t size = scale_format_ == ScaleFormat::kE8m0 ? 1 : 4;
    const std::int64_t groups = (cols_ + group_cols() - 1) / group_cols();
    const std::int32_t rows_a_scale = format_ == WeightFormat::kFp8 ? 128 : 1;
    scales_.allocate(num_panels(), groups, kPanelRows * size);
    for (std::int32_t r = 0; r < rows_; ++r) {
        const std::int32_t panel = r / kPanelRows;
        const std::byte* source =
            static_cast<const std::byte*>(m.scale) + (row_begin + r) / rows_a_scale * groups * size;
        std::byte* target = scales_.first(panel) + r % kPanelRows * size;
        for (std::int64_t g = 0; g < groups; ++g) {
            std::memcpy(target + g * scale_stride(panel), source + g * size, static_cast<std::size_t>(size));
        }
    }
}

}  // namespace megamoe::cpu
