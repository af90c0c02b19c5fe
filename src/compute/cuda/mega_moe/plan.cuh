// Before any row moves: every source tells every expert rank which rows it has for it, and every block of an expert
// rank derives the same plan from those counts.
#pragma once

#include <cstdint>

#include "compute/cuda/mega_moe/context.cuh"

namespace megamoe::cuda {

inline constexpr std::int32_t kPairsPerBlock = 1024;  // fewer pairs than this are counted by one block, without atomics

// Blocks that take part in counting.
__device__ inline std::int32_t counting_blocks(const Context& c) {
    const std::int32_t pairs = c.control.num_rows * c.p.shape.top_k;
    const std::int32_t wanted = mega::ceil_div(pairs, kPairsPerBlock);
    return wanted < 1 ? 1 : wanted < c.blocks ? wanted : c.blocks;
}

// Choices of a row by ascending expert id: the order in which results are summed. This thread's own choice finds its
// place.
__device__ inline void note_order(const Context& c, const std::int32_t* ids, std::int32_t row, std::int32_t choice) {
    const std::int32_t top_k = c.p.shape.top_k;
    const std::int32_t* row_ids = ids + static_cast<std::int64_t>(row) * top_k;
    const std::int32_t mine = row_ids[choice];
    std::int32_t place = 0;
    for (std::int32_t k = 0; k < top_k; ++k) {
        place += row_ids[k] < mine || (row_ids[k] == mine && k < choice) ? 1 : 0;
    }
    const bool valid = mine >= 0 && mine < c.p.shape.num_experts;
    c.space<std::uint8_t>(c.p.workspace.order)[static_cast<std::int64_t>(row) * top_k + place] =
        valid ? static_cast<std::uint8_t>(choice) : std::uint8_t{0xFF};
}

// Lists this rank's (row, choice) pairs at the ranks that own their experts, then publishes how many there are.
// `histogram` [num_experts] is scratch in shared memory. All threads of the block.
__device__ inline void publish_counts(const Context& c, std::uint32_t* histogram) {
    const mega::Shape& s = c.p.shape;
    const std::int32_t counters = counting_blocks(c);
    if (c.block >= counters) {
        return;
    }
    const auto* ids = c.view.mine<std::int32_t>(c.p.heap.topk_id);
    const std::int32_t pairs = c.control.num_rows * s.top_k;
    const std::int32_t share = mega::ceil_div(pairs, counters);
    const std::int32_t begin = c.block * share;
    const std::int32_t end = begin + share < pairs ? begin + share : pairs;
    const auto threads = static_cast<std::int32_t>(blockDim.x);
    const auto tid = static_cast<std::int32_t>(threadIdx.x);
    const auto valid = [&](std::int32_t expert) { return expert >= 0 && expert < s.num_experts; };

    for (std::int32_t e = tid; e < s.num_experts; e += threads) {
        histogram[e] = 0;
    }
    __syncthreads();
    if (counters > 1) {  // reserve this block's places in each expert's list
        for (std::int32_t i = begin + tid; i < end; i += threads) {
            if (valid(ids[i])) {
                atomicAdd(&histogram[ids[i]], 1U);
            }
        }
        __syncthreads();
        for (std::int32_t e = tid; e < s.num_experts; e += threads) {
            if (histogram[e] != 0) {
                histogram[e] = ptx::atom_add_relaxed_gpu(c.counter(c.p.workspace.sent + e), histogram[e]);
            }
        }
        __syncthreads();
    }
    for (std::int32_t i = begin + tid; i < end; i += threads) {
        note_order(c, ids, i / s.top_k, i % s.top_k);
        const std::int32_t expert = ids[i];
        if (!valid(expert)) {
            continue;
        }
        const std::uint32_t place = atomicAdd(&histogram[expert], 1U);
        if (place >= static_cast<std::uint32_t>(s.max_rows)) {
            give_up(c, mega::Status::kOverflow, Edge::kCounts, c.view.rank);  // an expert named twice by one row
            continue;
        }
        const std::int32_t owner = s.owner_of(expert);
        const std::int64_t list =
            mega::count_index(s, c.control.epoch, expert - owner * s.local_experts(), c.view.rank);
        c.view.at<std::uint32_t>(owner, c.p.heap.index)[list * s.max_rows + place] = static_cast<std::uint32_t>(i);
    }
    maybe_delay(c, 1);
    ptx::fence_acq_rel_sys();
    __syncthreads();
    if (counters > 1) {
        if (tid == 0) {
            const std::uint32_t before = ptx::atom_add_acq_rel_gpu(c.counter(kCounted), 1);
            c.control.last = before + 1 == static_cast<std::uint32_t>(counters) ? 1 : 0;
        }
        __syncthreads();
        if (c.control.last == 0) {
            return;
        }
    }
    for (std::int32_t e = tid; e < s.num_experts; e += threads) {
        const std::uint32_t rows = counters > 1 ? ptx::ld_acquire_gpu(c.counter(c.p.workspace.sent + e)) : histogram[e];
        const std::int32_t owner = s.owner_of(e);
        auto* const cells = c.view.at<mega::Cell>(owner, c.p.heap.counts);
        ptx::st_release_sys(&cells[mega::count_index(s, c.control.epoch, e - owner * s.local_experts(), c.view.rank)],
                            mega::encode_cell(c.control.epoch, rows));
    }
}

__device__ inline std::int32_t warp_scan(std::int32_t value) {
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    for (std::int32_t step = 1; step < 32; step *= 2) {
        const std::int32_t other = __shfl_up_sync(0xFFFFFFFFU, value, step);
        value += lane >= step ? other : 0;
    }
    return value;
}

// mega::fill_begins by one warp.
__device__ inline void scan_begins(const Context& c) {
    Control& control = c.control;
    const mega::Schedule& schedule = c.p.schedule;
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    std::int32_t row = 0;
    mega::ExpertBegin at;
    for (std::int32_t first = 0; first < schedule.num_experts; first += 32) {
        const std::int32_t e = first + lane;
        const std::int32_t rows = e < schedule.num_experts ? control.row_begin[e] : 0;
        const mega::ExpertBegin mine = mega::advance(schedule, {}, rows);
        const std::int32_t row_sum = warp_scan(rows);
        const std::int32_t block_sum = warp_scan(mine.block);
        const std::int32_t unit_sum = warp_scan(mine.unit);
        if (e < schedule.num_experts) {
            control.row_begin[e] = row + row_sum - rows;
            control.begin[e] = {at.block + block_sum - mine.block, at.unit + unit_sum - mine.unit};
        }
        row += __shfl_sync(0xFFFFFFFFU, row_sum, 31);
        at.block += __shfl_sync(0xFFFFFFFFU, block_sum, 31);
        at.unit += __shfl_sync(0xFFFFFFFFU, unit_sum, 31);
    }
    if (lane == 0) {
        control.row_begin[schedule.num_experts] = row;
        control.begin[schedule.num_experts] = at;
        control.total_rows = row;
    }
}

// Waits for all counts and fills control.count, row_begin, begin, rows_from. All threads of the block. False: aborted.
__device__ inline bool make_plan(const Context& c) {
    const mega::Shape& s = c.p.shape;
    Control& control = c.control;
    const auto threads = static_cast<std::int32_t>(blockDim.x);
    const auto tid = static_cast<std::int32_t>(threadIdx.x);
    const std::int32_t cells = s.local_experts() * s.num_ranks;
    const auto* published = c.view.mine<mega::Cell>(c.p.heap.counts) + mega::count_index(s, control.epoch, 0, 0);
    for (std::int32_t i = tid; i < cells; i += threads) {
        mega::Cell cell = 0;
        wait_for(c, Edge::kCounts, i % s.num_ranks, [&] {
            cell = ptx::ld_acquire_sys(published + i);
            return mega::cell_is_of(cell, control.epoch);
        });
        control.count[i] = mega::cell_value(cell);
    }
    __syncthreads();
    for (std::int32_t r = tid; r < s.num_ranks; r += threads) {
        std::int32_t rows = 0;
        for (std::int32_t e = 0; e < s.local_experts(); ++e) {
            rows += static_cast<std::int32_t>(control.count[e * s.num_ranks + r]);
        }
        control.rows_from[r] = rows;
    }
    __syncthreads();
    for (std::int32_t e = tid; e < s.local_experts(); e += threads) {
        std::uint32_t rows = 0;
        for (std::int32_t r = 0; r < s.num_ranks; ++r) {
            const std::uint32_t count = control.count[e * s.num_ranks + r];
            control.count[e * s.num_ranks + r] = rows;
            rows += count;
        }
        control.row_begin[e] = static_cast<std::int32_t>(rows);
    }
    __syncthreads();
    if (tid < 32) {
        scan_begins(c);
    }
    __syncthreads();
    return !c.aborted();
}

// Sources that sent nothing here are told so at once: nobody returns a row to them later.
__device__ inline void publish_empty_returns(const Context& c) {
    for (auto r = static_cast<std::int32_t>(threadIdx.x); r < c.p.shape.num_ranks;
         r += static_cast<std::int32_t>(blockDim.x)) {
        if (c.control.rows_from[r] == 0) {
            auto* const done = c.view.at<mega::Cell>(r, c.p.heap.done);
            ptx::st_release_sys(&done[mega::done_index(c.p.shape, c.control.epoch, c.view.rank)],
                                mega::encode_cell(c.control.epoch, 0));
        }
    }
}

}  // namespace megamoe::cuda
