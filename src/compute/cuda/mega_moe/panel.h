// How expert weights lie in device memory for the fused operator. A panel is 256 weight rows by 128 columns, one
// pipeline stage of a task, contiguous: codes, exponents, bases. All panels of a task follow each other.
//
// A panel holds four tiles of 64 rows, one matrix instruction each. In the first layer a tile pairs gate and up: of
// each 16 rows, eight gate rows are followed by the eight up rows of the same channels, so both land in one thread's
// accumulators.
//
// MXFP4 stays packed. A tile has one base exponent b0 = (largest exponent of its groups) - 6, and every group of 32
// columns an offset 0..14 to it, a nibble: element = e2m1 * 2^(offset - 8) * 2^b0, and the first factor is an E4M3
// number, exactly. That holds while the exponents of a tile span at most 14; deeper groups are rounded to offset 0 and
// counted.
#pragma once

#include <cstdint>

#include "compute/mega/hd.h"

namespace megamoe::cuda {

enum class ExpertFormat : std::int32_t { kMxfp4 = 0, kFp8 = 1 };

inline constexpr std::int32_t kPanelRows = 256;
inline constexpr std::int32_t kPanelCols = 128;
inline constexpr std::int32_t kTileRows = 64;
inline constexpr std::int32_t kTiles = kPanelRows / kTileRows;
inline constexpr std::int32_t kPanelChannels = kPanelRows / 2;  // activation channels of a first-layer panel
inline constexpr std::int32_t kGroup = 32;                      // columns that share an MXFP4 exponent
inline constexpr std::int32_t kMaxOffset = 14;

// Byte offsets inside a panel.
struct PanelLayout {
    std::int32_t tile_codes;      // bytes of a tile's codes; tiles follow each other
    std::int32_t exponents;       // MXFP4: u32 [tile][warp][row % 8]
    std::int32_t tile_exponents;  // bytes of a tile's exponents
    std::int32_t bases;           // f32 [tile][2]: rows whose (row / 8) is even, odd
    std::int32_t bytes;
};

MM_HD constexpr PanelLayout panel_layout(ExpertFormat format) {
    const std::int32_t codes = format == ExpertFormat::kMxfp4 ? kTileRows * kPanelCols / 2 : kTileRows * kPanelCols;
    const std::int32_t exponents = format == ExpertFormat::kMxfp4 ? kTileRows * (kPanelCols / kGroup) / 2 : 0;
    return {codes, kTiles * codes, exponents, kTiles * (codes + exponents),
            kTiles * (codes + exponents) + kTiles * 2 * 4};
}

// Row of the checkpoint's matrix behind row `row` of a panel.
struct SourceRow {
    std::int32_t matrix;  // 1, 2 or 3: w1 gate, w2 down, w3 up
    std::int32_t row;
};

MM_HD constexpr SourceRow source_row(std::int32_t layer, std::int32_t panel, std::int32_t row) {
    if (layer == 2) {
        return {2, panel * kPanelRows + row};
    }
    const std::int32_t channel = panel * kPanelChannels + row / 16 * 8 + row % 8;
    return {(row / 8) % 2 == 0 ? 1 : 3, channel};
}

// Codes of a tile as thread `thread` of the warpgroup reads them: two 16-byte vectors, word `step * 2 + half` for the
// 32 columns of `step` and row + 8 * half. Nibble i < 4 of a word is column 4 q + i, nibble i >= 4 is column 16 + 4 q +
// i - 4. Bits 0..2 of a nibble are the magnitude. The signs sit where one mask finds them: those of nibbles 0..3 in
// bits 8 i + 7, those of nibbles 4..7 in bits 8 (i - 4) + 3.
MM_HD constexpr std::int32_t code_word_offset(std::int32_t thread, std::int32_t step, std::int32_t half) {
    return ((step / 2) * 128 + thread) * 16 + ((step % 2) * 2 + half) * 4;
}

MM_HD constexpr std::uint32_t place_code(std::int32_t nibble, std::uint32_t code) {
    const std::int32_t sign_bit = nibble < 4 ? 8 * nibble + 7 : 8 * (nibble - 4) + 3;
    return ((code & 7U) << (4 * nibble)) | ((code >> 3 & 1U) << sign_bit);
}

MM_HD constexpr std::int32_t tile_row(std::int32_t thread, std::int32_t half) {
    return thread / 32 * 16 + half * 8 + thread % 32 / 4;
}

MM_HD constexpr std::int32_t tile_col(std::int32_t thread, std::int32_t step, std::int32_t nibble) {
    return step * 32 + (nibble / 4) * 16 + thread % 4 * 4 + nibble % 4;
}

// Exponent offsets of a row and its neighbour 8 below: nibble step * 2 + half of the word of (warp, row % 8).
MM_HD constexpr std::int32_t exponent_word_offset(std::int32_t thread) {
    return (thread / 32 * 8 + thread % 32 / 4) * 4;
}

// A code whose group lies more than 14 below the largest, rounded to the grid of offset 0. `below` >= 1: how much
// deeper.
MM_HD constexpr std::uint32_t round_deep_code(std::uint32_t code, std::int32_t below) {
    constexpr float kMagnitude[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
    float value = kMagnitude[code & 7U];
    for (std::int32_t i = 0; i < below && value > 0.01F; ++i) {
        value *= 0.5F;
    }
    std::uint32_t best = 0;
    for (std::uint32_t c = 1; c < 8; ++c) {
        const float now = kMagnitude[best] > value ? kMagnitude[best] - value : value - kMagnitude[best];
        const float then = kMagnitude[c] > value ? kMagnitude[c] - value : value - kMagnitude[c];
        if (then < now || (then == now && c % 2 == 0)) {
            best = c;
        }
    }
    return (code & 8U) | best;
}

// What the fold met; nothing was lost if deep_groups is 0.
struct FoldReport {
    std::uint32_t max_span;     // largest difference of exponents inside a tile, zero groups aside
    std::uint32_t deep_groups;  // groups that had to be rounded
};

}  // namespace megamoe::cuda
