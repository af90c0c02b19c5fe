#include "compute/cuda/mega_moe/prepare.h"

namespace megamoe::cuda {
namespace {

struct Where {
    std::int32_t layer;
    std::int32_t expert;
    std::int32_t panel;   // down the matrix
    std::int32_t column;  // panel along it
    std::int32_t tile;
};

// The checkpoint's code and exponent of an element of a tile; rows past the matrix are zero.
struct Source {
    const RawExperts& raw;
    Where at;

    __device__ std::int32_t rows(std::int32_t matrix) const { return matrix == 2 ? raw.hidden : raw.inter; }
    __device__ std::int32_t cols(std::int32_t matrix) const { return matrix == 2 ? raw.inter : raw.hidden; }
    __device__ SourceRow row(std::int32_t tile_row) const {
        return source_row(at.layer, at.panel, at.tile * kTileRows + tile_row);
    }
    __device__ std::int64_t element(SourceRow r, std::int32_t col) const {
        return (std::int64_t{at.expert} * rows(r.matrix) + r.row) * cols(r.matrix) + at.column * kPanelCols + col;
    }
    __device__ std::uint32_t fp4_code(SourceRow r, std::int32_t col) const {
        if (r.row >= rows(r.matrix)) {
            return 0;
        }
        const std::int64_t i = element(r, col);
        return (raw.codes[r.matrix][i / 2] >> (i % 2 * 4)) & 15U;
    }
    __device__ std::int32_t fp4_exponent(SourceRow r, std::int32_t col) const {
        if (r.row >= rows(r.matrix)) {
            return 0;
        }
        return static_cast<const std::uint8_t*>(raw.scales[r.matrix])[element(r, col) / kGroup];
    }
    __device__ bool zero_group(SourceRow r, std::int32_t step) const {
        std::uint32_t any = 0;
        for (std::int32_t i = 0; i < kGroup; ++i) {
            any |= fp4_code(r, step * kGroup + i) & 7U;
        }
        return any == 0;
    }
};

__device__ std::uint32_t bits_of(float v) {
    return __float_as_uint(v);
}

// One block of 128 threads, one tile: thread t handles the words that thread t of the math warpgroup reads.
__device__ void prepare_fp4_tile(const Source& source, std::byte* panel, FoldReport* report) {
    constexpr PanelLayout kLayout = panel_layout(ExpertFormat::kMxfp4);
    __shared__ std::int32_t largest;
    __shared__ std::int32_t smallest;
    const auto thread = static_cast<std::int32_t>(threadIdx.x);
    const std::int32_t tile = source.at.tile;
    if (thread == 0) {
        largest = -1;
        smallest = 1 << 20;
    }
    __syncthreads();
    for (std::int32_t i = thread; i < kTileRows * 4; i += 128) {
        const SourceRow r = source.row(i / 4);
        if (!source.zero_group(r, i % 4)) {
            const std::int32_t exponent = source.fp4_exponent(r, i % 4 * kGroup);
            atomicMax(&largest, exponent);
            atomicMin(&smallest, exponent);
        }
    }
    __syncthreads();
    const std::int32_t top = largest;
    std::uint32_t offsets = 0;
    for (std::int32_t step = 0; step < 4; ++step) {
        for (std::int32_t half = 0; half < 2; ++half) {
            const SourceRow r = source.row(tile_row(thread, half));
            const std::int32_t offset = source.fp4_exponent(r, step * kGroup) - top + kMaxOffset;
            const bool zero = offset < 0 && source.zero_group(r, step);
            if (offset < 0 && !zero && thread % 4 == 0) {
                atomicAdd(&report->deep_groups, 1U);
            }
            const std::int32_t kept = offset < 0            ? 0
                                      : offset > kMaxOffset ? kMaxOffset
                                                            : offset;  // above: a zero group
            offsets |= static_cast<std::uint32_t>(kept) << (4 * (step * 2 + half));
            std::uint32_t word = 0;
            for (std::int32_t nibble = 0; nibble < 8; ++nibble) {
                const std::uint32_t code = source.fp4_code(r, tile_col(thread, step, nibble));
                word |= place_code(nibble, offset < 0 ? round_deep_code(code, -offset) : code);
            }
            *reinterpret_cast<std::uint32_t*>(panel + tile * kLayout.tile_codes +
                                              code_word_offset(thread, step, half)) = word;
        }
    }
    if (thread % 4 == 0) {
        *reinterpret_cast<std::uint32_t*>(panel + kLayout.exponents + tile * kLayout.tile_exponents +
                                          exponent_word_offset(thread)) = offsets;
    }
    if (thread < 2) {
        const float base = top < 0 ? 1.0F : ldexpf(1.0F, top - 6 - 127);
        *reinterpret_cast<std::uint32_t*>(panel + kLayout.bases + tile * 8 + thread * 4) = bits_of(base);
    }
    if (thread == 0 && top >= 0) {
        atomicMax(&report->max_span, static_cast<std::uint32_t>(top - smallest));
    }
}

// Rows of 128 bytes in the 128-byte swizzle that the matrix instruction reads.
__device__ void prepare_fp8_tile(const Source& source, std::byte* panel) {
    constexpr PanelLayout kLayout = panel_layout(ExpertFormat::kFp8);
    const RawExperts& raw = source.raw;
    const auto thread = static_cast<std::int32_t>(threadIdx.x);
    const std::int32_t tile = source.at.tile;
    for (std::int32_t i = thread; i < kTileRows * 8; i += 128) {
        const std::int32_t row = i / 8;
        const SourceRow r = source.row(row);
        uint4 v{};
        if (r.row < source.rows(r.matrix)) {
            v = *reinterpret_cast<const uint4*>(raw.codes[r.matrix] + source.element(r, i % 8 * 16));
        }
        *reinterpret_cast<uint4*>(panel + tile * kLayout.tile_codes + row * 128 + ((i % 8) ^ (row % 8)) * 16) = v;
    }
    if (thread < 2) {
        const SourceRow r = source.row(thread * 8);
        float base = 0.0F;
        if (r.row < source.rows(r.matrix)) {
            const std::int32_t blocks_down = (source.rows(r.matrix) + 127) / 128;
            const std::int32_t blocks_along = (source.cols(r.matrix) + 127) / 128;
            const std::int64_t block =
                (std::int64_t{source.at.expert} * blocks_down + r.row / 128) * blocks_along + source.at.column;
            base = static_cast<const float*>(raw.scales[r.matrix])[block];
        }
        *reinterpret_cast<std::uint32_t*>(panel + kLayout.bases + tile * 8 + thread * 4) = bits_of(base);
    }
}

__global__ __launch_bounds__(128) void prepare_panels(const __grid_constant__ RawExperts raw, std::int32_t layer,
                                                      std::byte* panels, FoldReport* report) {
    const PanelCounts n = panel_counts(layer, raw.hidden, raw.inter);
    const auto tile = static_cast<std::int32_t>(blockIdx.x % kTiles);
    const auto index = static_cast<std::int64_t>(blockIdx.x / kTiles);
    const Where at{layer, static_cast<std::int32_t>(index / (n.rows * n.columns)),
                   static_cast<std::int32_t>(index / n.columns % n.rows), static_cast<std::int32_t>(index % n.columns),
                   tile};
    const Source source{raw, at};
    std::byte* const panel = panels + index * panel_layout(raw.format).bytes;
    if (raw.format == ExpertFormat::kMxfp4) {
        prepare_fp4_tile(source, panel, report);
    } else {
        prepare_fp8_tile(source, panel);
    }
}

}  // namespace

cudaError_t launch_prepare_panels(const RawExperts& raw, std::int32_t layer, std::byte* panels, FoldReport* report,
                                  cudaStream_t stream) {
    if (raw.hidden % kPanelCols != 0 || raw.inter % kPanelChannels != 0 || (layer != 1 && layer != 2)) {
        return cudaErrorInvalidValue;
    }
    const PanelCounts n = panel_counts(layer, raw.hidden, raw.inter);
    const std::int64_t blocks = std::int64_t{raw.num_experts} * n.rows * n.columns * kTiles;
    if (blocks == 0) {
        return cudaSuccess;
    }
    prepare_panels<<<static_cast<unsigned>(blocks), 128, 0, stream>>>(raw, layer, panels, report);
    return cudaGetLastError();
}

}  // namespace megamoe::cuda
