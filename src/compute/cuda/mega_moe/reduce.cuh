// Home again: the source sums what came back for each of its rows.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "compute/cuda/mega_moe/context.cuh"

namespace megamoe::cuda {

__device__ inline void add_bf16(uint4 v, float (&sum)[8]) {
    const std::uint32_t words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        sum[2 * i] += __uint_as_float(words[i] << 16);
        sum[2 * i + 1] += __uint_as_float(words[i] & 0xFFFF0000U);
    }
}

// Waits for every expert rank's word that it has returned its rows. Called by whole warps; each lane watches some
// ranks.
__device__ inline bool wait_returns(const Context& c) {
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    const auto* done = c.view.mine<mega::Cell>(c.p.heap.done) + mega::done_index(c.p.shape, c.control.epoch, 0);
    bool ok = true;
    for (std::int32_t r = lane; r < c.p.shape.num_ranks; r += 32) {
        ok = ok && wait_for(c, Edge::kDone, r,
                            [&] { return mega::cell_is_of(ptx::ld_acquire_sys(done + r), c.control.epoch); });
    }
    return __all_sync(0xFFFFFFFFU, ok ? 1 : 0) != 0;
}

// Thread `thread` of `threads` on the rank: every 16 bytes of the output is one thread's, summed in ascending order of
//        the
// experts and the shared expert's result last, in float32.
__device__ inline void reduce_rows(const Context& c, std::int64_t thread, std::int64_t threads) {
    const std::int32_t hidden = c.p.shape.hidden;
    const std::int32_t top_k = c.p.shape.top_k;
    const std::int32_t chunks = hidden / 8;
    const std::int64_t total = std::int64_t{c.control.num_rows} * chunks;
    const auto* order = c.space<std::uint8_t>(c.p.workspace.order);
    const auto* combine = c.view.mine<__nv_bfloat16>(c.p.heap.combine);
    for (std::int64_t i = thread; i < total; i += threads) {
        const std::int64_t row = i / chunks;
        const std::int64_t channel = i % chunks * 8;
        float sum[8] = {};
        for (std::int32_t first = 0; first < top_k; first += 8) {
            uint4 v[8];
            const std::int32_t count = top_k - first < 8 ? top_k - first : 8;
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                v[k] = {};
                if (k < count) {
                    const std::int32_t choice = __ldcg(order + row * top_k + first + k);
                    if (choice != 0xFF) {
                        v[k] = ptx::ld_relaxed_v4(combine + (row * top_k + choice) * hidden + channel);
                    }
                }
            }
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                add_bf16(v[k], sum);
            }
        }
        if (c.mine.shared != nullptr) {
            add_bf16(ptx::ld_relaxed_v4(c.mine.shared + row * hidden + channel), sum);
        }
        uint4 out;
        out.x = pack_bf16(sum[0], sum[1]);
        out.y = pack_bf16(sum[2], sum[3]);
        out.z = pack_bf16(sum[4], sum[5]);
        out.w = pack_bf16(sum[6], sum[7]);
        ptx::st_v4(c.mine.out + row * hidden + channel, out);
    }
}

}  // namespace megamoe::cuda
