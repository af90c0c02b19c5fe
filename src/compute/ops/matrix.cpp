#include "compute/ops/matrix.h"

#include <cstring>

#include "base/check.h"
#include "compute/ops/formats.h"

namespace megamoe::ops {
namespace {

constexpr std::int32_t kFp8Block = 128;
constexpr std::int32_t kFp4Group = 32;

template <class T>
T load(const void* base, std::int64_t index) {
    T value;
    std::memcpy(&value, static_cast<const std::byte*>(base) + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
}

constexpr std::int64_t blocks(std::int32_t n, std::int32_t block) {
    return (n + block - 1) / block;
}

std::int64_t scale_count(const MatrixView& m) {
    switch (m.format) {
        case WeightFormat::kFp8:
            return blocks(m.rows, kFp8Block) * blocks(m.cols, kFp8Block);
        case WeightFormat::kFp4:
            return static_cast<std::int64_t>(m.rows) * blocks(m.cols, kFp4Group);
        default:
            return 0;
    }
}

float scale_at(const MatrixView& m, std::int32_t row, std::int32_t col) {
    const bool blocked = m.format == WeightFormat::kFp8;
    const std::int64_t index = blocked ? row / kFp8Block * blocks(m.cols, kFp8Block) + col / kFp8Block
                                       : row * blocks(m.cols, kFp4Group) + col / kFp4Group;
    switch (m.scale_format) {
        case ScaleFormat::kE8m0:
            return from_e8m0(load<std::uint8_t>(m.scale, index));
        case ScaleFormat::kF32:
            return load<float>(m.scale, index);
        case ScaleFormat::kNone:
            return 1.0F;
    }
    MM_CHECK(false, "scale format", static_cast<int>(m.scale_format));
}

}  // namespace

float matrix_element(const MatrixView& m, std::int32_t row, std::int32_t col) {
    const std::int64_t index = static_cast<std::int64_t>(row) * m.cols + col;
    switch (m.format) {
        case WeightFormat::kF32:
            return load<float>(m.weight, index);
        case WeightFormat::kBf16:
            return from_bf16(load<std::uint16_t>(m.weight, index));
        case WeightFormat::kFp8:
            return from_e4m3(load<std::uint8_t>(m.weight, index)) * scale_at(m, row, col);
        case WeightFormat::kFp4: {
            const auto pair = load<std::uint8_t>(m.weight, index / 2);
            const auto code = static_cast<std::uint8_t>(col % 2 == 0 ? pair & 15 : pair >> 4);
            return from_e2m1(code) * scale_at(m, row, col);
        }
    }
    MM_CHECK(false, "weight format", static_cast<int>(m.format));
}

std::int64_t matrix_bytes(const MatrixView& m) {
    const std::int64_t elements = static_cast<std::int64_t>(m.rows) * m.cols;
    const std::int64_t scale_bytes = scale_count(m) * (m.scale_format == ScaleFormat::kF32    ? 4
                                                       : m.scale_format == ScaleFormat::kE8m0 ? 1
                                                                                              : 0);
    switch (m.format) {
        case WeightFormat::kF32:
            return elements * 4;
        case WeightFormat::kBf16:
            return elements * 2;
        case WeightFormat::kFp8:
            return elements + scale_bytes;
        case WeightFormat::kFp4:
            return elements / 2 + scale_bytes;
    }
    MM_CHECK(false, "weight format", static_cast<int>(m.format));
}

}  // namespace megamoe::ops
