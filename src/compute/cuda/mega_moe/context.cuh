// Who this thread block is, and how it waits: every wait ends when the launch is aborted or its time is up.
#pragma once

#include <cstdint>

#include "compute/cuda/mega_moe/params.h"
#include "compute/cuda/mega_moe/smem.cuh"
#include "compute/cuda/ptx/memory.cuh"
#include "compute/cuda/ptx/shared.cuh"
#include "compute/mega/rank_view.h"

namespace megamoe::cuda {

// Edges of the protocol that a rank can be stuck on; reported with a time-out.
enum class Edge : std::uint32_t { kCounts = 1, kRing = 2, kPulled = 3, kActivated = 4, kDone = 5 };

struct Context {
    const MegaMoeParams& p;
    const RankParams& mine;
    mega::RankView view;
    std::int32_t block;  // among the rank's thread blocks
    std::int32_t blocks;
    Control& control;

    __device__ std::uint32_t* bank(std::int32_t which) const {
        return reinterpret_cast<std::uint32_t*>(mine.workspace + p.workspace.counters) + which * p.workspace.bank_words;
    }
    __device__ std::uint32_t* counter(std::int32_t index) const { return bank(mega::bank_of(control.epoch)) + index; }
    template <class T>
    __device__ T* space(std::int64_t offset) const {
        return reinterpret_cast<T*>(mine.workspace + offset);
    }
    __device__ bool aborted() const { return *static_cast<volatile std::uint32_t*>(&control.abort) != 0; }
};

// First failure wins. All peers learn of it; nobody traps, and the instance stays poisoned until it is created anew.
__device__ inline void give_up(const Context& c, mega::Status status, Edge edge, std::int32_t peer) {
    auto* const heap_control = c.view.mine<mega::Control>(c.p.heap.control);
    if (atomicCAS(&heap_control->status, 0U, static_cast<std::uint32_t>(status)) == 0U) {
        heap_control->detail[0] = static_cast<std::uint32_t>(edge);
        heap_control->detail[1] = static_cast<std::uint32_t>(peer);
        heap_control->detail[2] = c.control.epoch;
    }
    for (std::int32_t r = 0; r < c.p.shape.num_ranks; ++r) {
        ptx::st_relaxed_sys(&c.view.at<mega::Control>(r, c.p.heap.control)->abort,
                            mega::encode_cell(c.control.epoch, 1));
    }
    *static_cast<volatile std::uint32_t*>(&c.control.abort) = 1;
}

__device__ inline bool out_of_patience(const Context& c, Edge edge, std::int32_t peer) {
    if (c.aborted()) {
        return true;
    }
    if (mega::cell_is_of(ptx::ld_relaxed_sys(&c.view.mine<mega::Control>(c.p.heap.control)->abort), c.control.epoch)) {
        give_up(c, mega::Status::kPeerAborted, edge, peer);
        return true;
    }
    if (c.p.timeout_ns != 0 && ptx::globaltimer_ns() - c.control.start_ns > c.p.timeout_ns) {
        give_up(c, mega::Status::kTimeout, edge, peer);
        return true;
    }
    return false;
}

// Spins until ready(). False: give up and leave.
template <class Ready>
__device__ inline bool wait_for(const Context& c, Edge edge, std::int32_t peer, Ready ready) {
    for (std::uint32_t polls = 1; !ready(); ++polls) {
        __nanosleep(32);  // the issue slots belong to those who compute
        if (polls % 1024 == 0 && out_of_patience(c, edge, peer)) {
            return false;
        }
    }
    return true;
}

// Barriers of the block: what they wait for is some role of the same block, which watches the clock itself.
__device__ inline bool wait_barrier(const Control& control, std::uint32_t bar, std::uint32_t parity) {
    while (!ptx::mbarrier_try_wait_parity(bar, parity)) {
        if (*static_cast<const volatile std::uint32_t*>(&control.abort) != 0) {
            return false;
        }
    }
    return true;
}

__device__ inline bool wait_barrier(const Control& control, std::uint64_t* bar, std::uint32_t parity) {
    return wait_barrier(control, ptx::shared_address(bar), parity);
}

// Tests: shakes the order of events.
__device__ inline void maybe_delay(const Context& c, std::uint32_t salt) {
    if (c.p.delay_ns != 0) {
        std::uint32_t x = salt * 0x9E3779B9U ^ static_cast<std::uint32_t>(clock64()) ^ (c.block * 0x85EBCA6BU);
        x ^= x >> 15;
        x *= 0x2C1B3C6DU;
        x ^= x >> 13;
        __nanosleep((x & 3U) == 0 ? x % c.p.delay_ns : 0);
    }
}

}  // namespace megamoe::cuda
