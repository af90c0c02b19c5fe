// The inner product of a task. Weights are the M side: decoded in registers and fed to the tensor cores from there, so the
// expanded form exists nowhere in memory. Tokens are the N side, from shared memory.
#pragma once

#include <cstdint>

#include "compute/cuda/mega_moe/context.cuh"
#include "compute/cuda/ptx/wgmma.cuh"

namespace megamoe::cuda {

template <class T>
using Accumulators = float[T::kHalves][T::kTokens / 2];

// 16 E4M3 codes of one row out of one packed word: a lookup of eight magnitudes by byte permutation, then the signs.
__device__ inline void decode_word(std::uint32_t word, uint2 magnitude, std::uint32_t& low, std::uint32_t& high) {
    const std::uint32_t select = word & 0x77777777U;
    low = __byte_perm(magnitude.x, magnitude.y, select) | (word & 0x80808080U);
    high = __byte_perm(magnitude.x, magnitude.y, select >> 16) | ((word << 4) & 0x80808080U);
}

// A fragment of 64 x 128 for this thread: four steps of 32 columns, four registers each.
// In  tile       shared address of the tile's codes, this thread's vector
//     exponents  this thread's word of offsets
//     table      shared address of Control::magnitude
__device__ inline void decode_tile(std::uint32_t tile, std::uint32_t exponents, std::uint32_t table,
                                   std::uint32_t (&a)[16]) {
    const uint4 first = ptx::ld_shared_v4(tile);
    const uint4 second = ptx::ld_shared_v4(tile + 2048);
    const std::uint32_t words[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) {  // i = step * 2 + half
        const std::uint32_t offset = (i == 0 ? exponents << 3 : exponents >> (4 * i - 3)) & 0x78U;
        const uint2 magnitude = ptx::ld_shared_v2(table + offset);
        decode_word(words[i], magnitude, a[(i / 2) * 4 + i % 2], a[(i / 2) * 4 + 2 + i % 2]);
    }
}

// acc += part * (scale of the token) * (base of the tile): the sum leaves the tensor core every 128 columns, where it is
// kept with fewer bits than float32.
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

// All panels of a task. False: aborted.
// In  warpgroup, thread (in it)
//     first     called once, when the rows of the task are known to be there
template <class T, class First>
__device__ inline bool multiply(const Context& c, const Smem<T>& smem, std::int32_t panels, std::int32_t warpgroup,
                                std::int32_t thread, StageCursor& at, Accumulators<T>& acc, First first) {
    using Mma = ptx::Wgmma<T::kTokens>;
    Control& control = c.control;
    const std::uint32_t table = ptx::shared_address(control.magnitude);
    float part[T::kTokens / 2];
#pragma unroll
    for (int i = 0; i < T::kTokens / 2; ++i) {
        part[i] = 0.0F;
#pragma unroll
        for (int h = 0; h < T::kHalves; ++h) {
            acc[h][i] = 0.0F;
        }
    }
    for (std::int32_t panel = 0; panel < panels; ++panel) {
        if (!wait_barrier(control, &control.full[at.stage], at.phase)) {
            return false;
        }
        if (panel == 0) {
            first();
        }
        const std::uint32_t weights = ptx::shared_address(smem.weights(at.stage));
        const std::uint32_t scales = ptx::shared_address(smem.scales(at.stage)) + thread % 4 * 8;
        const std::uint64_t tokens = ptx::wgmma_descriptor(ptx::shared_address(smem.tokens(at.stage)));
#pragma unroll
        for (int h = 0; h < T::kHalves; ++h) {
            const std::int32_t tile = warpgroup * T::kHalves + h;
            const std::uint32_t bases = weights + T::kPanel.bases + tile * 8;
            if constexpr (T::kFormat == ExpertFormat::kMxfp4) {
                std::uint32_t a[16];
                const std::uint32_t exponents =
                    ptx::ld_shared(weights + T::kPanel.exponents + tile * T::kPanel.tile_exponents + exponent_word_offset(thread));
                decode_tile(weights + tile * T::kPanel.tile_codes + thread * 16, exponents, table, a);
                ptx::wgmma_fence();
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    Mma::rs(part, a + 4 * k, tokens + 2 * k, k > 0 ? 1 : 0);
                }
            } else {
                const std::uint64_t codes = ptx::wgmma_descriptor(weights + tile * T::kPanel.tile_codes);
                ptx::wgmma_fence();
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    Mma::ss(part, codes + 2 * k, tokens + 2 * k, k > 0 ? 1 : 0);
                }
            }
            ptx::wgmma_commit_group();
            ptx::wgmma_wait_group<0>();
            ptx::wgmma_pin(part);
            const float base_even = __uint_as_float(ptx::ld_shared(bases));
            const float base_odd =
                T::kFormat == ExpertFormat::kMxfp4 ? base_even : __uint_as_float(ptx::ld_shared(bases + 4));
            promote<T::kTokens>(part, scales, base_even, base_odd, acc[h]);
        }
        __syncwarp();
        if (thread % 32 == 0) {
            ptx::mbarrier_arrive(&control.empty[at.stage]);
        }
        at.next<Smem<T>::kStages>();
    }
    return true;
}

}  // namespace megamoe::cuda
