// The two loading roles, one thread each. Both walk the same tasks and stages: weights run ahead as far as the ring of
// stages allows and never wait for rows; tokens wait until the rows of their block are there.
#pragma once

#include <cstdint>

#include "compute/cuda/mega_moe/context.cuh"
#include "compute/cuda/mega_moe/pull.cuh"
#include "compute/mega/schedule.h"

namespace megamoe::cuda {

// The part of the stream that this launch works on.
__device__ inline mega::Schedule launch_schedule(const Context& c) {
    const MegaMoeParams& p = c.p;
    mega::Schedule s = p.schedule;
    if ((p.phases & kLayer1) == 0) {
        s.tiles1 = 0;
    }
    if ((p.phases & kLayer2) == 0) {
        s.tiles2 = 0;
    }
    if (p.overlap == 0) {
        s.lag = c.control.begin[s.num_experts].unit;  // the whole first layer, then the second
    }
    return s;
}

__device__ inline std::int32_t ticket_counter(const MegaMoeParams& p) {
    const std::uint32_t layers = p.phases & (kLayer1 | kLayer2);
    return layers == kLayer1 ? kTicket + 1 : layers == kLayer2 ? kTicket + 2 : kTicket;
}

__device__ inline std::int32_t columns_of(const MegaMoeParams& p, std::int32_t layer) {
    return layer == 1 ? p.shape.hidden : p.shape.inter;
}

__device__ inline std::int32_t rows_in_block(const Context& c, const mega::Task& task) {
    const std::int32_t left = expert_rows(c.control, task.expert) - task.first_row;
    return left < c.p.schedule.block ? left : c.p.schedule.block;
}

// MegaMoE 1: a task waits until the phase before its own is over on the whole rank.
__device__ inline bool wait_phase(const Context& c, const mega::Task& task) {
    if (c.p.overlap != 0 || (c.p.phases & kPull) == 0) {
        return true;
    }
    const bool first = task.layer == 1;
    const std::uint32_t* counter = c.counter(first ? kPulledAll : kLayer1All);
    const std::int32_t blocks = c.control.begin[c.p.schedule.num_experts].block;
    const auto target = static_cast<std::uint32_t>(first ? c.control.total_rows : blocks * c.p.schedule.tiles1);
    return wait_for(c, first ? Edge::kPulled : Edge::kActivated, c.view.rank,
                    [&] { return ptx::ld_acquire_gpu(counter) == target; });
}

// Lines of weights on their way to L2 while the counts are still travelling. A guess: with many rows nearly every
// expert has work, and the first tickets go to the first tiles.
template <class T>
__device__ inline void prefetch_first_task(const Context& c) {
    if (c.p.prefetch_panels == 0 || (c.p.phases & (kCount | kLayer1)) != (kCount | kLayer1)) {
        return;
    }
    const std::int32_t tiles = c.p.schedule.tiles1;
    const std::int32_t panels = c.p.shape.hidden / kPanelCols;
    if (c.block / tiles < c.p.shape.local_experts()) {
        const std::byte* from = c.mine.w13 + std::int64_t{c.block} * panels * T::kPanel.bytes;
        for (std::int32_t i = 0; i < c.p.prefetch_panels && i < panels; ++i) {
            ptx::bulk_prefetch_l2(from + std::int64_t{i} * T::kPanel.bytes, T::kPanel.bytes);
        }
    }
}

template <class T>
__device__ inline void load_weights(const Context& c, const Smem<T>& smem) {
    Control& control = c.control;
    const mega::Schedule schedule = launch_schedule(c);
    mega::TaskCursor cursor(schedule, control.begin);
    std::uint32_t* const tickets = c.counter(ticket_counter(c.p));
    StageCursor at;
    std::uint32_t ticket = ptx::atom_add_relaxed_gpu(tickets, 1);
    for (std::uint32_t n = 0;; ++n) {
        mega::Task task;
        const bool more = cursor.seek(ticket, task);
        if (more) {
            ticket = ptx::atom_add_relaxed_gpu(tickets, 1);  // its latency hides behind this task
        } else {
            task.layer = 0;
        }
        const std::uint32_t slot = n % kTaskSlots;
        if (!wait_barrier(control, &control.task_empty[slot], ((n / kTaskSlots) & 1U) ^ 1U)) {
            return;
        }
        control.task[slot] = task;
        ptx::mbarrier_arrive(&control.task_full[slot]);
        if (!more || !wait_phase(c, task)) {
            return;
        }
        const std::int32_t panels = columns_of(c.p, task.layer) / kPanelCols;
        const std::int32_t tiles = task.layer == 1 ? schedule.tiles1 : schedule.tiles2;
        const std::byte* from = (task.layer == 1 ? c.mine.w13 : c.mine.w2) +
                                (std::int64_t{task.expert} * tiles + task.tile) * panels * T::kPanel.bytes;
        for (std::int32_t i = 0; i < panels; ++i) {
            if (!wait_barrier(control, &control.empty[at.stage], at.phase ^ 1U)) {
                return;
            }
            ptx::mbarrier_arrive_expect_tx(&control.full[at.stage], T::kPanel.bytes);
            ptx::bulk_load(smem.weights(at.stage), from + std::int64_t{i} * T::kPanel.bytes, T::kPanel.bytes,
                           &control.full[at.stage], ptx::kEvictFirst);
            at.next<Smem<T>::kStages>();
        }
    }
}

template <class T>
__device__ inline void load_tokens(const Context& c, const Smem<T>& smem) {
    Control& control = c.control;
    const WorkspaceLayout& w = c.p.workspace;
    StageCursor at;
    for (std::uint32_t n = 0;; ++n) {
        const std::uint32_t slot = n % kTaskSlots;
        if (!wait_barrier(control, &control.task_full[slot], (n / kTaskSlots) & 1U)) {
            return;
        }
        const mega::Task task = control.task[slot];
        ptx::mbarrier_arrive(&control.task_empty[slot]);
        if (task.layer == 0) {
            return;
        }
        const bool first = task.layer == 1;
        const std::int32_t rows = rows_in_block(c, task);
        const std::uint32_t* counter = c.counter((first ? w.pulled : w.activated) + task.block);
        const auto target = static_cast<std::uint32_t>(first ? rows : c.p.schedule.tiles1);
        const bool ready = wait_for(c, first ? Edge::kPulled : Edge::kActivated, c.view.rank,
                                    [&] { return ptx::ld_acquire_gpu(counter) == target; });
        if (!ready) {
            return;
        }
        ptx::fence_proxy_async_global();  // the rows were written by ordinary stores
        const std::int32_t slots = (rows + 7) / 8 * 8;
        const std::int32_t row = ring_row(c, task.block);
        const std::byte* from = c.space<std::byte>(first ? w.x : w.act) + std::int64_t{row} * 128;
        const float* scales = c.space<float>(first ? w.x_scale : w.act_scale) + row;
        const std::int32_t panels = columns_of(c.p, task.layer) / kPanelCols;
        for (std::int32_t i = 0; i < panels; ++i) {
            if (!wait_barrier(control, &control.empty[at.stage], at.phase ^ 1U)) {
                return;
            }
            ptx::mbarrier_arrive_expect_tx(&control.full[at.stage], slots * 132);
            const std::int64_t plane = std::int64_t{i} * w.ring_rows;
            ptx::bulk_load(smem.tokens(at.stage), from + plane * 128, slots * 128, &control.full[at.stage],
                           ptx::kEvictLast);
            ptx::bulk_load(smem.scales(at.stage), scales + plane, slots * 4, &control.full[at.stage], ptx::kEvictLast);
            at.next<Smem<T>::kStages>();
        }
    }
}

}  // namespace megamoe::cuda
