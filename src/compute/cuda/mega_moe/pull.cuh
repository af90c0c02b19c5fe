// Dispatch: warps fetch rows from their sources into the ring of token blocks.
#pragma once

#include <cstdint>

#include "compute/cuda/mega_moe/context.cuh"

namespace megamoe::cuda {

// Walks the rank's rows, expert by expert; positions must not decrease.
struct RowCursor {
    std::int32_t expert = 0;

    __device__ void seek(const Control& control, std::int32_t row) {
        while (control.row_begin[expert + 1] <= row) {
            ++expert;
        }
    }
};

__device__ inline std::int32_t expert_rows(const Control& control, std::int32_t expert) {
    return control.row_begin[expert + 1] - control.row_begin[expert];
}

__device__ inline std::int32_t ring_row(const Context& c, std::int32_t block) {
    return block % c.p.workspace.ring_blocks * c.p.schedule.block;
}

// One warp: a row of 16-byte chunks into the planes. A lane keeps its place in a plane, 32 chunks are four planes.
__device__ inline void copy_row(const std::byte* from, std::byte* planes, std::int32_t slot, std::int32_t chunks,
                                std::int64_t plane) {
    constexpr std::int32_t kInFlight = 4;
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    from += lane * 16;
    std::byte* to = planes + lane / 8 * plane + std::int64_t{slot} * 128 + ((lane % 8) ^ (slot % 8)) * 16;
#pragma unroll 1
    for (std::int32_t left = chunks - lane; left > 0; left -= 32 * kInFlight) {
        uint4 v[kInFlight];
#pragma unroll
        for (std::int32_t i = 0; i < kInFlight; ++i) {
            if (left > 32 * i) {
                v[i] = ptx::ld_relaxed_v4(from + 512 * i);
            }
        }
#pragma unroll
        for (std::int32_t i = 0; i < kInFlight; ++i) {
            if (left > 32 * i) {
                ptx::st_v4(to + 4 * plane * i, v[i]);
            }
        }
        from += 512 * kInFlight;
        to += 4 * plane * kInFlight;
    }
}

// One warp copies row number `row` of the rank's rows. False: aborted.
__device__ inline bool pull_row(const Context& c, RowCursor& cursor, std::int32_t row) {
    const mega::Shape& s = c.p.shape;
    const Control& control = c.control;
    const auto lane = static_cast<std::int32_t>(threadIdx.x % 32);
    cursor.seek(control, row);
    const std::int32_t e = cursor.expert;
    const std::int32_t in_expert = row - control.row_begin[e];
    const std::int32_t block = control.begin[e].block + in_expert / c.p.schedule.block;
    const std::int32_t slot = ring_row(c, block) + in_expert % c.p.schedule.block;

    // Its place among the sources: the last one whose rows begin at or before it.
    const std::uint32_t* before = control.count + e * s.num_ranks;
    std::int32_t source = s.num_ranks - 1;
    while (before[source] > static_cast<std::uint32_t>(in_expert)) {
        --source;
    }
    const std::int64_t list = mega::count_index(s, control.epoch, e, source);
    const std::uint32_t pair =
        c.view.mine<std::uint32_t>(c.p.heap.index)[list * s.max_rows + in_expert - before[source]];
    const auto token = static_cast<std::int64_t>(pair) / s.top_k;

    if (block >= c.p.workspace.ring_blocks) {
        const std::uint32_t* finished = c.counter(c.p.workspace.finished + block - c.p.workspace.ring_blocks);
        const bool free = wait_for(c, Edge::kRing, c.view.rank, [&] {
            return ptx::ld_acquire_gpu(finished) == static_cast<std::uint32_t>(c.p.schedule.tiles2);
        });
        if (!free) {
            return false;
        }
        ptx::fence_proxy_async_global();
    }
    maybe_delay(c, 2);

    copy_row(c.view.at<std::byte>(source, c.p.heap.x) + token * s.hidden, c.space<std::byte>(c.p.workspace.x), slot,
             s.hidden / 16, std::int64_t{c.p.workspace.ring_rows} * 128);
    const std::int32_t groups = s.hidden / mega::kScaleGroup;
    const auto* scale_from = c.view.at<float>(source, c.p.heap.x_scale) + token * groups;
    for (std::int32_t i = lane; i < groups; i += 32) {
        c.space<float>(c.p.workspace.x_scale)[std::int64_t{i} * c.p.workspace.ring_rows + slot] =
            __ldcg(scale_from + i);
    }
    if (lane == 0) {
        c.space<float>(c.p.workspace.weight)[slot] = __ldcg(c.view.at<float>(source, c.p.heap.topk_weight) + pair);
        c.space<std::uint32_t>(c.p.workspace.source)[slot] = static_cast<std::uint32_t>(source) << 24 | pair;
    }
    ptx::fence_proxy_async_global();  // every writer: the copy engine reads these rows
    __syncwarp();
    if (lane == 0) {
        ptx::red_release_gpu(c.counter(c.p.workspace.pulled + block), 1);
        if (c.p.overlap == 0) {
            ptx::red_release_gpu(c.counter(kPulledAll), 1);
        }
    }
    return true;
}

// Rows first, first + stride, ... below end.
__device__ inline bool pull_rows(const Context& c, std::int32_t first, std::int32_t stride, std::int32_t end) {
    RowCursor cursor;
    for (std::int32_t row = first; row < end; row += stride) {
        if (!pull_row(c, cursor, row)) {
            return false;
        }
    }
    return true;
}

}  // namespace megamoe::cuda
