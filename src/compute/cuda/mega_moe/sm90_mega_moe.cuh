// The fused MoE operator of one layer: dispatch, two expert products with the activation between them, return,
// reduction, in one persistent launch. Body of the kernel: who does what. Spec: operator design, 6.3 and 6.4.
#pragma once

#include <cuda_fp8.h>

#include <cstdint>

#include "compute/cuda/mega_moe/context.cuh"
#include "compute/cuda/mega_moe/epilogue.cuh"
#include "compute/cuda/mega_moe/load.cuh"
#include "compute/cuda/mega_moe/plan.cuh"
#include "compute/cuda/mega_moe/pull.cuh"
#include "compute/cuda/mega_moe/reduce.cuh"
#include "compute/cuda/mega_moe/smem.cuh"

namespace megamoe::cuda {

template <class T>
__device__ inline void prepare_block(const Context& c) {
    Control& control = c.control;
    const auto tid = static_cast<std::int32_t>(threadIdx.x);
    if (tid == 0) {
        for (std::int32_t i = 0; i < Smem<T>::kStages; ++i) {
            ptx::mbarrier_init(&control.full[i], 2);
            ptx::mbarrier_init(&control.empty[i], T::kMathThreads / 32);
        }
        for (std::int32_t i = 0; i < kTaskSlots; ++i) {
            ptx::mbarrier_init(&control.task_full[i], 1);
            ptx::mbarrier_init(&control.task_empty[i], T::kMathThreads / 32 + 1);
        }
        ptx::fence_mbarrier_init();
        const std::int32_t rows = *c.mine.num_rows;
        control.num_rows = rows < 0 ? 0 : rows < c.p.shape.max_rows ? rows : c.p.shape.max_rows;
        const auto* heap_control = c.view.mine<mega::Control>(c.p.heap.control);
        control.epoch = heap_control->epoch == 0 ? mega::kFirstEpoch : heap_control->epoch;
        control.abort = heap_control->status;  // a poisoned instance does nothing
        control.start_ns = ptx::globaltimer_ns();
    }
    if (tid >= 32 && tid < 48) {
        constexpr float kMagnitude[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
        const float unit = __uint_as_float(static_cast<std::uint32_t>(127 + tid - 32 - 8) << 23);
        float v[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            v[i] = kMagnitude[i] * unit;
        }
        control.magnitude[tid - 32] = {pack_e4m3(v[0], v[1], v[2], v[3]), pack_e4m3(v[4], v[5], v[6], v[7])};
    }
    __syncthreads();
}

// Counters of the next launch.
__device__ inline void clear_idle_bank(const Context& c, std::int32_t thread, std::int32_t threads) {
    std::uint32_t* const idle = c.bank(1 - mega::bank_of(c.control.epoch));
    for (std::int32_t i = thread; i < c.p.workspace.bank_words; i += threads) {
        idle[i] = 0;
    }
}

// The last block to leave moves the rank on to the next epoch.
__device__ inline void leave(const Context& c) {
    if (ptx::atom_add_acq_rel_gpu(c.counter(kLeft), 1) + 1 == static_cast<std::uint32_t>(c.blocks)) {
        c.view.mine<mega::Control>(c.p.heap.control)->epoch = mega::next_epoch(c.control.epoch);
    }
}

template <class T>
__device__ inline void run_front_warps(const Context& c, const Smem<T>& smem, std::int32_t pulled_by_math) {
    const auto warp = static_cast<std::int32_t>(threadIdx.x % 128 / 32);
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    if (warp == 0) {
        if (lane == 0) {
            load_weights(c, smem);
        }
    } else if (warp == 1) {
        if (lane == 0) {
            load_tokens(c, smem);
        }
    } else {
        if ((c.p.phases & kPull) != 0) {
            pull_rows(c, pulled_by_math + (warp - 2) * c.blocks + c.block, 2 * c.blocks, c.control.total_rows);
        }
        if ((c.p.phases & kReduce) != 0) {
            clear_idle_bank(c, (c.block * 2 + warp - 2) * 32 + lane, c.blocks * 64);
        }
    }
}

template <class T>
__device__ inline void run_math_warps(const Context& c, const Smem<T>& smem, std::int32_t pulled_by_math) {
    const std::int32_t math_thread = static_cast<std::int32_t>(threadIdx.x) - 128;
    const std::int32_t warps = T::kMathThreads / 32;
    if ((c.p.phases & kPull) != 0) {
        pull_rows(c, (math_thread / 32) * c.blocks + c.block, warps * c.blocks, pulled_by_math);
    }
    if (!run_tasks(c, smem, math_thread)) {
        return;
    }
    if ((c.p.phases & kReduce) == 0) {
        return;
    }
    if (!wait_returns(c)) {
        return;
    }
    reduce_rows(c, std::int64_t{c.block} * T::kMathThreads + math_thread, std::int64_t{c.blocks} * T::kMathThreads);
    ptx::bar_sync(kMathBarrier, T::kMathThreads);
    if (math_thread == 0) {
        leave(c);
    }
}

template <class T>
__global__ __launch_bounds__(T::kThreads, 1) void mega_moe(const __grid_constant__ MegaMoeParams p) {
    extern __shared__ __align__(1024) std::byte raw[];  // nothing static beside it, so it starts aligned
    const Smem<T> smem{raw};
    const auto slot = static_cast<std::int32_t>(blockIdx.x) / p.blocks_per_rank;
    const Context c{p,
                    p.rank[slot],
                    {p.first_rank + slot, p.heap_base},
                    static_cast<std::int32_t>(blockIdx.x) % p.blocks_per_rank,
                    p.blocks_per_rank,
                    smem.control()};
    if (threadIdx.x == 0) {
        prefetch_first_task<T>(c);
    }
    prepare_block<T>(c);
    if (c.aborted()) {
        return;
    }
    if ((p.phases & kCount) != 0) {
        publish_counts(c, reinterpret_cast<std::uint32_t*>(smem.staging()));
    }
    if (!make_plan(c)) {
        return;
    }
    if (c.block == 0 && (p.phases & kCount) != 0) {
        publish_empty_returns(c);
    }
    // While the tensor cores have nothing to do, their warps pull too: a row each, the rest is left to the front warps.
    const std::int32_t wave = p.blocks_per_rank * (T::kMathThreads / 32);
    // Not if the ring is smaller than the work: a slot is freed by tasks, and these warps must not wait for their own.
    const bool fits = c.control.begin[p.schedule.num_experts].block <= p.workspace.ring_blocks;
    const std::int32_t pulled_by_math = !fits ? 0 : c.control.total_rows < wave ? c.control.total_rows : wave;
    if (threadIdx.x < 128) {
        ptx::setmaxnreg_dec<T::kFrontRegisters>();
        run_front_warps<T>(c, smem, pulled_by_math);
    } else {
        ptx::setmaxnreg_inc<T::kMathRegisters>();
        run_math_warps<T>(c, smem, pulled_by_math);
    }
}

}  // namespace megamoe::cuda
