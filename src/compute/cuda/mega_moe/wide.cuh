// The product for many tokens. Here tokens are the M side and a block is 128 of them: a decoded weight serves them all, and a
// promotion costs one multiplication an element. A warpgroup of its own unfolds packed panels into shared memory, two
// buffers deep, where the two math warpgroups read them as 128 columns each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/cuda/mega_moe/context.cuh"
#include "compute/cuda/mega_moe/load.cuh"
#include "compute/cuda/mega_moe/multiply.cuh"

namespace megamoe::cuda {

struct WideTraits {
    static constexpr bool kWide = true;
    static constexpr std::int32_t kTokens = 128;
    static constexpr std::int32_t kWarpgroups = 2;
    static constexpr ExpertFormat kFormat = ExpertFormat::kMxfp4;
    static constexpr std::int32_t kHalves = 2;  // of 64 tokens
    static constexpr std::int32_t kMathThreads = 256;
    static constexpr std::int32_t kDecodeThreads = 128;
    static constexpr std::int32_t kThreads = kMathThreads + kDecodeThreads + 128;
    static constexpr std::int32_t kEntryRegisters = 65536 / kThreads / 8 * 8;
    static constexpr std::int32_t kMathRegisters = 208;
    static constexpr std::int32_t kDecodeRegisters = 48;
    static constexpr std::int32_t kFrontRegisters = 48;
    static_assert(kMathRegisters * kMathThreads + kDecodeRegisters * kDecodeThreads + kFrontRegisters * 128 <=
                  kEntryRegisters * kThreads);
    static constexpr PanelLayout kPanel = panel_layout(kFormat);
    static constexpr std::int32_t kActStride = kPanelChannels * 2 + 16;
    static constexpr std::int32_t kOutStride = 128 * 2 + 16;  // a warpgroup's 128 channels of one token
    static constexpr std::int32_t kStaging = kTokens * kActStride;  // or two warpgroups times 64 tokens of output
    static constexpr std::int32_t kDecodedBytes = kPanelRows * kPanelCols;
    static constexpr std::int32_t kWeightBytes = (kPanel.bytes + 127) / 128 * 128;
    static constexpr std::int32_t kTokenBytes = kTokens * 128;
    static constexpr std::int32_t kScaleBytes = kTokens * 4;
    static constexpr std::int32_t kStageBytes = kWeightBytes + kTokenBytes + kScaleBytes;
};

// This thread's share of a packed tile.
struct PackedTile {
    std::uint32_t offsets;
    uint4 first;
    uint4 second;

    __device__ PackedTile(std::uint32_t panel, std::int32_t tile, std::int32_t thread) {
        constexpr PanelLayout kPanel = panel_layout(ExpertFormat::kMxfp4);
        const std::uint32_t codes = panel + tile * kPanel.tile_codes + thread * 16;
        offsets = ptx::ld_shared(panel + kPanel.exponents + tile * kPanel.tile_exponents + exponent_word_offset(thread));
        first = ptx::ld_shared_v4(codes);
        second = ptx::ld_shared_v4(codes + 2048);
    }
};

// Writes it unfolded: rows of 128 bytes, swizzled.
// In  to  of this thread's upper row, its swizzle and its four bytes of a chunk already in the address
__device__ inline void unfold_tile(const PackedTile& tile, std::uint32_t table, std::uint32_t to) {
    const std::uint32_t even = (tile.offsets << 3) & 0x78787878U;
    const std::uint32_t odd = (tile.offsets >> 1) & 0x78787878U;
    const std::uint32_t words[8] = {tile.first.x,  tile.first.y,  tile.first.z,  tile.first.w,
                                    tile.second.x, tile.second.y, tile.second.z, tile.second.w};
#pragma unroll
    for (int step = 0; step < 4; ++step) {
        const uint2 upper = ptx::ld_shared_v2(ptx::prmt(even, table, 0x7650U + static_cast<std::uint32_t>(step)));
        const uint2 lower = ptx::ld_shared_v2(ptx::prmt(odd, table, 0x7650U + static_cast<std::uint32_t>(step)));
        std::uint32_t low = 0;
        std::uint32_t high = 0;
        decode_word(words[2 * step], upper, low, high);
        ptx::st_shared(to ^ (32 * step), low);
        ptx::st_shared(to ^ (32 * step + 16), high);
        decode_word(words[2 * step + 1], lower, low, high);
        ptx::st_shared((to ^ (32 * step)) + 1024, low);
        ptx::st_shared((to ^ (32 * step + 16)) + 1024, high);
    }
}

// The decoding warpgroup: panel after panel, in the order of the stages.
template <class T>
__device__ inline void run_decode(const Context& c, const Smem<T>& smem, std::int32_t thread) {
    Control& control = c.control;
    const std::uint32_t base = ptx::opaque(ptx::shared_address(smem.base));
    const std::int32_t lane_row = thread % 32 / 4;
    const std::uint32_t row = (thread / 32 * 16 + lane_row) * 128 + lane_row * 16 + thread % 4 * 4;
    StageCursor at;
    std::uint32_t buffer = 0;  // panels so far
    for (std::uint32_t n = 0;; ++n) {
        const std::uint32_t slot = n % kTaskSlots;
        if (!wait_barrier(control, &control.task_full[slot], (n / kTaskSlots) & 1U)) {
            return;
        }
        const std::int32_t layer = control.task[slot].layer;
        __syncwarp();
        if (thread % 32 == 0) {
            ptx::mbarrier_arrive(&control.task_empty[slot]);
        }
        if (layer == 0) {
            return;
        }
        const std::int32_t panels = columns_of(c.p, layer) / kPanelCols;
#pragma unroll 1
        for (std::int32_t panel = 0; panel < panels; ++panel) {
            if (!wait_barrier(control, &control.full[at.stage], at.phase) ||
                !wait_barrier(control, &control.decoded_free[buffer % 2], ((buffer / 2) & 1U) ^ 1U)) {
                return;
            }
            const std::uint32_t weights = base + Smem<T>::kWeightsAt + at.stage * T::kWeightBytes;
            const std::uint32_t to = base + Smem<T>::kDecodedAt + buffer % 2 * T::kDecodedBytes + row;
            PackedTile next(weights, 0, thread);
#pragma unroll 1
            for (std::int32_t tile = 0; tile < kTiles; ++tile) {
                const PackedTile now = next;
                if (tile + 1 < kTiles) {
                    next = PackedTile(weights, tile + 1, thread);
                }
                unfold_tile(now, base, to + tile * (kTileRows * 128));
            }
            ptx::fence_proxy_async_shared();  // every writer: the tensor cores read this
            ptx::mbarrier_arrive(&control.decoded_full[buffer % 2]);
            __syncwarp();
            if (thread % 32 == 0) {
                ptx::mbarrier_arrive(&control.empty[at.stage]);
            }
            at.next<Smem<T>::kStages>();
            ++buffer;
        }
    }
}

// acc += part * (scale of the row) * (base of the tile the column belongs to)
__device__ inline void promote_rows(const float (&part)[64], const float (&upper)[2], const float (&lower)[2],
                                    float (&acc)[64]) {
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        acc[4 * j + 0] = fmaf(part[4 * j + 0], upper[j / 8], acc[4 * j + 0]);
        acc[4 * j + 1] = fmaf(part[4 * j + 1], upper[j / 8], acc[4 * j + 1]);
        acc[4 * j + 2] = fmaf(part[4 * j + 2], lower[j / 8], acc[4 * j + 2]);
        acc[4 * j + 3] = fmaf(part[4 * j + 3], lower[j / 8], acc[4 * j + 3]);
    }
}

// As multiply(), for the first one or two groups of 64 tokens; `panels_done` counts this block's panels, so that it finds the buffer.
template <class T, class First>
__device__ inline bool multiply_wide(const Context& c, const Smem<T>& smem, std::int32_t panels, std::int32_t warpgroup,
                                     std::int32_t thread, StageCursor& at, std::uint32_t& panels_done,
                                     std::int32_t halves, Accumulators<T>& acc, First first) {
    Control& control = c.control;
    const std::uint32_t base = ptx::opaque(ptx::shared_address(smem.base));
    const std::uint32_t row = (thread / 32 * 16 + thread % 32 / 4) * 4;
    float part[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        part[i] = 0.0F;
        acc[0][i] = 0.0F;
        acc[1][i] = 0.0F;
    }
#pragma unroll 1
    for (std::int32_t panel = 0; panel < panels; ++panel) {
        const std::uint32_t buffer = panels_done % 2;
        if (!wait_barrier(control, base + static_cast<std::uint32_t>(offsetof(Control, full)) + at.stage * 8, at.phase) ||
            !wait_barrier(control, base + static_cast<std::uint32_t>(offsetof(Control, decoded_full)) + buffer * 8,
                          (panels_done / 2) & 1U)) {
            return false;
        }
        if (panel == 0) {
            first();
        }
        const std::uint32_t scales = base + Smem<T>::kScalesAt + at.stage * T::kScaleBytes + row;
        const std::uint32_t bases = base + Smem<T>::kWeightsAt + at.stage * T::kWeightBytes + T::kPanel.bases + warpgroup * 16;
        const std::uint32_t tokens = __shfl_sync(
            0xFFFFFFFFU, ptx::wgmma_descriptor_low(base + Smem<T>::kTokensAt + at.stage * T::kTokenBytes), 0);
        const std::uint32_t weights = __shfl_sync(
            0xFFFFFFFFU,
            ptx::wgmma_descriptor_low(base + Smem<T>::kDecodedAt + buffer * T::kDecodedBytes + warpgroup * (128 * 128)), 0);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            if (h == 1 && halves == 1) {
                break;
            }
            ptx::wgmma_fence();
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                ptx::Wgmma<128>::ss(part, ptx::wgmma_descriptor(tokens + h * (64 * 128 / 16) + 2 * k),
                                    ptx::wgmma_descriptor(weights + 2 * k), k > 0 ? 1 : 0);
            }
            ptx::wgmma_commit_group();
            const float up = __uint_as_float(ptx::ld_shared(scales + h * 256));
            const float down = __uint_as_float(ptx::ld_shared(scales + h * 256 + 32));
            const float base0 = __uint_as_float(ptx::ld_shared(bases));
            const float base1 = __uint_as_float(ptx::ld_shared(bases + 8));
            const float upper[2] = {up * base0, up * base1};
            const float lower[2] = {down * base0, down * base1};
            ptx::wgmma_wait_group<0>();
            ptx::wgmma_pin(part);
            promote_rows(part, upper, lower, acc[h]);
        }
        __syncwarp();
        if (thread % 32 == 0) {
            ptx::mbarrier_arrive(base + static_cast<std::uint32_t>(offsetof(Control, empty)) + at.stage * 8);
            ptx::mbarrier_arrive(base + static_cast<std::uint32_t>(offsetof(Control, decoded_free)) + buffer * 8);
        }
        at.next<Smem<T>::kStages>();
        ++panels_done;
    }
    return true;
}

}  // namespace megamoe::cuda
