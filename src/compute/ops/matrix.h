// A weight matrix [rows, cols] as the checkpoint stores it: pointers into mapped memory and how to read them. It owns
// nothing.
#pragma once

#include <cstdint>

namespace megamoe::ops {

enum class WeightFormat : std::uint8_t {
    kF32,   // no scale
    kBf16,  // no scale
    kFp8,   // E4M3, a scale for each 128x128 block, the last block of a row or column may be smaller
    kFp4,   // E2M1, two codes a byte, the even column in the low nibble; a UE8M0 scale for each row and 32 columns
};

enum class ScaleFormat : std::uint8_t { kNone, kE8m0, kF32 };

struct MatrixView {
    WeightFormat format = WeightFormat::kF32;
    ScaleFormat scale_format = ScaleFormat::kNone;
    std::int32_t rows = 0;         // outputs
    std::int32_t cols = 0;         // inputs (logical: FP4 has cols/2 bytes a row)
    const void* weight = nullptr;  // row-major; not necessarily aligned to the element
    const void* scale = nullptr;   // FP8 [ceil(rows/128), ceil(cols/128)]; FP4 [rows, cols/32]
};

// Element (row, col) as float32, decoded from scratch. Slow on purpose: it is the oracle of the packed layouts.
// Spec  model spec, 2.5
float matrix_element(const MatrixView& m, std::int32_t row, std::int32_t col);

// Bytes of weight and scale in the checkpoint.
std::int64_t matrix_bytes(const MatrixView& m);

}  // namespace megamoe::ops
