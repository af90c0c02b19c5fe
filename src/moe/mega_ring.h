// The slots that blocks of rows pass through on an expert rank: pulled rows, then activations, then free again. Workers
// hand a block on through its counters; nobody holds a lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "compute/cpu/gemm_stages.h"

namespace megamoe::moe {

// Where a row of a block came from and where its result goes.
struct RowOrigin {
    std::int32_t source = 0;  // rank
    std::int32_t pair = 0;    // row * K + choice at the source
    float weight = 0;
};

struct BlockSlot {
    std::atomic<std::int64_t> pulled{-1};      // the block whose rows are complete here
    std::atomic<std::int64_t> freed{-1};       // the last block that is through
    std::atomic<std::int32_t> first_done{0};   // first-layer tasks finished
    std::atomic<std::int32_t> second_done{0};  // second-layer tasks finished
    std::int32_t rows = 0;
    std::vector<RowOrigin> origin;
    std::vector<std::byte> x;       // packed rows [H]
    std::vector<std::byte> act;     // packed activations [I]
    std::vector<std::byte> result;  // version 1: [rows, H] as they travel back
};

class BlockRing {
  public:
    // Grows to `num_slots`; nobody may be working.
    void resize(std::int64_t num_slots) {
        while (static_cast<std::int64_t>(slots_.size()) < num_slots) {
            slots_.push_back(std::make_unique<BlockSlot>());
        }
        used_ = num_slots;
        for (std::int64_t i = 0; i < num_slots; ++i) {
            slots_[static_cast<std::size_t>(i)]->pulled.store(-1, std::memory_order_relaxed);
            slots_[static_cast<std::size_t>(i)]->freed.store(-1, std::memory_order_relaxed);
        }
    }
    std::int64_t size() const { return used_; }
    BlockSlot& of(std::int64_t block) { return *slots_[static_cast<std::size_t>(block % used_)]; }

    // The slot was never used, or the block before this one in it is through.
    bool is_free_for(std::int64_t block) {
        return block < used_ || of(block).freed.load(std::memory_order_acquire) >= block - used_;
    }

  private:
    std::vector<std::unique_ptr<BlockSlot>> slots_;
    std::int64_t used_ = 0;
};

// Waits inside one rank are for tasks with smaller tickets, which some worker is running: they are short.
template <class Ready>
void wait_until(Ready ready) {
    for (int spins = 0; !ready(); ++spins) {
        if (spins < 1000) {
            __builtin_ia32_pause();
        } else {
            std::this_thread::yield();
        }
    }
}

}  // namespace megamoe::moe
