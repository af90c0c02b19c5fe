// What one instruction set provides to gemm(): plain functions on one tile. Internal to this folder.
// Included by files compiled with wide flags, hence no templates and nothing inline.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/cpu/isa.h"
#include "compute/ops/matrix.h"

namespace megamoe::cpu {

// A tile is up to 6 rows of `a` times 4 panels: 24 accumulators of 16 lanes, and registers left for operands.
inline constexpr std::int32_t kTileRows = 6;
inline constexpr std::int32_t kTilePanels = 4;
inline constexpr std::int32_t kTileWidth = kTilePanels * 16;
// Rows of `a` are packed in blocks of 128 columns: [block][row][128 values]. No group of scaled columns straddles two.
inline constexpr std::int32_t kBlockCols = 128;

// acc[r][16 * p + n] += sum over `cols` columns of a[r] * panel p, row n.
//   group_cols = 0: products join the accumulator one by one, in ascending columns
//   else: products of a group are summed from zero, then acc = fma(sum, scale, acc), in ascending groups
struct Tile {
    const std::byte* codes[kTilePanels];
    const std::byte* scales[kTilePanels];  // of the first group; null when group_cols = 0
    std::int64_t code_stride;              // bytes from a panel's vector to its next
    std::int64_t scale_stride;             // bytes from a group's scales to the next group's
    bool f32_scales;                       // else UE8M0 bytes
    std::int32_t group_cols;
    std::int32_t cols;           // multiple of 32; starts at a block of `a`
    const std::byte* a;          // first row of the tile in the first block
    std::int64_t a_block_bytes;  // from a block to the next
    std::int32_t rows;           // 1..kTileRows
    float* acc;                  // [rows][kTileWidth], 64-byte aligned
};

struct GemmKernels {
    Isa needs;
    ops::WeightFormat plain;     // kBf16: products of bfloat16 pairs; kF32: float32 fused multiply-adds
    std::int32_t straight_rows;  // rows that a tile of another format than `plain` takes at most
    // Packs a row: rounds to bfloat16 if asked (always if plain = kBf16), pads with zeros to `padded_cols`.
    void (*pack_row)(const float* a, std::int32_t cols, std::int32_t padded_cols, bool round_bf16,
                     std::int64_t block_bytes, std::byte* out);
    // By weight format: decodes `cols` columns of a panel to vectors of the plain format, kTilePanels vectors apart.
    // Null for the plain format and for formats that these kernels do not take.
    void (*decode[4])(const std::byte* codes, std::int64_t code_stride, std::int32_t cols, std::byte* out);
    // By weight format: the product straight from the codes. Null: decode first. Never null for the plain format.
    void (*tile[4])(const Tile& t);
    void (*tile_decoded)(const Tile& t);  // the plain product again, for codes that decode() left in L1
    // Copies n sums, rounded to bfloat16 if asked.
    void (*store)(const float* acc, std::int32_t n, bool round_bf16, float* out);
};

extern const GemmKernels kGemmScalar;
extern const GemmKernels kGemmAvx2;
extern const GemmKernels kGemmAvx512;
extern const GemmKernels kGemmAvx512Bf16;

}  // namespace megamoe::cpu
