// What follows the product of a task: first layer, the clamped SwiGLU and its quantisation; second layer, the way home.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cstdint>

#include "compute/cuda/mega_moe/context.cuh"
#include "compute/cuda/mega_moe/load.cuh"
#include "compute/cuda/mega_moe/multiply.cuh"

namespace megamoe::cuda {

inline constexpr int kMathBarrier = 1;  // named barriers; a warpgroup's own follow

__device__ inline float round_bf16(float x) {
    return __bfloat162float(__float2bfloat16_rn(x));
}

__device__ inline std::uint32_t pack_bf16(float low, float high) {
    const __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&v);
}

// silu(gate) * up with the limits of the model, on products that were rounded to BF16 as the released model does.
__device__ inline float swiglu(float gate, float up, float clamp) {
    gate = fminf(round_bf16(gate), clamp);
    up = fminf(fmaxf(round_bf16(up), -clamp), clamp);
    return __fdividef(gate, 1.0F + __expf(-gate)) * up;
}

// Smallest power of two that is not below v, for positive normal v.
__device__ inline float pow2_ceil(float v) {
    return __uint_as_float((__float_as_uint(v) + 0x7FFFFFU) & 0x7F800000U);
}

__device__ inline std::uint32_t pack_e4m3(float a, float b, float c, float d) {
    const std::uint32_t low = __nv_cvt_float2_to_fp8x2({a, b}, __NV_SATFINITE, __NV_E4M3);
    const std::uint32_t high = __nv_cvt_float2_to_fp8x2({c, d}, __NV_SATFINITE, __NV_E4M3);
    return low | high << 16;
}

// Sixteen BF16 activations of one row -> E4M3 with the scale of the row's 128; the eight threads of the row are
// neighbours.
__device__ inline uint4 quantise(const uint4 (&bf16)[2], float& scale) {
    const std::uint32_t words[8] = {bf16[0].x, bf16[0].y, bf16[0].z, bf16[0].w,
                                    bf16[1].x, bf16[1].y, bf16[1].z, bf16[1].w};
    float v[16];
    float amax = 1e-4F;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        v[2 * i] = __uint_as_float(words[i] << 16);
        v[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000U);
        amax = fmaxf(amax, fmaxf(fabsf(v[2 * i]), fabsf(v[2 * i + 1])));
    }
#pragma unroll
    for (int step = 1; step < 8; step *= 2) {
        amax = fmaxf(amax, __shfl_xor_sync(0xFFFFFFFFU, amax, step));
    }
    scale = pow2_ceil(amax * (1.0F / 448.0F));
    const float inverse = 1.0F / scale;  // exact: a power of two, at least 2^-23
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        v[i] *= inverse;
    }
    return {pack_e4m3(v[0], v[1], v[2], v[3]), pack_e4m3(v[4], v[5], v[6], v[7]), pack_e4m3(v[8], v[9], v[10], v[11]),
            pack_e4m3(v[12], v[13], v[14], v[15])};
}

// In  meta  of row `thread` of the task (all math threads counted): its routing weight
template <class T>
__device__ inline void finish_layer1(const Context& c, const Smem<T>& smem, const mega::Task& task, std::int32_t rows,
                                     std::int32_t math_thread, std::uint32_t* row_meta, std::uint32_t meta,
                                     const Accumulators<T>& acc) {
    const std::int32_t lane = math_thread % 32;
    const std::int32_t warp = math_thread / 32 % 4;
    const std::int32_t warpgroup = math_thread / 128;
    if (math_thread < T::kTokens) {
        row_meta[math_thread] = meta;
    }
    ptx::bar_sync(kMathBarrier, T::kMathThreads);
    const std::uint32_t staging = ptx::shared_address(smem.staging());
#pragma unroll
    for (int j = 0; j < T::kTokens / 8; ++j) {
        if (j * 8 < rows) {
            const float w0 = __uint_as_float(row_meta[j * 8 + lane % 4 * 2]);
            const float w1 = __uint_as_float(row_meta[j * 8 + lane % 4 * 2 + 1]);
            const std::uint32_t row = staging + (j * 8 + lane % 8) * T::kActStride;
#pragma unroll
            for (int h = 0; h < T::kHalves; ++h) {
                const std::int32_t channel = (warpgroup * T::kHalves + h) * 32 + warp * 8;
                const float a0 = swiglu(acc[h][4 * j], acc[h][4 * j + 2], c.p.clamp) * w0;
                const float a1 = swiglu(acc[h][4 * j + 1], acc[h][4 * j + 3], c.p.clamp) * w1;
                ptx::stmatrix_x1_trans(row + channel * 2, pack_bf16(a0, a1));
            }
        }
    }
    ptx::bar_sync(kMathBarrier, T::kMathThreads);

    const std::int32_t chunk = math_thread % 8;
    const std::int64_t plane = std::int64_t{task.tile} * c.p.workspace.ring_rows + ring_row(c, task.block);
    for (std::int32_t row = math_thread / 8; row < (rows + 3) / 4 * 4; row += T::kMathThreads / 8) {  // whole warps
        const std::uint32_t from = staging + row * T::kActStride + chunk * 32;
        const uint4 staged[2] = {ptx::ld_shared_v4(from), ptx::ld_shared_v4(from + 16)};
        float scale = 0;
        const uint4 codes = quantise(staged, scale);
        if (row < rows) {
            ptx::st_v4(c.space<std::byte>(c.p.workspace.act) + (plane + row) * 128 + (chunk ^ (row % 8)) * 16, codes);
            if (chunk == 0) {
                c.space<float>(c.p.workspace.act_scale)[plane + row] = scale;
            }
        }
    }
    maybe_delay(c, 3);
    ptx::fence_proxy_async_global();  // every writer: the copy engine reads these rows
    ptx::bar_sync(kMathBarrier, T::kMathThreads);
    if (math_thread == 0) {
        ptx::red_release_gpu(c.counter(c.p.workspace.activated + task.block), 1);
        if (c.p.overlap == 0) {
            ptx::red_release_gpu(c.counter(kLayer1All), 1);
        }
    }
}

// Adds this task's rows to what has gone back to each source; whoever completes a source's rows tells it.
__device__ inline void account_returns(const Context& c, const mega::Task& task, std::int32_t rows,
                                       const std::uint32_t* row_meta) {
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    const std::int32_t ranks = c.p.shape.num_ranks;
    if (c.p.launch_ranks == ranks) {
        ptx::fence_acq_rel_gpu();  // all ranks live on this device
    } else {
        ptx::fence_acq_rel_sys();
    }
    for (std::int32_t source = lane; source < ranks; source += 32) {
        std::uint32_t mine = static_cast<std::uint32_t>(rows);
        if (ranks > 1) {
            mine = 0;
            for (std::int32_t row = 0; row < rows; ++row) {
                mine += row_meta[row] >> 24 == static_cast<std::uint32_t>(source) ? 1U : 0U;
            }
        }
        if (mine == 0) {
            continue;
        }
        const auto total = static_cast<std::uint32_t>(c.control.rows_from[source]);
        const std::uint32_t before = ptx::atom_add_acq_rel_gpu(c.counter(c.p.workspace.returned + source), mine);
        if (before + mine == total * static_cast<std::uint32_t>(c.p.schedule.tiles2)) {
            maybe_delay(c, 4);
            auto* const done = c.view.at<mega::Cell>(source, c.p.heap.done);
            ptx::st_release_sys(&done[mega::done_index(c.p.shape, c.control.epoch, c.view.rank)],
                                mega::encode_cell(c.control.epoch, total));
        }
    }
    if (lane == 0) {
        ptx::red_release_gpu(c.counter(c.p.workspace.finished + task.block), 1);
    }
}

// Staged rows of one warpgroup -> their sources: 16 bytes a thread, neighbours side by side.
// In  first  row of the block that staging begins with
template <std::int32_t kChunks>
__device__ inline void send_rows(const Context& c, std::uint32_t staging, std::int32_t stride, std::int32_t first,
                                 std::int32_t count, std::int32_t channel, std::int32_t thread,
                                 const std::uint32_t* row_meta) {
    const std::int32_t chunk = thread % kChunks;
    channel += chunk * 8;
    if (channel >= c.p.shape.hidden) {
        return;
    }
    for (std::int32_t row = thread / kChunks; row < count; row += 128 / kChunks) {
        const std::uint32_t source = row_meta[first + row];
        auto* const to = c.view.at<__nv_bfloat16>(static_cast<std::int32_t>(source >> 24), c.p.heap.combine);
        ptx::st_v4(to + std::int64_t{source & 0xFFFFFFU} * c.p.shape.hidden + channel,
                   ptx::ld_shared_v4(staging + row * stride + chunk * 16));
    }
}

template <class T>
__device__ inline void return_rows(const Context& c, const Smem<T>& smem, const mega::Task& task, std::int32_t rows,
                                   std::int32_t math_thread, const std::uint32_t* row_meta,
                                   const Accumulators<T>& acc) {
    const std::int32_t lane = math_thread % 32;
    const std::int32_t warp = math_thread / 32 % 4;
    const std::int32_t warpgroup = math_thread / 128;
    const std::uint32_t staging = ptx::shared_address(smem.staging()) + warpgroup * T::kTokens * T::kOutStride;
#pragma unroll
    for (int j = 0; j < T::kTokens / 8; ++j) {
        if (j * 8 < rows) {
            const std::uint32_t row = staging + (j * 8 + lane % 8) * T::kOutStride;
#pragma unroll
            for (int h = 0; h < T::kHalves; ++h) {
                const std::uint32_t to = row + (h * kTileRows + warp * 16) * 2;
                ptx::stmatrix_x1_trans(to, pack_bf16(acc[h][4 * j], acc[h][4 * j + 1]));
                ptx::stmatrix_x1_trans(to + 16, pack_bf16(acc[h][4 * j + 2], acc[h][4 * j + 3]));
            }
        }
    }
    ptx::bar_sync(kMathBarrier, T::kMathThreads);
    send_rows<T::kHalves * kTileRows / 8>(c, staging, T::kOutStride, 0, rows,
                                          task.tile * kPanelRows + warpgroup * T::kHalves * kTileRows,
                                          math_thread % 128, row_meta);
}

// In  meta  of row `thread` of the task: its source
template <class T>
__device__ inline void finish_layer2(const Context& c, const Smem<T>& smem, const mega::Task& task, std::int32_t rows,
                                     std::int32_t math_thread, std::uint32_t* row_meta, std::uint32_t meta,
                                     const Accumulators<T>& acc) {
    if (math_thread < T::kTokens) {
        row_meta[math_thread] = meta;
    }
    return_rows(c, smem, task, rows, math_thread, row_meta, acc);
    maybe_delay(c, 5);
    ptx::bar_sync(kMathBarrier, T::kMathThreads);
    if (math_thread < 32) {
        account_returns(c, task, rows, row_meta);
    }
}

// Loop of a math thread over the tasks of its block. False: aborted.
template <class T>
__device__ inline bool run_tasks(const Context& c, const Smem<T>& smem, std::int32_t math_thread) {
    Control& control = c.control;
    StageCursor at;
    for (std::uint32_t n = 0;; ++n) {
        const std::uint32_t slot = n % kTaskSlots;
        if (!wait_barrier(control, &control.task_full[slot], (n / kTaskSlots) & 1U)) {
            return false;
        }
        const mega::Task task = control.task[slot];
        __syncwarp();
        if (math_thread % 32 == 0) {
            ptx::mbarrier_arrive(&control.task_empty[slot]);
        }
        if (task.layer == 0) {
            return true;
        }
        const std::int32_t rows = rows_in_block(c, task);
        std::uint32_t meta = 0;
        const auto first = [&] {
            if (math_thread < rows) {
                const std::int64_t from = task.layer == 1 ? c.p.workspace.weight : c.p.workspace.source;
                meta = __ldcg(c.space<std::uint32_t>(from) + ring_row(c, task.block) + math_thread);
            }
        };
        Accumulators<T> acc;
        const std::int32_t panels = columns_of(c.p, task.layer) / kPanelCols;
        const bool good = multiply(c, smem, panels, math_thread / 128, math_thread % 128, at, acc, first);
        if (!good) {
            return false;
        }
        if (task.layer == 1) {
            finish_layer1(c, smem, task, rows, math_thread, control.row_meta[n % 2], meta, acc);
        } else {
            finish_layer2(c, smem, task, rows, math_thread, control.row_meta[n % 2], meta, acc);
        }
    }
}

}  // namespace megamoe::cuda
