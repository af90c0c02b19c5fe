// The inner product of a task. Weights are the M side: decoded in registers and fed to the tensor cores from there, so
// the expanded form exists nowhere in memory. Tokens are the N side, from shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/cuda/mega_moe/context.cuh"
#include "compute/cuda/ptx/wgmma.cuh"

namespace megamoe::cuda {

template <class T>
using Accumulators = float[T::kHalves][T::kTokens / 2];

// 8 E4M3 codes out of one packed word: a lookup of magnitudes by byte permutation, then the signs.
__device__ inline void decode_word(std::uint32_t word, uint2 magnitude, std::uint32_t& low, std::uint32_t& high) {
    const std::uint32_t select = word & 0x77777777U;
    low = ptx::prmt(magnitude.x, magnitude.y, select) | (word & 0x80808080U);
    high = ptx::prmt(magnitude.x, magnitude.y, select >> 16) | ((word << 4) & 0x80808080U);
}

// A fragment of 64 x 128 for this thread: four steps of 32 columns, four registers each.
// In  codes      shared address of the tile's codes, this thread's vector
//     exponents  shared address of this thread's word of offsets
//     table      shared address of Control::magnitude, a multiple of 256: one permutation puts an offset into its low
//     byte
__device__ inline void decode_tile(std::uint32_t codes, std::uint32_t exponents, std::uint32_t table,
                                   std::uint32_t (&a)[16]) {
    const std::uint32_t offsets = ptx::ld_shared(exponents);
    const uint4 first = ptx::ld_shared_v4(codes);
    const uint4 second = ptx::ld_shared_v4(codes + 2048);
    const std::uint32_t words[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
    const std::uint32_t even = (offsets << 3) & 0x78787878U;  // table offsets of the upper rows, a byte a step
    const std::uint32_t odd = (offsets >> 1) & 0x78787878U;   // of the rows 8 below
#pragma unroll
    for (int i = 0; i < 8; ++i) {  // i = step * 2 + half
        const std::uint32_t entry =
            ptx::prmt(i % 2 == 0 ? even : odd, table, 0x7650U + static_cast<std::uint32_t>(i / 2));
        const uint2 magnitude = ptx::ld_shared_v2(entry);
        decode_word(words[i], magnitude, a[(i / 2) * 4 + i % 2], a[(i / 2) * 4 + 2 + i % 2]);
    }
}

// acc += part * (scale of the token) * (base of the tile): the sum leaves the tensor core every 128 columns, where it
// is kept with fewer bits than float32.
template <int kTokens>
__device__ inline void promote(const float (&part)[kTokens / 2], std::uint32_t scales, float base_even, float base_odd,
                               float (&acc)[kTokens / 2]) {
#pragma unroll
    for (int j = 0; j < kTokens / 8; ++j) {
        const uint2 bits = ptx::ld_shared_v2(scales + j * 32);
        const float s0 = __uint_as_float(bits.x);
        const float s1 = __uint_as_float(bits.y);
        acc[4 * j + 0] = fmaf(part[4 * j + 0], s0 * base_even, acc[4 * j + 0]);
        acc[4 * j + 1] = fmaf(part[4 * j + 1], s1 * base_even, acc[4 * j + 1]);
        acc[4 * j + 2] = fmaf(part[4 * j + 2], s0 * base_odd, acc[4 * j + 2]);
        acc[4 * j + 3] = fmaf(part[4 * j + 3], s1 * base_odd, acc[4 * j + 3]);
    }
}

// One stage as this thread sees it.
// In  base  shared address of the block's memory
template <class T>
struct Stage {
    std::uint32_t base;
    std::uint32_t weights;
    std::uint32_t scales;  // of this thread's token columns
    std::uint32_t tokens;  // low half of the descriptor, the same in the whole warp

    __device__ Stage(std::uint32_t base_, std::int32_t stage, std::int32_t thread)
        : base(base_),
          weights(base_ + Smem<T>::kWeightsAt + stage * T::kWeightBytes),
          scales(base_ + Smem<T>::kScalesAt + stage * T::kScaleBytes + thread % 4 * 8),
          tokens(__shfl_sync(0xFFFFFFFFU,
                             ptx::wgmma_descriptor_low(base_ + Smem<T>::kTokensAt + stage * T::kTokenBytes), 0)) {}

    __device__ void decode(std::int32_t tile, std::int32_t thread, std::uint32_t (&a)[16]) const {
        decode_tile(weights + tile * T::kPanel.tile_codes + thread * 16,
                    weights + T::kPanel.exponents + tile * T::kPanel.tile_exponents + exponent_word_offset(thread),
                    base, a);
    }

    // Starts the product of a tile with the tokens; `a` is its decoded form (MXFP4) and must stay untouched until it is
    // over.
    __device__ void start(std::int32_t tile, const std::uint32_t (&a)[16], float (&part)[T::kTokens / 2]) const {
        using Mma = ptx::Wgmma<T::kTokens>;
        ptx::wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            if constexpr (T::kFormat == ExpertFormat::kMxfp4) {
                Mma::rs(part, a + 4 * k, ptx::wgmma_descriptor(tokens + 2 * k), k > 0 ? 1 : 0);
            } else {
                const std::uint32_t codes = ptx::wgmma_descriptor_low(weights + tile * T::kPanel.tile_codes);
                Mma::ss(part, ptx::wgmma_descriptor(codes + 2 * k), ptx::wgmma_descriptor(tokens + 2 * k),
                        k > 0 ? 1 : 0);
            }
        }
        ptx::wgmma_commit_group();
    }

    __device__ void finish(std::int32_t tile, float (&part)[T::kTokens / 2], float (&acc)[T::kTokens / 2]) const {
        const std::uint32_t bases = weights + T::kPanel.bases + tile * 8;
        const float base_even = __uint_as_float(ptx::ld_shared(bases));
        const float base_odd =
            T::kFormat == ExpertFormat::kMxfp4 ? base_even : __uint_as_float(ptx::ld_shared(bases + 4));
        ptx::wgmma_wait_group<0>();
        ptx::wgmma_pin(part);
        promote<T::kTokens>(part, scales, base_even, base_odd, acc);
    }
};

// All panels of a task. A warpgroup decodes, multiplies and promotes in turn; the others use the tensor cores
// meanwhile. False: aborted.
// In  warpgroup, thread (in it)
//     first     called once, when the rows of the task are known to be there
template <class T, class First>
__device__ inline bool multiply(const Context& c, const Smem<T>& smem, std::int32_t panels, std::int32_t warpgroup,
                                std::int32_t thread, StageCursor& at, Accumulators<T>& acc, First first) {
    Control& control = c.control;
    const std::uint32_t base = ptx::opaque(ptx::shared_address(smem.base));
    const std::int32_t tile = warpgroup * T::kHalves;
    std::uint32_t a[16] = {};
    float part[T::kTokens / 2];
#pragma unroll
    for (int i = 0; i < T::kTokens / 2; ++i) {
        part[i] = 0.0F;
#pragma unroll
        for (int h = 0; h < T::kHalves; ++h) {
            acc[h][i] = 0.0F;
        }
    }
#pragma unroll 1
    for (std::int32_t panel = 0; panel < panels; ++panel) {
        if (!wait_barrier(control, base + static_cast<std::uint32_t>(offsetof(Control, full)) + at.stage * 8,
                          at.phase)) {
            return false;
        }
        if (panel == 0) {
            first();
        }
        const Stage<T> stage(base, at.stage, thread);
#pragma unroll
        for (int h = 0; h < T::kHalves; ++h) {
            if constexpr (T::kFormat == ExpertFormat::kMxfp4) {
                stage.decode(tile + h, thread, a);
            }
            stage.start(tile + h, a, part);
            stage.finish(tile + h, part, acc[h]);
        }
        __syncwarp();
        if (thread % 32 == 0) {
            ptx::mbarrier_arrive(base + static_cast<std::uint32_t>(offsetof(Control, empty)) + at.stage * 8);
        }
        at.next<Smem<T>::kStages>();
    }
    return true;
}

}  // namespace megamoe::cuda
